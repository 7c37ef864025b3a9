"""When samples enter the filter, which kind of sensor leads, and when a state is due."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from soft_dynamics.timing.rate_limiter import Pace

from .reorder_buffer import InOrder

FUTURE_LIMIT = 0.1  # [s] largest lead of a stamp over the clock
LEAP = 2.0  # [s] the same with at_samples, because the clock of a fast bag is coarse
HOLD_NS = (
    50_000_000  # [ns] with at_samples: how much later than the newest a sample may arrive and still be sorted
)
LEAD = 0.1  # [s] a sensor that is silent for longer does not lead


class Sample(NamedTuple):
    """A message of the sensor `name`, of a kind, measured at a host time."""

    name: str
    kind: str
    stamp_ns: int
    message: Any


class Ready(NamedTuple):
    """A sample to feed now: its time and the time of the clock, in seconds since the start."""

    sample: Sample
    t: float
    now: float


class Scheduler:
    """Takes samples and returns those for the filter, with times in seconds since the start.

    Live, a sample enters when it arrives, unless its sensor is faster than `sensor_rate`. The first kind of `leaders`
    that is heard leads: a state is due with each of its samples, at `rate` at most, and one and a half periods after
    the last one.

    at_samples: all samples of a recording enter in the order of their stamps, 50 ms late, and a state is due with each
    sample of the leader.
    """

    def __init__(self, rate: float, sensor_rate: float, at_samples: bool, leaders: Sequence[str]) -> None:
        self.period = 1.5 / rate  # [s] without samples after which a state is due
        self.leading = ''
        self._rate, self._sensor_rate, self._at_samples = rate, max(sensor_rate, rate), at_samples
        self._leaders = tuple(leaders)
        self.start_over()

    def start_over(self) -> None:
        """Discard all samples. Times count from the next one."""
        self.start_ns: int | None = None
        self.asked = -math.inf  # [s] time of the last requested state
        self.leading = ''
        self._heard: dict[str, float] = {}  # [s] when, by kind
        self._in_order = InOrder(HOLD_NS, round(LEAP * 1e9))
        spare = 1 + round(
            FUTURE_LIMIT * self._sensor_rate
        )  # a stamp that far ahead must not block those after it
        self._paces: defaultdict[str, Pace] = defaultdict(lambda: Pace(self._sensor_rate, spare))  # by sensor
        self._pace = Pace(self._rate)  # of states

    def seconds(self, ns: int) -> float:
        """Return the seconds from the start to a host time; 0 before the start."""
        return 0.0 if self.start_ns is None else (ns - self.start_ns) * 1e-9

    def nanoseconds(self, t: float) -> int:
        """Return the host time of a time since the start."""
        return (self.start_ns or 0) + round(t * 1e9)

    def add(self, sample: Sample, now_ns: int) -> Iterable[Ready]:
        """Take a sample; return those to feed now. ValueError if its stamp is ahead of the clock or of all others.

        now_ns: host clock; with at_samples it may be 0, since a bag may have no clock.
        """
        ahead = (sample.stamp_ns - now_ns) * 1e-9
        limit = FUTURE_LIMIT if not self._at_samples else LEAP if now_ns else math.inf
        if ahead > limit:
            raise ValueError(f'stamp is {ahead:.3f} s ahead of the clock')
        if self._at_samples:
            in_order = self._in_order.add(sample.stamp_ns, sample.name, sample)
            return (self._in_turn(each.sample) for each in in_order)  # lazy: a sample may reset the filter
        if self.start_ns is None:
            self.start_ns = now_ns
        t = self.seconds(sample.stamp_ns)
        return [Ready(sample, t, self.seconds(now_ns))] if self._paces[sample.name].take(t) else []

    def leads(self, kind: str, now: float) -> bool:
        """Whether a kind of sensor leads, given that it is heard now [s]."""
        self._heard[kind] = now
        if kind != self.leading:
            self.leading = next(
                each for each in self._leaders if now - self._heard.get(each, -math.inf) < LEAD
            )
        return kind == self.leading

    def is_due(self, now: float) -> bool:
        """Whether a state is due with a sample of the leader. If so, the next one is due a period later."""
        return self._at_samples or self._pace.take(now)

    def is_overdue(self, now_ns: int) -> bool:
        """Whether a state is due without a sample. A simulated clock may stand still."""
        if self._at_samples or self.start_ns is None:
            return False
        return self.seconds(now_ns) >= self.asked + 0.5 * self.period

    def _in_turn(self, sample: Sample) -> Ready:
        if self.start_ns is None:
            self.start_ns = sample.stamp_ns
        t = self.seconds(sample.stamp_ns)
        return Ready(sample, t, t)
