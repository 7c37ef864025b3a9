"""False states: each kind vents the arm in bounded time, and true states do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from closed_loop import robot_of
from loop_bench import DT, LIMITS, Bench

from benchmarks.lying_states import BEGIN_T, HONEST, LIES, ROBOTS, Lie, frozen, run
from soft_control.allocation.valve_model import Valves
from soft_control.safety.force_balance import LOAD, ForceBalance
from soft_control.safety.state_machine import Mode, State
from soft_dynamics.frozen_samples import MOVED, REPEATS, FrozenSamples

OF_STATES = [lie for lie in LIES if not lie.of_poses]
LONGEST = 2.0  # [s] from the start of the fault to venting; a drift is harmless at first
OF_DRIFT = 3.5  # [s]


@pytest.mark.parametrize('lie', OF_STATES, ids=lambda lie: lie.name)
@pytest.mark.parametrize('name', ROBOTS)
def test_a_lie_vents_before_the_arm_is_at_full_pressure_for_long(name: str, lie: Lie) -> None:
    found = run(name, lie, BEGIN_T + 5.0)
    assert found.vented < (OF_DRIFT if 'drift' in lie.name else LONGEST)
    assert found.full < 0.5
    assert any(f'state {fault}' in found.reason for fault in ('is frozen', 'does not follow', 'jumps'))


@pytest.mark.parametrize(('spread', 'load'), [(0.1, 0.0), (0.2, 0.5), (0.3, 0.0)])
@pytest.mark.parametrize('name', ROBOTS)
def test_an_honest_robot_is_followed(name: str, spread: float, load: float) -> None:
    """With models up to 30 % off, and 500 g at the tip."""
    assert run(name, HONEST[0], 6.0, spread, load).vented == math.inf


def test_a_robot_without_noise_that_rests_is_not_frozen() -> None:
    """Also while its pressures are constant."""
    largest, watch = 100e3, FrozenSamples(100e3)
    p, moved = np.zeros(4), np.array([0.0, 1.01 * MOVED * largest, 0.0, 0.0])
    assert not any(watch.feed(b'q', p) for _ in range(100 * REPEATS))
    assert watch.feed(b'q', moved)
    assert watch.feed(b'q', p)  # still
    assert not watch.feed(b'r', moved)
    assert not any(watch.feed(b'r', p) for _ in range(REPEATS - 2))
    assert watch.feed(b'r', p)


def test_a_frozen_state_is_followed_again_once_it_moves(bench: Bench) -> None:
    still = State(bench.t, np.full(8, 1e-3), np.zeros(8))
    bench.law.tau = np.zeros(8)
    for _ in range(2 * REPEATS):
        bench.t += DT
        bench.loop.feed(still._replace(t=bench.t))
        memory = bench.loop.step(bench.t)
    assert memory.mode is not Mode.FOLLOWING
    assert 'frozen' in memory.reason
    with pytest.raises(ValueError, match='not ready: state is frozen'):
        bench.loop.present(bench.t)
    bench.run(300)
    bench.loop.follow(bench.t, bench.reference)
    assert bench.run().mode is Mode.FOLLOWING


@pytest.mark.parametrize(('share', 'is_wrong'), [(0.9 * LOAD, False), (1.2 * LOAD, True)])
def test_the_force_of_the_chambers_that_a_state_need_not_show(share: float, is_wrong: bool) -> None:
    """A straight arm at rest shows no force, so the pressures may exceed it only by what a load can explain."""
    robot = robot_of('honeycomb_arm')
    A, balance = robot.actuation(robot.rest), ForceBalance(robot, None)
    p = share * LIMITS.pressure_max * (A[2] > 0.0)
    for k in range(200):
        balance.feed(State(k * DT, robot.rest, np.zeros(8)), lambda: (p, p))
    assert balance.wrong == ('segment2_theta1' if is_wrong else '')


def test_a_chamber_sensor_that_shows_nothing_is_not_held_against_the_state() -> None:
    """A state that fits the commanded or the measured pressures may be right."""
    robot = robot_of('honeycomb_arm')
    balance, p = (
        ForceBalance(robot, None),
        np.full(16, LIMITS.pressure_max) * (robot.actuation(robot.rest)[2] > 0.0),
    )
    for k in range(200):
        balance.feed(State(k * DT, robot.rest, np.zeros(8)), lambda: (0.0 * p, p))
    assert balance.wrong == ''


def test_measured_pressures_that_cannot_be_explain_nothing() -> None:
    valves = Valves(robot_of('honeycomb_arm').description)
    valves.measured(0.0, np.r_[1e308, -1e308, np.nan, np.zeros(13)])
    low, high = valves.bounds()
    assert np.all(low == 0.0)
    assert np.all(high == np.r_[LIMITS.pressure_max, np.zeros(15)])


def test_an_arm_of_discs_is_not_judged() -> None:
    robot = robot_of('fabric_arm')
    balance, p = ForceBalance(robot, None), np.array([13.0])
    for k in range(100):
        balance.feed(State(k * DT, robot.rest + 0.1, np.zeros(robot.nq)), lambda: (p, p))
    assert balance.wrong == ''


def test_the_lie_of_the_benchmark_repeats_the_first_state() -> None:
    say = frozen()
    first = say(0.0, np.ones(2), np.zeros(2))
    assert say(1.0, np.zeros(2), np.ones(2)) is first
