"""The safety code of controllers and bridge reads the same limits from a robot file."""

import dataclasses
import math

import pytest

import soft_dynamics as sd
from soft_control.safety.state_machine import Limits
from soft_dynamics.pressure_limits import LONGEST_STEP, ChamberLimits, chamber_limits
from soft_hw_bridge.pressure.guard import PressureLimits

LIMITS = ChamberLimits(pressure_max=150e3, pressure_min=-200e3, slew=500e3, vent_time=0.5)


@pytest.mark.parametrize('name', sd.robot_names())
def test_controller_and_bridge_have_the_limits_of_the_robot_file(name: str) -> None:
    robot = sd.load(name)
    stated = chamber_limits(robot.description)
    controller, bridge = Limits.of(robot), PressureLimits(**stated)
    for field in dataclasses.fields(ChamberLimits):
        assert getattr(controller, field.name) == getattr(bridge, field.name) == stated[field.name]
    assert (controller.vent_rate, controller.ramp_time) == (bridge.vent_rate, bridge.ramp_time)


def test_a_vacuum_may_be_the_largest_and_the_ramp_is_never_steeper_than_the_slew_rate() -> None:
    assert (LIMITS.largest, LIMITS.vent_rate, LIMITS.ramp_time) == (200e3, 400e3, 0.5)
    slow = dataclasses.replace(LIMITS, slew=100e3)
    assert (slow.vent_rate, slow.ramp_time) == (100e3, 2.0)


def test_a_cycle_moves_by_its_time_and_a_late_one_by_the_longest_step() -> None:
    assert LIMITS.reach(0.01, is_followed=True) == pytest.approx(5e3)
    assert LIMITS.reach(0.01, is_followed=False) == pytest.approx(4e3)
    assert LIMITS.reach(9.0, is_followed=True) == LONGEST_STEP * LIMITS.slew
    assert LIMITS.reach(-1.0, is_followed=True) == 0.0
    assert PressureLimits(1e5, cycle=0.002).reach(9.0, is_followed=True) == pytest.approx(0.004 * 1e6)


@pytest.mark.parametrize(
    'change',
    [
        {'pressure_max': 0.0},
        {'pressure_max': math.nan},
        {'pressure_min': 1.0},
        {'slew': 0.0},
        {'vent_time': math.inf},
    ],
)
def test_limits_that_protect_nothing_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        dataclasses.replace(LIMITS, **change)
