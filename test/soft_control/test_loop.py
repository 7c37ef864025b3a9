"""The control loop around any law: its response to states, references and failing laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from loop_bench import DT, LIMITS, ROBOT, Bench

from soft_control.safety.state_machine import Mode, State
from soft_dynamics.errors import SingularInertia
from soft_dynamics.geometry.se3 import moved, pose_error


def test_no_state_any_more_vents(bench: Bench) -> None:
    bench.state = None
    memory = bench.run(20)
    assert (memory.mode, memory.reason) == (Mode.VENTING, 'no state for 0.1 s')
    memory = bench.run(200)
    assert memory.mode is Mode.IDLE
    bench.state = np.zeros(8)
    assert bench.run(20).mode is Mode.IDLE  # the reference has expired
    bench.loop.follow(bench.t, bench.reference)
    assert bench.run().mode is Mode.FOLLOWING


def test_nothing_is_inflated_before_a_reference() -> None:
    bench = Bench()
    for _ in range(20):
        memory = bench.run()
        assert memory.mode is Mode.IDLE
        assert not np.any(memory.pressure)


def test_after_a_fault_everything_begins_anew(bench: Bench) -> None:
    """After a fault, a new reference starts at the robot's state, and the law at the present forces."""
    bench.state = np.full(8, math.nan)
    bench.run()
    bench.state = np.full(8, 0.3)
    for _ in range(2):  # the first is a jump from NaN
        memory = bench.run()
    np.testing.assert_allclose(bench.loop.present(bench.t).q, 0.3)
    bench.law.started = np.zeros(8)
    bench.reference.value = np.full(8, 0.3)
    bench.loop.follow(bench.t, bench.reference)
    assert bench.run().mode is Mode.FOLLOWING
    assert np.any(bench.law.started)
    assert np.all(memory.pressure >= 0.0)


def nan_state(bench: Bench) -> None:
    bench.state = np.full(8, math.nan)


def jump_of_state(bench: Bench) -> None:
    bench.state = np.full(8, 2.0)


def jump_of_reference(bench: Bench) -> None:
    bench.reference.value = np.full(8, 2.0)


def end_of_reference(bench: Bench) -> None:
    bench.reference.expires = bench.t


def forces_without_sense(bench: Bench) -> None:
    bench.law.tau = np.full(8, math.nan)


def endless_force(bench: Bench) -> None:
    bench.law.tau = np.r_[math.inf, np.zeros(7)]


def failing_law(bench: Bench) -> None:
    bench.law.failure = SingularInertia('theta1')


def law_that_refuses(bench: Bench) -> None:
    bench.law.failure = ValueError('kind: expected pressure')


def law_that_divides_by_zero(bench: Bench) -> None:
    bench.law.failure = ZeroDivisionError('division by zero')


def jump_of_state_between_cycles(bench: Bench) -> None:
    """Two states arrive in one cycle, and the second is near the first."""
    bench.state = np.full(8, 2.0)
    bench.loop.feed(State(bench.t + 0.5 * DT, bench.state, np.zeros(8)))


@pytest.mark.parametrize(
    ('trouble', 'reason'),
    [
        (nan_state, 'state is not finite'),
        (jump_of_state, 'state jumps'),
        (jump_of_reference, 'reference jumps'),
        (end_of_reference, 'no reference for too long'),
        (jump_of_state_between_cycles, 'state jumps'),
        (forces_without_sense, 'forces are not finite'),
        (endless_force, 'forces are not finite'),
        (law_that_refuses, 'the law failed: kind: expected pressure'),
        (law_that_divides_by_zero, 'the law failed: division by zero'),
        (failing_law, "the law failed: coordinate 'theta1' moves no mass in this pose"),
    ],
)
def test_trouble_vents(bench: Bench, trouble: Any, reason: str) -> None:
    before = bench.loop.memory.pressure
    trouble(bench)
    memory = bench.run()
    assert (memory.mode, memory.reason) == (Mode.VENTING, reason)
    assert np.all(memory.pressure <= before)
    assert np.all(before - memory.pressure <= 250e3 * DT * (1 + 1e-9))


def test_an_emergency_stop_lasts_until_the_next_begin(bench: Bench) -> None:
    bench.loop.stop()
    assert bench.run(200).mode is Mode.STOPPED
    with pytest.raises(ValueError, match='not ready: emergency stop'):
        bench.loop.present(bench.t)
    bench.loop.follow(bench.t, bench.reference)
    assert not np.any(bench.run(20).pressure)
    bench.loop.begin(bench.t)
    bench.run()
    bench.loop.follow(bench.t, bench.reference)
    assert bench.run(5).mode is Mode.FOLLOWING


def test_no_reference_is_taken_without_a_state() -> None:
    bench = Bench()
    with pytest.raises(ValueError, match='not ready: no state yet'):
        bench.loop.present(0.0)


def test_a_law_learns_what_acts_and_what_the_limits_left() -> None:
    bench, held = Bench(), np.linspace(10e3, 90e3, 16)
    A = ROBOT.actuation(ROBOT.rest)
    bench.loop.begin(0.0, held)
    bench.law.tau = np.tile([50.0, 0.0], 4)
    bench.loop.feed(State(0.0, np.zeros(8), np.zeros(8)))
    bench.loop.follow(0.0, bench.reference)
    memory = bench.run()
    np.testing.assert_allclose(bench.law.started, A @ held)
    np.testing.assert_allclose(bench.law.left, A @ memory.pressure, atol=1e-9)
    memory = bench.run(15)
    np.testing.assert_allclose(bench.law.left, A @ memory.pressure, atol=1e-9)
    assert memory.pressure.max() == pytest.approx(LIMITS.pressure_max)


def test_a_speedup_makes_the_valves_follow_that_much_faster() -> None:
    """With T dp/dt = c - p the pressures behind the valves behave as if the lag were T/k."""
    bench = Bench(lag_speedup=4.0)
    bench.run()
    bench.loop.follow(bench.t, bench.reference)
    p, last, wanted = np.zeros(16), 0.0, 0.0
    for _ in range(8):
        memory = bench.run()
        p = memory.pressure + math.exp(-DT / LIMITS.valve_lag) * (p - memory.pressure)
        last, wanted = float((ROBOT.actuation(ROBOT.rest) @ p)[0]), bench.law.tau[0]
    assert last > 0.95 * wanted  # 80 ms are 1.6 T: the valves alone would be at 0.80


OFFSET = np.array([0.02, -0.03, 0.05, 0.01, 0.02, -0.005])  # [rad], [m]


def tip_of(bench: Bench) -> np.ndarray | None:
    bench.run()
    assert bench.loop.state is not None
    return bench.loop.state.X_WT


def test_a_measured_tip_moves_the_tip_of_every_state() -> None:
    """Also for states at other coordinates: the measured offset moves with the model's tip."""
    bench = Bench()
    assert tip_of(bench) is None
    X_WT = moved(ROBOT.pose(np.zeros(8), 'tip'), OFFSET)
    bench.loop.feed_tip(bench.t, X_WT)
    np.testing.assert_allclose(tip_of(bench), X_WT, atol=1e-12)
    bench.state = np.full(8, 0.02)
    np.testing.assert_allclose(pose_error(tip_of(bench), ROBOT.pose(bench.state, 'tip')), OFFSET, atol=1e-12)


def test_a_state_without_sense_vents_beside_a_measured_tip(bench: Bench) -> None:
    bench.loop.feed_tip(bench.t, moved(ROBOT.pose(np.zeros(8), 'tip'), OFFSET))
    assert tip_of(bench) is not None
    bench.state = np.full(8, math.nan)
    assert bench.run().reason == 'state is not finite'


def test_a_tip_measured_a_while_ago_belongs_to_where_the_robot_was() -> None:
    bench, qd = Bench(), np.full(8, 0.5)
    bench.loop.feed(State(1.0, 0.1 * qd, qd))
    bench.loop.feed_tip(0.98, ROBOT.pose(0.1 * qd - 0.02 * qd, 'tip'))
    bench.loop.feed(State(1.01, 0.12 * qd, qd))
    assert bench.loop.state is not None
    np.testing.assert_allclose(bench.loop.state.X_WT, ROBOT.pose(0.12 * qd, 'tip'), atol=1e-12)


@pytest.mark.parametrize(
    ('later', 'offset'),
    [
        (0.2, OFFSET),  # long after the state
        (-0.2, OFFSET),  # long before the state
        (0.0, np.r_[np.zeros(3), 0.5, 0.0, 0.0]),  # of another robot
        (0.0, np.r_[1.0, np.zeros(5)]),
        (0.0, np.r_[np.zeros(3), math.nan, 0.0, 0.0]),
    ],
)
def test_a_tip_that_cannot_be_is_left_out(later: float, offset: np.ndarray) -> None:
    bench = Bench()
    bench.run()
    bench.loop.feed_tip(bench.t + later, moved(ROBOT.pose(np.zeros(8), 'tip'), offset))
    assert tip_of(bench) is None


def test_a_tip_beside_a_bad_state_and_one_that_comes_late_are_left_out() -> None:
    bench, X_WT = Bench(), moved(ROBOT.pose(np.zeros(8), 'tip'), OFFSET)
    bench.state = np.full(8, math.nan)
    bench.run()
    bench.loop.feed_tip(bench.t, X_WT)
    bench.state = np.zeros(8)
    assert tip_of(bench) is None
    bench.loop.feed_tip(bench.t, X_WT)
    bench.loop.feed_tip(bench.t - 0.05, ROBOT.pose(np.zeros(8), 'tip'))
    np.testing.assert_allclose(tip_of(bench), X_WT, atol=1e-12)


def test_the_offset_of_a_tip_that_is_measured_no_more_fades() -> None:
    """The tip offset fades without a jump, and returns without one when the tip is measured again."""
    bench, model = Bench(), ROBOT.pose(np.zeros(8), 'tip')
    bench.run()
    bench.loop.follow(bench.t, bench.reference)
    bench.run(10)
    last, offsets = np.zeros(6), []
    for k in range(1500):
        if not 200 <= k < 1200:
            bench.loop.feed_tip(bench.t, moved(model, OFFSET))
        X_WT = tip_of(bench)
        assert X_WT is not None
        now = pose_error(X_WT, model)
        assert np.max(np.abs(now - last)) < 0.11 * np.max(np.abs(OFFSET))
        last = now
        offsets.append(now)
    np.testing.assert_allclose(offsets[240], OFFSET, rtol=1e-2)
    np.testing.assert_allclose(offsets[1199], 0.0, atol=1e-4)
    np.testing.assert_allclose(offsets[-1], OFFSET, rtol=1e-2)
