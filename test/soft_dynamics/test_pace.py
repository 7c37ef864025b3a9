"""Rate limiter: the mean rate is exact, and jitter loses no event."""

import numpy as np
import pytest

from soft_dynamics.timing.rate_limiter import Pace


def taken(times, rate):
    pace = Pace(rate)
    return [t for t in times if pace.take(t)]


@pytest.mark.parametrize('stream', [20.0, 90.0, 100.0])
def test_a_stream_within_the_rate_passes_whole(stream):
    times = np.arange(0.0, 5.0, 1.0 / stream)
    assert len(taken(times, 100.0)) == len(times)


def test_one_that_is_late_costs_none_of_the_others():
    times = np.arange(0.0, 5.0, 0.01)
    times[50::50] += 0.008
    assert len(taken(times, 100.0)) == len(times)


def test_jitter_of_half_a_period_loses_nothing():
    rng = np.random.default_rng(0)
    times = np.arange(0.0, 20.0, 0.01) + rng.uniform(0.0, 0.005, 2000)
    assert len(taken(times, 100.0)) == len(times)


@pytest.mark.parametrize('stream', [120.0, 150.0, 240.0, 1000.0])
def test_a_faster_stream_passes_at_the_rate(stream):
    times = np.arange(0.0, 5.0, 1.0 / stream)
    assert len(taken(times, 100.0)) == pytest.approx(500, abs=3)


def test_silence_is_not_made_up_for():
    times = [0.0, *np.arange(10.0, 10.1, 0.001)]
    assert len(taken(times, 100.0)) <= 1 + 12


@pytest.mark.parametrize(('stream', 'count'), [(50.0, 250), (100.0, 500), (1000.0, 500)])
def test_order_does_not_matter(stream, count):
    times = np.arange(0.0, 5.0, 1.0 / stream)
    swapped = times.reshape(-1, 2)[:, ::-1].ravel()
    assert len(taken(swapped, 100.0)) == pytest.approx(count, abs=3)
    if count == len(times):
        assert len(taken(swapped, 100.0)) == count


def test_what_is_spared_is_made_up_for_once():
    pace = Pace(100.0, spare=5)
    times = [0.0, *np.arange(10.0, 11.0, 0.001)]
    assert sum(pace.take(t) for t in times) == pytest.approx(1 + 100 + 5, abs=1)
    assert not any(pace.take(10.5) for _ in range(3))
