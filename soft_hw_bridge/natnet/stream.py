"""Poses of named bodies from the frames, and the status of the stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from soft_dynamics.diagnostics import ERROR, OK, WARN, Status
from soft_dynamics.messages.body_frame import BodyFrame
from soft_hw_bridge.natnet.client import NatNetClient, NatNetConfig, Sample
from soft_hw_bridge.natnet.decode import MOST_BODIES


@dataclass(frozen=True)
class MocapConfig(NatNetConfig):
    """Selection of bodies, and streaming settings of Motive."""

    up_axis: str = field(default='y', metadata={'doc': 'Up Axis in the streaming settings of Motive: y or z'})
    bodies: tuple[str, ...] = field(default=(), metadata={'doc': 'rigid bodies to publish; empty: all'})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.up_axis not in ('y', 'z'):
            raise ValueError(f"up_axis must be 'y' or 'z', got {self.up_axis!r}")


class MocapStream:
    """Polls Motive for the bodies of the config; counts and omits untracked bodies."""

    def __init__(self, config: MocapConfig, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.client = NatNetClient(config, now_ns)
        self.untracked: dict[str, int] = {}  # frames without the body
        self.refused = 0  # poses of bodies after the first MOST_BODIES names
        self._config = config
        self._tracked_t: dict[str, float] = {}  # when a body was last tracked or first named

    def close(self) -> None:
        self.client.close()

    @property
    def names(self) -> list[str]:
        """The expected bodies: from the config, or all bodies in Motive."""
        return list(self._config.bodies) or sorted(self.client.names.values())

    def poll(self, timeout: float) -> list[BodyFrame]:
        """Return the new frames that have tracked bodies, oldest first, at host times, z up."""
        samples = self.client.poll(timeout)
        t = time.monotonic()
        frames = [self._frame(sample, t) for sample in samples]
        return [frame for frame in frames if frame.names]

    def status(self) -> Status:
        """Return the status. The message changes only with the state; numbers are in the values."""
        t, client = time.monotonic(), self.client
        values = client.health.report(t) | {
            'clock_offset_s': f'{client.clock.offset_s:.6f}',
            'clock_drift_ppm': f'{client.clock.drift_ppm:.1f}',
            'clock_relocks': str(client.clock.relocks),
            'rtt_s': f'{client.clock.rtt_s or float("nan"):.6f}',
            'natnet_version': '.'.join(map(str, client.version)) if client.info else 'unknown',
            'refused': str(self.refused),
        }
        values |= {f'untracked.{name}': str(count) for name, count in sorted(self.untracked.items())}
        if client.problem:
            return Status(ERROR, client.problem, values)
        warnings = [text for text in (client.warning, self._missing(), self._lost(t)) if text]
        return Status(WARN, '; '.join(warnings), values) if warnings else Status(OK, 'streaming', values)

    def _frame(self, sample: Sample, t: float) -> BodyFrame:
        bodies = []
        for body in sample.frame.bodies:
            name = self.client.names.get(body.id)
            if name is None or (self._config.bodies and name not in self._config.bodies):
                continue
            if name not in self._tracked_t and len(self._tracked_t) >= MOST_BODIES:
                self.refused += 1
                continue
            if not body.is_tracked:
                self.untracked[name] = self.untracked.get(name, 0) + 1
                self._tracked_t.setdefault(name, t)
                continue
            self._tracked_t[name] = t
            if self._config.up_axis == 'y':
                body = body.y_up_to_z_up()
            bodies.append((name, body.p_WB, body.quat_WB))
        return BodyFrame.of(sample.stamp_ns, bodies)

    def _missing(self) -> str:
        known = self.client.names.values()
        missing = [name for name in self._config.bodies if name not in known]
        if not missing or not known:
            return ''
        return f'Motive has no rigid body {", ".join(missing)} (it has {", ".join(sorted(known))})'

    def _lost(self, t: float) -> str:
        limit = self._config.stale_after
        lost = [name for name in self.names if t - self._tracked_t.get(name, t) > limit]
        return f'not tracked: {", ".join(lost)}' if lost else ''
