"""The guard: pressures stay within the limits for any input, and fall without valid commands."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soft_hw_bridge.pressure.guard import PressureGuard, PressureLimits

LIMITS = PressureLimits(
    pressure_max=150e3, pressure_min=-20e3, slew=500e3, vent_time=0.5, command_timeout=0.2
)
NAMES = ['base', 'middle', 'tip']
CHAMBERS = len(NAMES)
DT = 0.005

numbers = st.floats(allow_nan=True, allow_infinity=True)
actions = st.one_of(
    st.tuples(st.just('command'), st.lists(numbers, min_size=0, max_size=5), numbers),
    st.tuples(
        st.just('command'),
        st.lists(st.floats(-3e5, 3e5), min_size=CHAMBERS, max_size=CHAMBERS),
        st.just(0.0),
    ),
    st.tuples(st.just('wait'), st.floats(-1.0, 5.0)),
    st.tuples(st.sampled_from(['arm', 'disarm', 'stop', 'lost'])),
)


def follow(guard, t, pressure, duration, measured=None):
    """Command a pressure in every cycle; return the time and the last output.

    Without `measured`, the chambers follow at once.
    """
    for _ in range(round(duration / DT)):
        t += DT
        guard.command(t, pressure)
        output = guard.step(t)
        guard.measured(t, output if measured is None else np.array(measured))
    return t, output


def idle(guard, t, duration):
    """Run cycles without commands; return the outputs."""
    return np.array([guard.step(t + DT * (k + 1)) for k in range(round(duration / DT))])


def armed(limits=LIMITS):
    """Return an armed guard, vented."""
    guard = PressureGuard(NAMES, limits)
    guard.arm()
    guard.step(0.0)
    guard.command(0.0, [0.0] * CHAMBERS)
    return guard


@settings(max_examples=400, deadline=None)
@given(st.lists(actions, max_size=40))
def test_output_stays_within_limits_and_slopes_whatever_happens(script):
    guard = PressureGuard(NAMES, LIMITS)
    t, output = 0.0, np.zeros(CHAMBERS)
    for name, *arguments in script:
        if name == 'wait':
            t += arguments[0]
        elif name == 'command':
            guard.command(t, *arguments)
        elif name == 'arm':
            if 'stop' not in guard.reason:
                guard.arm()
        else:
            getattr(guard, name)()
        t += DT
        before, output = output, guard.step(t)
        assert np.all(output >= LIMITS.pressure_min)
        assert np.all(output <= LIMITS.pressure_max)
        if name in ('stop', 'lost'):
            assert not output.any()
        else:
            assert np.all(np.abs(output - before) <= LIMITS.slew * 0.05 + 1e-6)


def test_command_is_reached_at_the_slew_rate():
    guard = armed()
    t, output = follow(guard, 0.0, [100e3] * CHAMBERS, 0.1)
    np.testing.assert_allclose(output, 50e3)
    _, output = follow(guard, t, [100e3] * CHAMBERS, 0.2)
    np.testing.assert_array_equal(output, 100e3)


def test_command_beyond_the_limits_is_clamped_and_counted():
    guard = armed()
    _, output = follow(guard, 0.0, [299e3, -299e3, 0.0], 1.0)
    np.testing.assert_array_equal(output, [150e3, -20e3, 0.0])
    assert guard.clamped == 200


def test_vents_along_a_ramp_when_commands_stop():
    guard = armed()
    t, output = follow(guard, 0.0, [150e3, -20e3, 0.0], 1.0)
    outputs = idle(guard, t, 1.0)
    np.testing.assert_array_equal(outputs[: int(0.19 / DT)], np.tile(output, (int(0.19 / DT), 1)))
    assert guard.reason == 'no command for 0.2 s'
    assert np.all(np.diff(outputs[:, 0]) >= -LIMITS.vent_rate * DT - 1e-6)
    np.testing.assert_array_equal(outputs[int(0.72 / DT) :], 0.0)


@pytest.mark.parametrize(
    ('pressure', 'age', 'reason'),
    [
        ([math.nan, 0.0, 0.0], 0.0, 'not finite'),
        ([0.0, math.inf, 0.0], 0.0, 'not finite'),
        ([0.0, 0.0], 0.0, '2 pressures for 3 chambers'),
        ([301e3, 0.0, 0.0], 0.0, 'more than 2 times the largest'),
        ([0.0] * 3, 0.5, 'not from the last 0.2 s'),
        ([0.0] * 3, -10.0, 'not from the last 0.2 s'),
        ([0.0] * 3, math.nan, 'not from the last 0.2 s'),
    ],
)
def test_unusable_command_vents_and_a_good_one_is_followed_again(pressure, age, reason):
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    guard.command(t, pressure, age)
    assert reason in guard.reason
    assert np.all(idle(guard, t, 0.1)[-1] < 100e3)
    _, output = follow(guard, t + 0.1, [100e3] * CHAMBERS, 0.5)
    np.testing.assert_array_equal(output, 100e3)
    assert guard.reason == ''


def test_nothing_is_followed_before_arming():
    guard = PressureGuard(NAMES, LIMITS)
    _, output = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    assert not output.any()
    assert guard.refused == 100


def test_disarm_vents_along_the_ramp_whatever_is_commanded():
    guard = armed()
    t, output = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    guard.disarm()
    for _ in range(10):
        before = output
        t, output = follow(guard, t, [100e3] * CHAMBERS, DT)
        np.testing.assert_allclose(output, before - LIMITS.vent_rate * DT)
    assert not idle(guard, t, LIMITS.ramp_time)[-1].any()


def test_clock_set_back_vents():
    guard = armed()
    t, _ = follow(guard, 10.0, [100e3] * CHAMBERS, 0.5)
    guard.step(t - 1.0)
    assert guard.reason == 'no command for 0.2 s'


def test_emergency_stop_holds_until_disarmed():
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    guard.stop()
    t, output = follow(guard, t, [100e3] * CHAMBERS, 0.5)
    assert not output.any()
    with pytest.raises(ValueError, match='emergency stop'):
        guard.arm()
    guard.disarm()
    guard.arm()
    guard.step(t)
    guard.command(t, [0.0] * CHAMBERS)
    _, output = follow(guard, t, [100e3] * CHAMBERS, 0.5)
    assert output.all()


def test_old_command_is_not_followed_after_arming_again():
    guard = armed()
    t, output = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    guard.disarm()
    guard.arm()
    assert np.all(np.diff([output, *idle(guard, t, 0.3)], axis=0) < 0.0)


def test_held_up_cycle_does_not_jump():
    guard = armed(PressureLimits(pressure_max=150e3, slew=500e3, command_timeout=60.0))
    t, before = follow(guard, 0.0, [10e3] * CHAMBERS, 0.1)
    guard.command(t + 10.0, [150e3] * CHAMBERS)
    assert np.all(guard.step(t + 10.0) - before <= 500e3 * 0.05 + 1e-6)


def test_lost_device_is_filled_from_zero_again():
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    guard.lost()
    guard.step(t)
    guard.command(t, [0.0] * CHAMBERS)
    guard.command(t, [100e3] * CHAMBERS)
    np.testing.assert_allclose(guard.step(t + DT), LIMITS.slew * DT)


def arm_again(guard, t):
    guard.disarm()
    guard.arm()
    return t


def lose(guard, t):
    guard.lost()
    return t


def silence(guard, t):
    idle(guard, t, 1.0)
    return t + 1.0


def nonsense(guard, t):
    guard.command(t, [math.nan] * CHAMBERS)
    idle(guard, t, 1.0)
    return t + 1.0


@pytest.mark.parametrize('event', [arm_again, lose, silence, nonsense])
def test_what_was_vented_is_not_filled_before_a_command_near_zero(event):
    """A publisher that keeps commanding pressure follows an old reference."""
    guard = armed()
    t, before = follow(guard, 0.0, [100e3, 0.0, 0.0], 0.5)
    t = event(guard, t)
    assert np.all(follow(guard, t, [100e3, 0.0, 0.0], DT)[1] <= before)
    t, output = follow(guard, t + DT, [100e3, 0.0, 0.0], 2.0)
    assert not output.any()
    assert guard.reason == 'waits for a command near zero'
    t, output = follow(guard, t, [3.1e3, -3.1e3, 0.0], 0.1)
    assert not output.any()
    t, output = follow(guard, t, [3e3, -3e3, 0.0], 0.1)
    np.testing.assert_array_equal(output, [3e3, -3e3, 0.0])
    _, output = follow(guard, t, [100e3, 0.0, 0.0], 0.5)
    np.testing.assert_array_equal(output, [100e3, 0.0, 0.0])


@pytest.mark.parametrize('event', [lose, arm_again])
def test_a_command_near_zero_from_before_opens_nothing(event):
    """The command was decided before the device vented or the guard was armed, and arrives after that."""
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    event(guard, t)
    guard.command(t, [0.0] * CHAMBERS)
    assert guard.reason == 'waits for a command near zero'
    guard.step(t + DT)
    guard.command(t + 2 * DT, [0.0] * CHAMBERS, age=2 * DT)
    assert guard.reason == 'waits for a command near zero'
    assert not follow(guard, t + DT, [100e3] * CHAMBERS, 0.7)[1].any()


@pytest.mark.parametrize('pressure', [100e3, -20e3])
def test_a_fresh_guard_waits_for_a_command_near_zero(pressure):
    guard = PressureGuard(NAMES, LIMITS)
    guard.arm()
    assert not follow(guard, 0.0, [pressure, 0.0, 0.0], 1.0)[1].any()


def test_a_command_from_before_the_loss_fills_nothing():
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    guard.lost()
    assert not idle(guard, t, 0.5).any()


def test_from_zero_that_is_followed_any_step_is():
    guard = armed()
    t, _ = follow(guard, 0.0, [0.0] * CHAMBERS, 1.0)
    _, output = follow(guard, t, [100e3] * CHAMBERS, 0.5)
    np.testing.assert_array_equal(output, 100e3)


def test_a_hand_over_from_one_controller_to_the_next_goes_on():
    """Commands that pause and resume before the chambers have vented may be as high as before."""
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    outputs = idle(guard, t, 0.4)
    assert 0.0 < outputs[-1, 0] < 100e3
    _, output = follow(guard, t + 0.4, [100e3] * CHAMBERS, 0.5)
    np.testing.assert_array_equal(output, 100e3)


def test_a_ramp_is_never_steeper_than_the_slew_rate():
    slow = PressureLimits(pressure_max=100e3, slew=10e3, vent_time=0.1)
    guard = armed(slow)
    t, before = follow(guard, 0.0, [100e3] * CHAMBERS, 1.0)
    guard.refuse('x')
    np.testing.assert_allclose(guard.step(t + DT), before - 10e3 * DT)


def measure(guard, t, pressure, duration):
    for _ in range(round(duration / DT)):
        t += DT
        guard.measured(t, np.array(pressure))
    return t


def test_a_chamber_measured_too_high_stops_for_good_and_is_named():
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    measure(guard, t, [0.0, 166e3, 100e3], 0.12)
    assert guard.reason == 'middle measured above 165000 Pa'
    assert guard.is_stopped
    assert not guard.step(t).any()
    guard.command(t, [0.0] * CHAMBERS)
    assert not follow(guard, t, [100e3] * CHAMBERS, 0.5)[1].any()


def test_too_deep_a_vacuum_stops_where_there_is_a_vacuum_supply():
    guard = armed()
    measure(guard, 0.0, [0.0, -23e3, 0.0], 0.12)
    assert guard.reason == 'middle measured below -22000 Pa'
    guard = armed(PressureLimits(pressure_max=150e3))
    measure(guard, 0.0, [0.0, -23e3, 0.0], 0.12)
    assert not guard.is_stopped


def test_a_vacuum_is_held_back_by_a_chamber_that_does_not_follow():
    guard = armed(PressureLimits(pressure_max=50e3, pressure_min=-80e3, slew=500e3))
    _, output = follow(guard, 0.0, [-80e3, -80e3, 50e3], 1.0, measured=[0.0, -40e3, 0.0])
    np.testing.assert_allclose(output, [-8e3, -48e3, 8e3])


def test_a_peak_is_borne():
    """Neither a steady excess of a tenth nor repeated short peaks."""
    guard = armed()
    t = measure(guard, 0.0, [165e3] * CHAMBERS, 1.0)
    for _ in range(10):
        t = measure(guard, t, [200e3] * CHAMBERS, 0.09)
        t = measure(guard, t, [150e3] * CHAMBERS, DT)
    assert not guard.is_stopped


def follow_blindly(guard, t, measured, duration):
    """Command 100 kPa in every cycle against this measured pressure; return the time and the last output."""
    return follow(guard, t, [100e3] * CHAMBERS, duration, measured)


@pytest.mark.parametrize('nothing', [math.nan, -math.inf])
def test_measurements_of_which_none_is_finite_vent_and_refuse(nothing):
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    t, output = follow_blindly(guard, t, [nothing] * CHAMBERS, 0.2)
    np.testing.assert_array_equal(output, 100e3)
    t, output = follow_blindly(guard, t, [nothing] * CHAMBERS, 0.8)
    assert not output.any()
    assert guard.reason == 'measured pressures are not finite'
    t, output = follow_blindly(guard, t, [0.0] * CHAMBERS, 0.5)
    assert not output.any()  # zero comes first, as after every venting
    t, _ = follow(guard, t, [0.0] * CHAMBERS, 0.1)
    np.testing.assert_array_equal(follow_blindly(guard, t, [100e3] * CHAMBERS, 0.5)[1], 100e3)


def test_one_chamber_that_is_no_number_vents_nothing_and_hides_nothing():
    """Neither the overpressure of other chambers nor its own, if that was its last reading."""
    guard = armed()
    t, _ = follow(guard, 0.0, [100e3] * CHAMBERS, 0.5)
    t, output = follow_blindly(guard, t, [math.nan, 100e3, 100e3], 1.0)
    np.testing.assert_array_equal(output, 100e3)
    for last_words in ([200e3, 100e3, 100e3], [math.nan, 100e3, 200e3], [math.inf, 100e3, 100e3]):
        guard = armed()
        guard.measured(0.0, np.array(last_words))
        guard.measured(0.05, np.full(CHAMBERS, math.nan))
        assert not guard.is_stopped
        guard.measured(0.11, np.array([math.nan, 100e3, math.nan]))
        assert guard.is_stopped


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
def test_limits_that_protect_nothing_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        PressureLimits(**({'pressure_max': 1e5} | change))
