"""Map the clock of a device to the clock of the host.

Public times are integer nanoseconds, because a float64 resolves UNIX time only to 238 ns. Inside, time differences are
float seconds.

The model is  t_host = t_device + offset + drift * t_device + delay.  A delay is never negative, so the fastest packets
separate the clocks from the network.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

_NS = 1_000_000_000


def ticks_to_ns(ticks: int, frequency_hz: int) -> int:
    """Return a tick count as nanoseconds, exactly."""
    return ticks * _NS // frequency_hz


class DeviceClock:
    """Stamp samples of a device in host time.

    From arrivals alone, the stamps are late by the least delay of the network (0.1 ms on a wired lab network). With
    round trips, half of the fastest one is subtracted, and only the asymmetry of the two ways remains.
    """

    IMPLAUSIBLE_S = 1.0  # packets are never this late: the clock jumped or the stamp is damaged
    ROUND_TRIPS = 40  # remembered

    def __init__(self) -> None:
        self._line = _LeastDelayLine()
        self._round_trips: deque[float] = deque(maxlen=self.ROUND_TRIPS)
        self._sample_ns = self._stamp_ns = self._offset_ns = 0

    def feed(self, device_ns: int, receive_ns: int, sample_ns: int | None = None) -> int:
        """Update the fit with a packet sent at `device_ns` and return the host time of its sample.

        sample_ns: device time of the measurement itself, if the packet contains it (default: `device_ns`).
        The stamp is never after the arrival, and never before the previous one unless the sample is older. After a
        clock jump the stamp is the arrival time until the fit has restarted.
        """
        sample_ns = device_ns if sample_ns is None else sample_ns
        self._learn(device_ns, receive_ns)
        self._offset_ns = self._line.offset_ns(sample_ns) - round((self.rtt_s or 0.0) / 2 * _NS)
        stamp_ns = sample_ns + self._offset_ns
        if receive_ns - stamp_ns > self.IMPLAUSIBLE_S * _NS:
            stamp_ns = receive_ns
        elif sample_ns > self._sample_ns:
            stamp_ns = max(stamp_ns, self._stamp_ns)
        self._sample_ns, self._stamp_ns = sample_ns, min(stamp_ns, receive_ns)
        return self._stamp_ns

    def feed_round_trip(self, sent_ns: int, device_ns: int, receive_ns: int) -> None:
        """Update the fit with a request sent at host time `sent_ns` and answered by the device at `device_ns`."""
        self._learn(device_ns, receive_ns)
        round_trip_s = (device_ns + self._line.offset_ns(device_ns) - sent_ns) / _NS
        if 0 < round_trip_s < self.IMPLAUSIBLE_S:
            self._round_trips.append(round_trip_s)

    def forget(self) -> None:
        """Restart the fit with the next packet, because the device may have restarted."""
        self._line.forget()

    @property
    def offset_s(self) -> float:
        """Host time minus device time at the last sample."""
        return self._offset_ns / _NS

    @property
    def drift_ppm(self) -> float:
        """How much faster the clock of the host runs [ppm]."""
        return 1e6 * self._line.drift

    @property
    def rtt_s(self) -> float | None:
        """The shortest recent round trip [s]."""
        return min(self._round_trips, default=None)

    @property
    def relocks(self) -> int:
        """How often the fit has restarted: clock jumps, restarts, late first samples."""
        return self._line.relocks

    def _learn(self, device_ns: int, receive_ns: int) -> None:
        if self._line.feed(device_ns, receive_ns):
            self._round_trips.clear()


class _LeastDelayLine:
    """The best line below all samples (device time, arrival - device time).

    It keeps the least sample of every quarter second for ten seconds. Of all lines below these points, the one with
    the least mean distance is the highest at their mean time: the edge of the lower convex hull there.
    """

    BUCKET_S = 0.25
    BUCKETS = 40
    MIN_SPAN_S = 5.0  # shorter spans keep the old slope: a new one would be noise
    MAX_DRIFT = 2e-4  # between two 100 ppm quartz clocks; a larger apparent drift is growing load
    LOWER_S = 2e-3  # a sample this far below the line disproves it
    LATE_S = 5e-3  # if all samples are this late ...
    LATE_FOR_S = 0.5  # ... for this long, the clock was set back
    STRANGE = 3  # consecutive implausible samples that count as a jump

    def __init__(self) -> None:
        self.drift = 0.0
        self.relocks = 0
        self._points: deque[tuple[float, float]] = deque(maxlen=self.BUCKETS)
        self._device0_ns = self._offset0_ns = 0
        self._intercept = 0.0
        self._strange = 0
        self._late: _Late | None = None

    def feed(self, device_ns: int, receive_ns: int) -> bool:
        """Update the line with one sample; True if the line restarted."""
        if not self._points:
            return self._lock(device_ns, receive_ns)
        t = (device_ns - self._device0_ns) / _NS
        offset = (receive_ns - device_ns - self._offset0_ns) / _NS
        delay = offset - self._intercept - self.drift * t
        if abs(delay) > DeviceClock.IMPLAUSIBLE_S:
            self._strange += 1
            return self._strange >= self.STRANGE and self._relock(device_ns, receive_ns)
        self._strange = 0
        if delay < -self.LOWER_S:
            return self._relock(device_ns, receive_ns)
        if delay > self.LATE_S:
            return self._feed_late(delay, device_ns, receive_ns)
        self._late = None
        self._feed_good(t, offset, delay)
        return False

    def forget(self) -> None:
        self.relocks += bool(self._points)
        self._points.clear()

    def offset_ns(self, device_ns: int) -> int:
        """Return host time minus device time at a device time."""
        t = (device_ns - self._device0_ns) / _NS
        return self._offset0_ns + round((self._intercept + self.drift * t) * _NS)

    def _feed_good(self, t: float, offset: float, delay: float) -> None:
        self._intercept += min(delay, 0.0)
        bucket_t, least = self._points[-1]
        if t - bucket_t > self.BUCKET_S:
            self._points.append((t, offset))
            self._fit()
        else:
            self._points[-1] = (bucket_t, min(least, offset - self.drift * (t - bucket_t)))

    def _feed_late(self, delay: float, device_ns: int, receive_ns: int) -> bool:
        late = self._late
        if late is None:
            late = self._late = _Late(receive_ns, delay, device_ns, receive_ns)
        elif delay < late.delay:
            late = self._late = _Late(late.since_ns, delay, device_ns, receive_ns)
        is_jump = receive_ns - late.since_ns > self.LATE_FOR_S * _NS
        return is_jump and self._relock(late.device_ns, late.receive_ns)

    def _relock(self, device_ns: int, receive_ns: int) -> bool:
        self.relocks += 1
        return self._lock(device_ns, receive_ns)

    def _lock(self, device_ns: int, receive_ns: int) -> bool:
        self._device0_ns, self._offset0_ns = device_ns, receive_ns - device_ns
        self._points.clear()
        self._points.append((0.0, 0.0))
        self._intercept = 0.0
        self._strange = 0
        self._late = None
        return True

    def _fit(self) -> None:
        points = list(self._points)
        if points[-1][0] - points[0][0] > self.MIN_SPAN_S:
            slope = _lower_hull_slope_at_mean(points)
            self.drift = max(-self.MAX_DRIFT, min(self.MAX_DRIFT, slope))
        self._intercept = min(offset - self.drift * t for t, offset in points)


class _Late(NamedTuple):
    """The least late sample of a series of late samples."""

    since_ns: int
    delay: float  # [s]
    device_ns: int
    receive_ns: int


def _lower_hull_slope_at_mean(points: list[tuple[float, float]]) -> float:
    """Return the slope of the lower convex hull of points (x, y), sorted by x, at their mean x."""
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1:
            (x_1, y_1), (x_2, y_2) = hull[-2:]
            if (x_2 - x_1) * (y - y_1) > (y_2 - y_1) * (x - x_1):
                break
            hull.pop()
        hull.append((x, y))
    mean = sum(x for x, _ in points) / len(points)
    right = next(i for i, (x, _) in enumerate(hull) if x >= mean)
    (x_1, y_1), (x_2, y_2) = hull[right - 1 : right + 1]
    return (y_2 - y_1) / (x_2 - x_1)
