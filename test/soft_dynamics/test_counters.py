"""RateCounter and the diagnosis of a stream."""

import math

import pytest

from soft_dynamics.diagnostics import ERROR, OK, STALE, WARN, RateCounter, stream_status


def counted(rate: float, duration: float, start: float = 0.0) -> RateCounter:
    counter = RateCounter(window=2.0)
    for k in range(round(rate * duration)):
        counter.tick(start + k / rate)
    return counter


@pytest.mark.parametrize('start', [0.0, 1.8e9])
@pytest.mark.parametrize('duration', [0.5, 1.9, 30.0])
def test_a_steady_stream_is_measured_from_its_start(duration: float, start: float) -> None:
    counter = counted(100.0, duration, start)
    assert counter.rate(start + duration) == pytest.approx(100.0, rel=0.021)
    assert counter.total == round(100 * duration)


def test_a_stream_that_stops_falls_to_zero() -> None:
    counter = counted(100.0, 10.0)
    assert counter.rate(11.0) == pytest.approx(50.0, rel=0.02)
    assert counter.rate(12.5) == 0.0
    assert counter.age(12.5) == pytest.approx(2.51)


def test_nothing_is_known_before_the_first_event() -> None:
    counter = RateCounter()
    assert counter.rate(5.0) == 0.0
    assert counter.age(5.0) == math.inf


def test_one_event_makes_no_rate() -> None:
    counter = RateCounter()
    counter.tick(5.0)
    assert counter.rate(5.0) == counter.rate(5.1) == 0.0


def test_a_clock_that_jumps_back_starts_anew() -> None:
    counter = counted(100.0, 10.0, start=1000.0)
    for k in range(100):
        counter.tick(k / 100)
    assert counter.rate(1.0) == pytest.approx(100.0, rel=0.02)


def test_the_memory_is_bounded_by_the_window() -> None:
    assert len(counted(1000.0, 20.0)._times) <= 2001


@pytest.mark.parametrize('window', [0.0, -1.0, math.nan])
def test_a_window_that_is_not_positive_is_refused(window: float) -> None:
    with pytest.raises(ValueError, match='window'):
        RateCounter(window)


@pytest.mark.parametrize(
    ('rate', 'age', 'level', 'message'),
    [
        (0.0, math.inf, STALE, 'no sample yet'),
        (100.0, 0.01, OK, '100 Hz'),
        (81.0, 0.01, OK, '81 Hz'),
        (79.0, 0.01, WARN, '79 Hz, expected 100 Hz'),
        (100.0, 1.3, ERROR, 'no sample for 1.3 s'),
    ],
)
def test_a_stream_is_judged(rate: float, age: float, level: int, message: str) -> None:
    assert stream_status(rate, age, expected_rate=100.0, timeout=1.0)[:2] == (level, message)
