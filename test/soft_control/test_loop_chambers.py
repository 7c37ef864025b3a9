"""The control loop and the pressures that a bridge measures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from loop_bench import Bench

from soft_control.safety.state_machine import Memory, Mode


class Chambers:
    """The measurements of a bridge: by default every chamber follows."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.share, self.measures = bench, np.ones(16), True

    def run(self, steps: int) -> Memory:
        for _ in range(steps):
            if self.measures:
                pressure = self.share * self.bench.loop.memory.pressure
                self.bench.loop.feed_pressure(self.bench.t, pressure)
            memory = self.bench.run()
        return memory


@pytest.fixture
def chambers(bench: Bench) -> Chambers:
    """Return the measured chambers of a loop that has followed for a while, inflated."""
    chambers = Chambers(bench)
    assert chambers.run(100).mode is Mode.FOLLOWING
    return chambers


def test_measured_pressures_that_end_vent_and_the_reference_is_dead(bench: Bench, chambers: Chambers) -> None:
    chambers.measures = False
    assert chambers.run(18).mode is Mode.FOLLOWING
    memory = chambers.run(3)
    assert (memory.mode, memory.reason) == (Mode.VENTING, 'no measured pressures for 0.2 s')
    with pytest.raises(ValueError, match='not ready: no measured pressures'):
        bench.loop.present(bench.t)
    chambers.measures = True
    assert chambers.run(200).mode is Mode.IDLE
    bench.loop.follow(bench.t, bench.reference)
    assert chambers.run(100).mode is Mode.FOLLOWING


def test_chambers_that_stay_empty_vent_and_the_reference_is_dead(bench: Bench, chambers: Chambers) -> None:
    """A bridge that was stopped, or waits for a new start."""
    chambers.share = np.full(16, 0.1)
    assert chambers.run(60).mode is Mode.FOLLOWING
    memory = chambers.run(25)
    assert (memory.mode, memory.reason) == (Mode.VENTING, 'chambers stay empty')
    assert chambers.run(200).mode is Mode.IDLE
    chambers.share = np.ones(16)
    assert chambers.run(100).mode is Mode.IDLE
    bench.loop.follow(bench.t, bench.reference)
    assert chambers.run(100).mode is Mode.FOLLOWING


def test_chambers_that_were_never_seen_with_air_stay_empty_too(bench: Bench) -> None:
    chambers = Chambers(bench)
    chambers.share = np.full(16, 0.1)
    assert chambers.run(60).mode is Mode.FOLLOWING
    assert chambers.run(25).reason == 'chambers stay empty'


def test_what_is_not_finite_is_not_measured(bench: Bench, chambers: Chambers) -> None:
    chambers.share = np.full(16, math.nan)
    memory = chambers.run(25)
    assert (memory.mode, memory.reason) == (Mode.VENTING, 'no measured pressures for 0.2 s')


def test_chambers_without_a_number_count_as_empty(bench: Bench, chambers: Chambers) -> None:
    """The loop stops if no chamber that should have pressure reports any: vented chambers give no evidence."""
    inflated = bench.loop.memory.pressure > 10e3
    assert 0 < np.sum(inflated) < 16
    chambers.share = np.where(inflated, math.nan, 1.0)
    assert chambers.run(60).mode is Mode.FOLLOWING
    assert chambers.run(25).reason == 'chambers stay empty'


@pytest.mark.parametrize(
    'share',
    [
        np.full(16, 0.5),
        np.r_[np.zeros(15), 1.0],
        np.full(16, 1.5),
        np.r_[math.nan, np.ones(15)],
        np.r_[np.full(15, math.nan), 1.0],
    ],
)
def test_a_poor_sensor_or_chamber_does_not_vent(share: np.ndarray) -> None:
    """Leaks, wrong gains, NaN, one chamber that follows among many that do not: the bridge reports them."""
    bench = Bench(co_contraction=0.5)
    bench.run()
    bench.loop.follow(bench.t, bench.reference)
    chambers = Chambers(bench)
    chambers.share = share
    memory = chambers.run(500)
    assert memory.mode is Mode.FOLLOWING
    assert np.all(memory.pressure > 20e3)


def test_a_new_begin_forgets_that_there_was_a_bridge(bench: Bench, chambers: Chambers) -> None:
    chambers.measures = False
    chambers.run(50)
    bench.loop.begin(bench.t)
    bench.run()
    bench.loop.follow(bench.t, bench.reference)
    assert bench.run(100).mode is Mode.FOLLOWING


def test_pressures_of_other_chambers_are_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match='pressure: expected 16 numbers, got 3'):
        bench.loop.feed_pressure(bench.t, np.zeros(3))
