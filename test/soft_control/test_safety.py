"""Every safety rule: an input that breaks it, and the response. Each test fails without its rule."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from closed_loop import robot_of

from soft_control.safety.plausibility import Plausible
from soft_control.safety.state_machine import (
    Limits,
    Memory,
    Mode,
    Request,
    State,
    advance,
    begin,
    joint_reference_fault,
    pose_reference_fault,
    state_fault,
)
from soft_dynamics.geometry.se3 import moved

LIMITS = Limits(
    pressure_min=-20e3,
    pressure_max=100e3,
    slew=1e6,
    vent_time=2.0,
    state_timeout=0.1,
    plausible=Plausible(
        names=('bend', 'length'),
        centre=np.array([0.0, 0.2]),
        coordinate=np.array([3.0, 0.1]),
        rate=np.array([10.0, 0.5]),
        X_WO=moved(np.eye(4), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])),
        tip=0.5,
        tip_speed=4.0,
        turn_rate=8.0,
    ),
)
DT = 0.01  # [s]
GOOD = State(0.0, np.array([0.1, 0.25]), np.array([0.5, 0.0]))


def run(memory: Memory, request: Request, steps: int = 1) -> Memory:
    for _ in range(steps):
        memory = advance(LIMITS, memory, memory.t + DT, request)
    return memory


def wish(*pressure: float, reference_t: float = 0.0, **fields: Any) -> Request:
    return Request(np.array(pressure), reference_t=reference_t, **fields)


@pytest.fixture
def inflated() -> Memory:
    """Return the state machine following 80 kPa and 40 kPa, one second after the start."""
    memory = run(begin(np.zeros(2), 0.0), wish(80e3, 40e3), 100)
    assert memory.mode is Mode.FOLLOWING
    np.testing.assert_allclose(memory.pressure, [80e3, 40e3])
    return memory


def test_it_starts_vented_and_stays_so_without_a_reference() -> None:
    memory = run(begin(np.zeros(2), 0.0), Request(), 50)
    assert memory.mode is Mode.IDLE
    assert memory.reason == 'no reference yet'
    assert not np.any(memory.pressure)


@pytest.mark.parametrize(('wanted', 'limit'), [(1e9, 100e3), (-1e9, -20e3)])
def test_pressure_limits(wanted: float, limit: float) -> None:
    memory = run(begin(np.zeros(2), 0.0), wish(wanted, 50e3), 200)
    np.testing.assert_allclose(memory.pressure, [limit, 50e3])


def test_slew_limit(inflated: Memory) -> None:
    np.testing.assert_allclose(run(inflated, wish(0.0, 100e3)).pressure, [70e3, 50e3])


def test_a_cycle_held_up_does_not_jump(inflated: Memory) -> None:
    late = advance(LIMITS, inflated, inflated.t + 30.0, wish(0.0, 40e3))
    assert late.pressure[0] == pytest.approx(80e3 - 0.05 * LIMITS.slew)


def test_a_clock_that_goes_back_moves_nothing(inflated: Memory) -> None:
    np.testing.assert_array_equal(advance(LIMITS, inflated, -5.0, wish(0.0, 0.0)).pressure, inflated.pressure)


def test_a_fault_vents_along_the_ramp(inflated: Memory) -> None:
    memory = run(inflated, Request(fault='no state for 0.1 s'))
    assert (memory.mode, memory.reason) == (Mode.VENTING, 'no state for 0.1 s')
    np.testing.assert_allclose(memory.pressure, [80e3 - 500.0, 40e3 - 500.0])  # 100 kPa in 2 s
    memory = run(memory, Request(fault='no state for 0.1 s'), 200)
    assert memory.mode is Mode.IDLE
    assert not np.any(memory.pressure)


def test_a_vacuum_is_let_go_along_the_ramp_too() -> None:
    memory = run(begin(np.array([-20e3, 0.0]), 0.0), Request(fault='x'))
    np.testing.assert_allclose(memory.pressure, [-19.5e3, 0.0])


def test_the_ramp_is_never_steeper_than_the_slew_rate() -> None:
    slow = replace(LIMITS, pressure_min=0.0, slew=10e3, vent_time=0.1)
    assert advance(slow, begin(np.array([50e3]), 0.0), DT, Request(fault='x')).pressure[0] == 50e3 - 100.0


def test_after_a_fault_only_a_newer_reference_is_followed(inflated: Memory) -> None:
    faulty = run(inflated, wish(80e3, 40e3, fault='state jumps'))
    again = run(faulty, wish(80e3, 40e3, reference_t=0.5), 10)
    assert again.mode is Mode.VENTING
    assert again.reason == 'state jumps'
    assert again.pressure[0] < faulty.pressure[0]
    assert run(again, wish(80e3, 40e3, reference_t=again.t)).mode is Mode.FOLLOWING


@pytest.mark.parametrize('reference_t', [-math.inf, 5.0])
def test_losing_the_reference_vents(inflated: Memory, reference_t: float) -> None:
    memory = run(inflated, Request(reference_t=reference_t))
    assert memory.mode is Mode.VENTING
    assert memory.pressure[0] < 80e3


@pytest.mark.parametrize('wanted', [(math.nan, 1e3), (math.inf, 1e3), (1e3,), (1e3, 1e3, 1e3)])
def test_unusable_commands_vent(inflated: Memory, wanted: tuple[float, ...]) -> None:
    memory = run(inflated, wish(*wanted))
    assert memory.mode is Mode.VENTING
    np.testing.assert_allclose(memory.pressure, [80e3 - 500.0, 40e3 - 500.0])
    assert run(memory, wish(80e3, 40e3)).mode is Mode.VENTING


def test_an_emergency_stop_vents_and_stays(inflated: Memory) -> None:
    memory = run(inflated, wish(80e3, 40e3, stop=True))
    np.testing.assert_allclose(memory.pressure, [80e3 - 500.0, 40e3 - 500.0])
    memory = run(memory, wish(80e3, 40e3, reference_t=100.0), 200)
    assert (memory.mode, memory.reason) == (Mode.STOPPED, 'emergency stop')
    assert not np.any(memory.pressure)


def test_a_good_state_is_trusted() -> None:
    later = State(0.01, GOOD.q + np.array([0.05, 0.004]), GOOD.qd)
    assert state_fault(LIMITS, 0.05, later, GOOD) == ''


@pytest.mark.parametrize(
    ('t', 'state', 'fault'),
    [
        (0.0, None, 'no state yet'),
        (0.2, GOOD, 'no state for 0.1 s'),
        (-0.2, GOOD, 'no state for 0.1 s'),  # from the future
        (math.nan, GOOD, 'no state for 0.1 s'),
        (0.0, GOOD._replace(q=np.zeros(3)), 'state belongs to another robot'),
        (0.0, GOOD._replace(qd=np.empty(0)), 'state belongs to another robot'),
        (0.0, GOOD._replace(q=np.array([0.1, math.nan])), 'not finite'),
        (0.0, GOOD._replace(qd=np.array([math.inf, 0.0])), 'not finite'),
        (0.0, GOOD._replace(q=np.array([-3.1, 0.2])), 'state has bend more than 3'),
        (0.0, GOOD._replace(q=np.array([0.1, 0.31])), 'state has length more than 0.1 from 0.2'),
        (0.0, GOOD._replace(q=np.array([0.1, 0.0])), 'state has length more than 0.1 from 0.2'),
        (0.0, GOOD._replace(qd=np.array([-11.0, 0.0])), 'state has a rate of bend beyond 10'),
        (0.0, GOOD._replace(qd=np.array([0.0, 0.6])), 'state has a rate of length beyond 0.5'),
    ],
)
def test_a_bad_state_is_named(t: float, state: State | None, fault: str) -> None:
    assert fault in state_fault(LIMITS, t, state, None)


@pytest.mark.parametrize('jump', [(0.21, 0.0), (0.0, 0.011)])
def test_a_state_that_jumps_is_not_trusted(jump: tuple[float, float]) -> None:
    jumped = State(0.02, GOOD.q + np.array(jump), GOOD.qd)
    assert state_fault(LIMITS, 0.02, jumped, GOOD) == 'state jumps'
    assert state_fault(LIMITS, 0.03, jumped._replace(t=0.03), GOOD) == ''


@pytest.mark.parametrize('dt', [-0.001, 0.0, 0.001, 0.005])
def test_samples_close_in_time_may_differ_as_if_they_were_5_ms_apart(dt: float) -> None:
    here, turned, along = (
        moved(np.eye(4), np.array(step))
        for step in ([0, 0, 0, 0, 0, 1.0], [0.039, 0, 0, 0, 0, 1.0], [0, 0, 0, 0, 0.019, 1.0])
    )
    for jump, fault in ((0.049, ''), (0.051, 'jumps')):
        q = GOOD.q + np.array([jump, 0.0])
        assert state_fault(LIMITS, dt, State(dt, q, GOOD.qd), GOOD) == (fault and f'state {fault}')
        assert joint_reference_fault(LIMITS, q, GOOD.q, dt) == (fault and f'reference {fault}')
    for X_WT in (turned, along):
        assert pose_reference_fault(LIMITS, GOOD.q, X_WT, here, dt) == ''


def test_references_of_coordinates() -> None:
    before = np.array([0.1, 0.2])
    assert joint_reference_fault(LIMITS, before + np.array([0.05, 0.004]), before, DT) == ''
    assert joint_reference_fault(LIMITS, before, None, 0.0) == ''
    for jump in ([0.11, 0.0], [0.0, 0.006]):
        assert joint_reference_fault(LIMITS, before + np.array(jump), before, DT) == 'reference jumps'
    for beyond in ([-3.1, 0.2], [0.0, 0.31]):
        assert 'more than' in joint_reference_fault(LIMITS, np.array(beyond), None, 0.0)
    assert 'not finite' in joint_reference_fault(LIMITS, np.array([0.0, math.nan]), None, 0.0)


def test_references_of_the_tip() -> None:
    """Positions are measured from the base, and rotations by their angle, whatever their matrix entries."""
    here, straight = np.zeros(3), np.eye(4)
    straight[2, 3] = 1.4
    assert pose_reference_fault(LIMITS, GOOD.q, straight, None, 0.0) == ''
    upside_down = moved(straight, np.r_[math.pi, 0.0, 0.0, here])
    assert pose_reference_fault(LIMITS, GOOD.q, upside_down, None, 0.0) == ''
    for step in ([0.0, 0.0, 0.11], [0.0, 0.0, -1.0], [0.4, 0.4, 0.0], [0.0, 3.0, 0.0]):
        fault = pose_reference_fault(LIMITS, GOOD.q, moved(straight, np.r_[here, step]), None, 0.0)
        assert fault == 'reference is more than 0.5 m from the base'
    for step, fault in (
        ([0.0, 0.0, 0.0, 0.0, 0.03, 0.0], ''),
        ([0.0, 0.0, 0.0, 0.0, 0.05, 0.0], 'reference jumps'),
        ([0.07, 0.0, 0.0, 0.0, 0.0, 0.0], ''),
        ([0.09, 0.0, 0.0, 0.0, 0.0, 0.0], 'reference jumps'),
    ):
        assert (
            pose_reference_fault(LIMITS, GOOD.q, moved(upside_down, np.array(step)), upside_down, DT) == fault
        )
    assert 'not finite' in pose_reference_fault(LIMITS, GOOD.q, math.nan * straight, None, 0.0)
    for factor in (1.1, -1.0):
        bad = straight.copy()
        bad[:3, :3] *= factor
        assert 'not a rotation' in pose_reference_fault(LIMITS, GOOD.q, bad, None, 0.0)


def test_whatever_is_asked_for_limits_and_rates_hold() -> None:
    random = np.random.default_rng(1)
    memory, t = begin(np.zeros(3), 0.0), 0.0
    for _ in range(3000):
        t += random.choice([-1.0, 0.0, 1e-4, 0.01, 0.2, 5.0])
        wanted = random.choice([math.nan, math.inf, -1e12, -5e3, 0.0, 60e3, 1e12], random.integers(2, 5))
        request = Request(
            None if random.random() < 0.05 else wanted if random.random() < 0.3 else np.resize(wanted, 3),
            'x' if random.random() < 0.1 else '',
            t if random.random() < 0.5 else 0.0,
        )
        after = advance(LIMITS, memory, t, request)
        assert np.all((after.pressure >= LIMITS.pressure_min) & (after.pressure <= LIMITS.pressure_max))
        assert np.all(np.abs(after.pressure - memory.pressure) <= 0.05 * LIMITS.slew * (1 + 1e-9))
        memory = after


def test_limits_come_from_the_robot_file() -> None:
    limits = Limits.of(robot_of('honeycomb_arm'))
    assert (limits.pressure_max, limits.slew, limits.vent_rate) == (250e3, 2e6, 250e3)
    with pytest.raises(ValueError, match='pressure_min <= 0'):
        replace(LIMITS, pressure_min=1.0)
