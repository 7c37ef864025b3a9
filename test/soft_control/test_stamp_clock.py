"""Wall clocks that jump, stamps from the future, suspended computers: the arm vents and ignores old states."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import pytest

from soft_control.control_loop import ControlLoop
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw
from soft_control.references import JointPath
from soft_control.safety.state_machine import Mode, State
from soft_dynamics.robot import load
from soft_dynamics.timing.stamp_clock import StampClock

ROBOT = load('honeycomb_arm')
TIMEOUT, PERIOD = ROBOT.description.safety.state_timeout, 0.005  # [s]
START = 1.7e9  # [s] the wall clock at the start
REST, BENT = 0.02, 0.3  # [rad] all coordinates
MOVE_TIME = 0.3  # [s]


class Computer:
    """A controller's core on simulated clocks; stamps use the wall clock."""

    def __init__(self) -> None:
        self.t, self.wall, self.rate = 1000.0, START, 1.0
        self.loop = ControlLoop(ROBOT, ConfigurationLaw(ROBOT, ConfigurationGains()))
        self.stamps = StampClock(TIMEOUT, lambda: round(self.wall * 1e9), lambda: self.t)
        self.loop.begin(self.t)
        self.offset = 0.0  # [s] of the stamps
        self.bend = REST  # [rad]

    def run(self, duration: float, states: bool = True) -> set[Mode]:
        """Run cycles for a time; return the modes."""
        modes = set()
        for _ in range(round(duration / PERIOD)):
            self.t += PERIOD
            self.wall += self.rate * PERIOD
            self.stamps.look()
            if states:
                self.tell(self.wall + self.offset)
            modes.add(self.loop.step(self.t).mode)
            wanted = BENT if self.loop.memory.mode is Mode.FOLLOWING else REST
            self.bend += PERIOD / MOVE_TIME * (wanted - self.bend)
        return modes

    def tell(self, stamp: float) -> None:
        self.loop.feed(State(self.stamps.time_of(round(stamp * 1e9)), np.full(8, self.bend), np.zeros(8)))

    def refer(self) -> None:
        present = self.loop.present(self.t)
        self.loop.follow(self.t, JointPath(self.t, present, [1.0], [np.full(8, BENT)]))


@pytest.fixture
def computer() -> Computer:
    """Return a controller in mode follow with an inflated arm."""
    made = Computer()
    made.run(0.2)
    made.refer()
    assert made.run(1.0) == {Mode.FOLLOWING}
    assert made.loop.memory.pressure.max() > 10e3
    return made


def vents_until_a_new_reference(computer: Computer) -> None:
    assert Mode.FOLLOWING not in computer.run(3.0)
    assert not computer.loop.memory.pressure.any()
    computer.refer()
    assert computer.run(0.1) == {Mode.FOLLOWING}


@pytest.mark.parametrize('step', [-3600.0, -1.0, -0.03, 0.03, 1.0, 3600.0])
def test_a_wall_clock_that_is_set_vents(computer: Computer, step: float) -> None:
    """The computer's clock jumps: the stamps jump with it."""
    computer.wall += step
    computer.run(PERIOD)
    assert computer.stamps.set_by == pytest.approx(step, abs=1e-3)
    vents_until_a_new_reference(computer)


@pytest.mark.parametrize('step', [-2.0, -0.5, 0.5])
def test_a_wall_clock_that_is_set_makes_no_old_state_new(computer: Computer, step: float) -> None:
    """The estimator is dead; one of its states arrives when its age by the wall clock is zero."""
    last = computer.wall
    computer.run(2.0, states=False)
    assert not computer.loop.memory.pressure.any()
    computer.wall += step
    computer.stamps.look()
    for stamp in (last, computer.wall, last + 0.5 * TIMEOUT):
        computer.tell(stamp)
        assert computer.loop.step(computer.t).mode is not Mode.FOLLOWING
        with pytest.raises(ValueError, match='not ready: no state for'):
            computer.refer()


@pytest.mark.parametrize('offset', [1.01 * TIMEOUT, 10.0, 1e9, -1.01 * TIMEOUT, -10.0])
def test_stamps_of_the_future_or_past_vent(computer: Computer, offset: float) -> None:
    computer.offset = offset
    assert Mode.FOLLOWING not in computer.run(1.0)
    computer.offset = 0.0
    vents_until_a_new_reference(computer)


def test_a_stamp_a_little_in_the_future_stays_fresh_no_longer_than_others(computer: Computer) -> None:
    computer.offset = 0.9 * TIMEOUT
    assert computer.run(0.1) == {Mode.FOLLOWING}
    computer.run(TIMEOUT + PERIOD, states=False)
    assert computer.loop.memory.mode is Mode.VENTING


def test_a_suspended_computer_wakes_up_venting(computer: Computer) -> None:
    """By CLOCK_MONOTONIC the last state looks fresh. Both other clocks kept running, so no clock was set."""
    computer.t += 3600.0
    computer.wall += 3600.0
    computer.run(PERIOD, states=False)
    assert computer.loop.memory.mode is Mode.VENTING
    assert computer.stamps.set_t == -math.inf
    vents_until_a_new_reference(computer)


@pytest.mark.parametrize('rate', [1.0 - 0.09, 1.0 - 5e-4, 1.0 + 5e-4, 1.0 + 0.09])
def test_a_wall_clock_that_is_corrected_slowly_is_followed(computer: Computer, rate: float) -> None:
    computer.rate = rate
    assert computer.run(2.0) == {Mode.FOLLOWING}
    assert computer.stamps.set_t == -math.inf


def test_many_small_steps_are_one(computer: Computer) -> None:
    """Each step is too small to count."""
    for _ in range(20):
        computer.wall -= 0.01
        computer.run(PERIOD)
    assert computer.stamps.set_t > 0.0
    assert computer.loop.memory.mode is Mode.VENTING


@pytest.mark.parametrize('apart', [0, 1, 2, 3])
def test_a_process_that_stands_still_between_two_clocks_sees_no_step(apart: int) -> None:
    """The process stops twice for a second, each time between two clock readings."""
    for first in range(2, 15):
        reads, passed = count(), 0.0

        def read(start: float) -> float:
            nonlocal passed
            passed += next(reads) in (first, first + apart)  # noqa: B023
            return start + passed

        stamps = StampClock(TIMEOUT, lambda: round(read(START) * 1e9), lambda: read(0.0))
        looks = [stamps.look() for _ in range(10)]
        assert not any(looks)
