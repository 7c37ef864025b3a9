"""Accuracy on the virtual rig, whose plant differs from the model: shorter runs of docs/benchmarks/estimation.md."""

from __future__ import annotations

import pytest

import soft_dynamics as sd
from benchmarks.estimation import BLACKOUT, blackout, error, of_sensors, tip_load, with_outliers
from benchmarks.estimation_rig import PERIOD, Run, estimates, model, record
from soft_estimation.kalman.model_filter import ModelFilter


@pytest.fixture(scope='module')
def arm() -> sd.Robot:
    return model()


@pytest.fixture(scope='module')
def run() -> Run:
    return record(4.5, 300)  # the default parameters were not tuned on this seed


@pytest.mark.parametrize(
    ('kinds', 'q', 'qd'), [({'vive'}, 0.02, 0.15), ({'fiber'}, 0.015, 0.15), ({'ft'}, 0.04, 0.2)]
)
def test_any_sensors_give_the_state(arm: sd.Robot, run: Run, kinds: set[str], q: float, qd: float) -> None:
    """The limits [rad], [rad/s] are about twice the measured errors."""
    of_filter, of_differentiator = of_sensors(arm, [run], kinds)
    assert of_filter.q < q
    assert of_filter.qd < qd
    assert (of_differentiator is not None) == (kinds == {'fiber'})  # others miss segments
    if of_differentiator is not None:
        assert of_filter.q < 0.6 * of_differentiator.q
        assert of_filter.qd < 0.3 * of_differentiator.qd


def test_more_sensors_are_not_worse(arm: sd.Robot, run: Run) -> None:
    """At most a tenth worse than motion capture alone, in a single run."""
    best, _ = of_sensors(arm, [run], {'mocap'})
    every, _ = of_sensors(arm, [run], {'mocap', 'vive', 'fiber', 'ft'})
    assert every.q < 1.1 * best.q
    assert every.qd < 1.1 * best.qd


def test_with_motion_capture_the_filter_has_better_rates_than_the_differentiator(
    arm: sd.Robot, run: Run
) -> None:
    of_filter, of_differentiator = of_sensors(arm, [run], {'mocap'})
    assert of_differentiator is not None
    assert of_filter.q < 0.95 * of_differentiator.q
    assert of_filter.qd < 0.8 * of_differentiator.qd


def test_a_second_without_motion_capture(arm: sd.Robot, run: Run) -> None:
    worst, (begin, end) = blackout(arm, run), BLACKOUT
    usual = worst[(run.t >= 1.0) & (run.t < begin)].max()
    assert worst[(run.t >= begin) & (run.t < end)].max() < 0.15
    assert worst[run.t >= end + 0.1].max() < 2.0 * usual


def test_outliers_cost_what_they_would_have_told(arm: sd.Robot, run: Run) -> None:
    clean = error(run, estimates(run, ModelFilter(arm), {'mocap', 'pressure'}))
    spoilt, lost = (error(run, with_outliers(arm, run, 0, lost=is_lost)) for is_lost in (False, True))
    assert spoilt.q < min(1.02 * lost.q, 1.12 * clean.q)
    assert spoilt.qd < min(1.02 * lost.qd, 1.05 * clean.qd)


@pytest.mark.parametrize(('load', 'seed'), [(0.1, 300), (0.1, 301), (0.3, 302), (0.5, 303)])
def test_a_tip_load_is_known_after_two_seconds_and_stays_known(arm: sd.Robot, load: float, seed: int) -> None:
    mass = tip_load(arm, record(2.5, seed, load), with_ft=True)[round(2.0 / PERIOD) :]
    assert mass.min() > 0.9 * load
    assert mass.max() < 1.1 * load
