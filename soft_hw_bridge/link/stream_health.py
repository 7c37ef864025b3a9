"""Packet counters of one device."""

from __future__ import annotations

from soft_dynamics.diagnostics import RateCounter


class StreamHealth:
    """Counts the packets of a stream and checks whether each one is new.

    Sequence numbers are compared modulo 2**sequence_bits. A late packet is removed from the lost ones. The last 64
    numbers are remembered; a step outside [-64, max_gap] counts as a restart of the device. Times are seconds of one
    monotonic clock of the host.
    """

    MEMORY = 64

    def __init__(self, sequence_bits: int = 32, max_gap: int = 100_000) -> None:
        self.received = 0  # new and in order: `arrived` returned True
        self.lost = 0
        self.duplicate = 0
        self.out_of_order = 0
        self.malformed = 0
        self.foreign = 0  # from an address that is not the device's
        self.reconnects = 0
        self.restarts = 0  # of the sequence
        self._modulus = 1 << sequence_bits
        self._max_gap = max_gap
        self._newest: int | None = None
        self._seen = 0  # bit k: the number newest - k has arrived
        self._counter = RateCounter()

    def arrived(self, t: float, sequence: int | None = None) -> bool:
        """Count a well-formed packet; False if it is a duplicate or older than a previous one."""
        is_new = sequence is None or self._is_new(sequence)
        if is_new:
            self.received += 1
            self._counter.tick(t)
        return is_new

    def resync(self) -> None:
        """Accept any sequence number as the next start, after a reconnection."""
        self._newest = None

    def age(self, t: float) -> float:
        """Return the seconds since the last new packet, infinite before the first."""
        return self._counter.age(t)

    def rate(self, t: float) -> float:
        """Return new packets per second over the last two seconds."""
        return self._counter.rate(t)

    def report(self, t: float) -> dict[str, str]:
        """Return all counters by name, in the order of docs/bridges/index.md."""
        return {
            'rate_hz': f'{self.rate(t):.6g}',
            'last_age_s': f'{self.age(t):.6g}',
            'received': str(self.received),
            'lost': str(self.lost),
            'duplicate': str(self.duplicate),
            'out_of_order': str(self.out_of_order),
            'malformed': str(self.malformed),
            'foreign': str(self.foreign),
            'reconnects': str(self.reconnects),
            'restarts': str(self.restarts),
        }

    def _is_new(self, sequence: int) -> bool:
        if self._newest is None:
            self._start(sequence)
            return True
        step = (sequence - self._newest + self._modulus // 2) % self._modulus - self._modulus // 2
        if not -self.MEMORY < step <= self._max_gap:
            self.restarts += 1
            self._start(sequence)
            return True
        if step > 0:
            self.lost += step - 1
            self._seen = (self._seen << step | 1) & ((1 << self.MEMORY) - 1) if step < self.MEMORY else 1
            self._newest = sequence
            return True
        bit = 1 << -step
        if self._seen & bit:
            self.duplicate += 1
        else:
            self._seen |= bit
            self.out_of_order += 1
            self.lost -= 1
        return False

    def _start(self, sequence: int) -> None:
        self._newest = sequence
        self._seen = (1 << self.MEMORY) - 1  # nothing before the start counts as missing
