"""Faults that the emulators inject on demand."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class Faults:
    """Faults between the device and the wire; set the fields at any time.

    The probabilities apply to each packet. `stuck`, `clock_jump_s`, `untracked` and `restart` concern the device, so
    rig and emulators read them; `apply` implements the others.
    """

    silent: bool = False  # send nothing: a stopped stream
    frozen: bool = False  # repeat the last packet
    stuck: bool = False  # repeat the last measurement with new sequence numbers and times
    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0  # send the packet after the next one
    corrupt: float = 0.0  # overwrite some bytes or truncate the packet
    clock_jump_s: float = 0.0  # added to the clock of the device
    untracked: frozenset[str] = frozenset()  # names of bodies, trackers or sensors that are out of view
    restart: bool = False  # reset counters and clock, forget clients; the emulator clears the flag
    seed: int = 0
    _random: random.Random = field(init=False, repr=False, compare=False)
    _last: bytes = field(default=b'', init=False, repr=False, compare=False)
    _held: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def clear(self) -> None:
        """Remove all faults."""
        for fault in fields(self):
            if fault.init and fault.name != 'seed':
                setattr(self, fault.name, fault.default)

    def apply(self, packet: bytes) -> list[bytes]:
        """Return the packets to send instead of a healthy one, in order."""
        if self.silent:
            return []
        if self.frozen and self._last:
            return [self._last]
        self._last = packet
        if self._hits(self.drop):
            return []
        if packet and self._hits(self.corrupt):
            packet = self._corrupted(packet)
        if self._held is None and self._hits(self.reorder):
            self._held = packet
            return []
        sent = [packet, packet] if self._hits(self.duplicate) else [packet]
        if self._held is not None:
            sent.append(self._held)
            self._held = None
        return sent

    def _hits(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability

    def _corrupted(self, packet: bytes) -> bytes:
        if self._random.random() < 0.3:
            return packet[: self._random.randrange(len(packet))]
        damaged = bytearray(packet)
        for _ in range(self._random.randint(1, 8)):
            damaged[self._random.randrange(len(damaged))] = self._random.randrange(256)
        return bytes(damaged)
