"""Motions: energy, power, agreement between methods, massless modes, singular poses, refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from compare import assert_close
from reference.schultz import Schultz, SchultzParameters
from reference.schultz_regular import SchultzRegular, motion

import soft_dynamics as sd


def undamped(name):
    """A shipped robot without dampers, with the exact mass placement where the paper's does not conserve energy."""
    description = sd.load(name).description
    segments = []
    for s in description.segments:
        if hasattr(s, 'material'):
            s = dataclasses.replace(s, material=dataclasses.replace(s.material, damping=()))
        if getattr(s, 'placement', '') == 'lumped':
            s = dataclasses.replace(s, placement='distributed')
        if hasattr(s, 'springs'):
            s = dataclasses.replace(s, damping=(0.0,) * 5)
        segments.append(s)
    return sd.Robot(dataclasses.replace(description, segments=tuple(segments)))


def start(robot, seed=3):
    rng = np.random.default_rng(seed)
    q = robot.rest + 0.3 * rng.uniform(-1, 1, robot.nq)
    qd = 0.5 * rng.uniform(-1, 1, robot.nq)
    if robot.name == 'floating_actuator':
        q, qd = robot.rest.copy(), np.zeros(9)
        q[6:] += (0.01, -0.02, 0.01)
    if robot.name == 'fabric_arm':
        q[1::5] += 0.6
    return q, qd


def random_pressures(robot, t, seed=8):
    """From zero through random pressures every 0.5 s, joined by straight lines."""
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.0, 0.6, (int(t[-1] / 0.5) + 2, len(robot.chamber_names)))
    steps[0] = 0.0
    knots = np.arange(len(steps)) * 0.5
    return robot.description.actuation.pressure_max * np.stack([np.interp(t, knots, s) for s in steps.T], 1)


@pytest.mark.parametrize('name', sd.robot_names())
def test_energy_is_conserved_without_damping(name):
    robot = undamped(name)
    q0, qd0 = start(robot)
    step = {'bending_actuator': 1.25e-5, 'fabric_arm': 2e-3}.get(name, 1e-4)
    motion_ = robot.simulate(q0, qd0, None, np.linspace(0.0, 10.0, 101), 'rk4', step=step)
    energy = sum(robot.energy(motion_.q, motion_.qd))
    scale = np.ptp(robot.energy(motion_.q, motion_.qd)[0])
    assert np.abs(energy - energy[0]).max() <= 1e-6 * scale


@pytest.mark.parametrize(
    ('name', 'seconds', 'step', 'lost'),
    [
        ('fabric_arm', 10.0, None, 1e-9),  # by RK4
        ('floating_actuator', 10.0, None, 2e-4),
        ('pneumatic_arm', 10.0, None, 1e-3),
        ('honeycomb_arm', 10.0, None, 1e-2),
        ('bending_actuator', 2.0, 1e-4, 2e-5),  # too stiff for the default step without its dampers
    ],
)
def test_default_method_loses_little_energy_and_makes_none(name, seconds, step, lost):
    """Energy drift of the default method at its default step, in parts of the kinetic energy (docs/theory/chain.md)."""
    robot = undamped(name)
    run = robot.simulate(*start(robot), None, np.linspace(0.0, seconds, 101), step=step)
    kinetic, gravitational, elastic = robot.energy(run.q, run.qd)
    change = kinetic + gravitational + elastic - (kinetic + gravitational + elastic)[0]
    print(f'{name}: {np.abs(change).max() / np.ptp(kinetic):.1e} of the kinetic energy')
    assert np.abs(change).max() <= lost * np.ptp(kinetic)
    assert change[-1] <= 1e-9 * np.ptp(kinetic)


@pytest.mark.parametrize(
    'name',
    ['pneumatic_arm distributed', 'floating_actuator', 'honeycomb_arm', 'bending_actuator', 'fabric_arm'],
)
def test_change_of_energy_is_the_work_of_pressures_and_dampers(name):
    changes = {'segment_defaults': {'damping_on': 'rates', 'damping': [0.0, 2.0, 3.0, 4.0, 5.0]}}
    robot = sd.load(name.split()[0], changes if name == 'fabric_arm' else None)
    if 'distributed' in name:
        placed = [s | {'placement': 'distributed'} if s['type'] == 'arc' else s for s in _segments(robot)]
        robot = sd.load('pneumatic_arm', {'segments': placed})
    t = np.linspace(0.0, 1.0, 4001)
    p = random_pressures(robot, t)
    begin = start(robot) if name == 'fabric_arm' else (robot.rest, np.zeros(robot.nq))
    run = robot.simulate(*begin, p, t, step=2.5e-4)
    drive = np.einsum('kij,kj->ki', robot.actuation(run.q), p)
    power = np.einsum('ki,ki->k', run.qd, drive - robot.damping(run.q, run.qd))
    work = np.concatenate(
        [[0.0], np.cumsum((power[:-2:2] + 4 * power[1::2] + power[2::2]) * (t[2] - t[0]) / 6.0)]
    )
    energy = sum(robot.energy(run.q, run.qd))[::2]
    assert_close(energy - energy[0], work, 1e-5)


def _segments(robot):
    return [dataclasses.asdict(s) for s in robot.description.segments]


def test_implicit_method_is_accurate_at_its_default_step_and_of_order_four():
    robot = sd.load('pneumatic_arm')
    t = np.linspace(0.0, 2.0, 201)

    def pressures(now):
        return 60e3 * (1.0 + np.sin(2.0 * now + np.arange(12)))

    exact = robot.simulate(np.zeros(6), np.zeros(6), pressures, t, 'DOP853', rtol=1e-11, atol=1e-12)
    default = robot.simulate(np.zeros(6), np.zeros(6), pressures, t)
    assert np.abs(default.q - exact.q).max() < 1e-4
    errors = [
        np.abs(robot.simulate(np.zeros(6), np.zeros(6), pressures, t, step=h).q - exact.q).max()
        for h in (1e-2, 5e-3, 2.5e-3)
    ]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 3.3)


@pytest.mark.parametrize('method', ['rk4', 'BDF', 'Radau', 'LSODA', 'DOP853'])
def test_methods_agree(method):
    robot = sd.load('honeycomb_arm')
    t = np.linspace(0.0, 1.0, 51)
    p = random_pressures(robot, t)
    q0 = np.full(8, 0.2)
    reference = robot.simulate(q0, np.zeros(8), p, t, 'implicit', step=1e-3)
    other = robot.simulate(q0, np.zeros(8), p, t, method, rtol=1e-9, atol=1e-11)
    assert np.abs(other.q - reference.q).max() < 1e-5


def test_massless_modes_of_the_papers_universal_arm_are_resolved():
    """With the paper's masses M has rank 3n; the modes without mass obey N^T (k + d - tau) = 0.  [equations D6]"""
    data = {'segment_defaults': {'lengths': 'free'}}
    robot = sd.load('honeycomb_arm', data)
    t = np.linspace(0.0, 1.0, 101)
    q0 = robot.rest + np.tile([0.0, 0.2, -0.1, 0.0], 4)
    run = robot.simulate(q0, np.zeros(16), None, t, step=1e-3)
    for q, qd in zip(run.q[20:], run.qd[20:], strict=True):
        vectors = np.linalg.svd(robot.mass_matrix(q))[2][12:]
        held = robot.elastic(q) + robot.damping(q, qd)
        assert np.abs(vectors @ held).max() < 1e-3 * np.abs(held).max()
    nearly = sd.load(
        'honeycomb_arm', {'segment_defaults': {**data['segment_defaults'], 'joint_mass_fraction': 1e-4}}
    )
    close = nearly.simulate(q0, np.zeros(16), None, t, 'Radau', rtol=1e-8, atol=1e-10)
    assert np.abs(close.q - run.q).max() < 2e-3


def test_reduced_and_full_universal_arm_agree_when_the_links_are_stiff():
    stiff = {'lengths': 'free', 'link_stiffness': 1e6, 'link_damping': 1e4}
    full = sd.load('honeycomb_arm', {'segment_defaults': stiff})
    reduced = sd.load('honeycomb_arm')
    t = np.linspace(0.0, 1.0, 51)
    angles = np.tile([0.2, -0.1], 4)
    q0 = full.rest + np.tile([0.0, 0.2, -0.1, 0.0], 4)
    long = full.simulate(q0, np.zeros(16), None, t).q.reshape(51, 4, 4)[:, :, 1:3].reshape(51, 8)
    assert np.abs(long - reduced.simulate(angles, np.zeros(8), None, t).q).max() < 1e-3


def test_valve_lag_is_a_first_order_response():
    robot = sd.load('floating_actuator')
    t = np.linspace(0.0, 0.05, 26)
    run = robot.simulate(robot.rest, np.zeros(9), lambda now: np.full(3, 5e4), t, valve=True)
    assert_close(run.inputs, 5e4 * (1.0 - np.exp(-t / 0.007))[:, None] * np.ones(3), 1e-3)
    assert np.all(robot.simulate(robot.rest, np.zeros(9), np.full((26, 3), 5e4), t).inputs == 5e4)


def test_base_of_the_carried_actuator_stays_where_it_is():
    robot = sd.load('floating_actuator')
    q0 = robot.rest.copy()
    q0[:6] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    run = robot.simulate(q0, np.zeros(9), np.full((11, 3), 3e4), np.linspace(0.0, 0.5, 11))
    assert_close(run.q[:, :6], np.tile(q0[:6], (11, 1)), 1e-15)
    assert np.ptp(run.q[:, 8]) > 1e-4


# ---- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'method'), [('floating_actuator', 'implicit'), ('fabric_arm', 'rk4'), ('honeycomb_arm', 'BDF')]
)
def test_a_batch_is_the_motions_one_by_one(name, method):
    robot = sd.load(name)
    t = np.linspace(0.0, 0.1, 6)
    q0, qd0 = (np.array(part) for part in zip(*(start(robot, seed) for seed in range(3)), strict=True))
    p = np.stack([random_pressures(robot, t + 1.0, seed) for seed in range(3)])
    run = robot.simulate(q0, qd0, p, t, method, valve=True)
    alone = [robot.simulate(q0[k], qd0[k], p[k], t, method, valve=True) for k in range(3)]
    for field in ('q', 'qd', 'inputs'):
        assert_close(getattr(run, field), np.array([getattr(one, field) for one in alone]), 1e-12)


def test_inputs_of_a_batch_may_be_common_or_a_function():
    robot = sd.load('honeycomb_arm')
    t = np.linspace(0.0, 0.1, 6)
    q0 = np.array([np.zeros(8), np.full(8, 0.2)])
    slopes = 1e5 * np.arange(1, 3)[:, None] * np.arange(16)
    own = robot.simulate(q0, np.zeros(8), t[:, None] * slopes[:, None], t, 'rk4')
    assert_close(robot.simulate(q0, np.zeros(8), lambda now: now * slopes, t, 'rk4').q, own.q, 1e-9)
    common = robot.simulate(q0, np.zeros(8), t[:, None] * slopes[0], t, 'rk4')
    assert common.inputs.shape == (6, 16)
    assert_close(common.q[0], own.q[0], 1e-12)
    assert np.abs(common.q[1] - own.q[1]).max() > 1e-6


# ---- discs ----------------------------------------------------------------------------------------------------------


def test_discs_pass_through_the_straight_pose():
    """A conservative swing through beta = 0, where the angles have no acceleration, against Kane's equations."""
    parameters = SchultzParameters(mass=(2.0,), damping=0.0)
    angles = Schultz(parameters, 'axis_angle')
    description = sd.load(
        'fabric_arm', {'segment_defaults': {'damping': [0.0] * 5}, 'gravity': [0.0, -9.81, 0.0]}
    )
    robot = sd.Robot.from_dict(_one_disc(description))
    q0, qd0 = np.array([0.0, 0.4, 0.1, -0.2, 0.2]), np.array([0.0, -2.5, 0.0, 0.4, -0.2])
    t = np.linspace(0.0, 1.0, 41)
    run = robot.simulate(q0, qd0, None, t, 'rk4', step=1e-3)
    kane = SchultzRegular(parameters, 0.0)
    expected = np.array([kane.origins(m)[-1] for m in kane.simulate(motion(angles, q0, qd0), t)])
    tips = np.array([robot.pose(q, 'tip') for q in run.q])
    assert_close(tips[:, :3, 3], expected, 1e-6, 1.0)
    assert np.abs(run.q[:, 1]).min() < 0.02
    energy = sum(robot.energy(run.q, run.qd))
    assert np.abs(energy - energy[0]).max() < 1e-6 * np.ptp(robot.energy(run.q, run.qd)[0])


def _one_disc(robot):
    spring = {'stiffness': 1.0, 'rest_length': 1.0}
    disc = {
        'type': 'disc',
        'name': 'disc2',
        'thread_length': 1.0,
        'radius': 1.0,
        'mass': 2.0,
        'springs': [{'angle': a * np.pi / 2, **spring} for a in (1, 2, 3)],
    }
    return {'format': 1, 'name': 'one', 'gravity': list(robot.description.gravity), 'segments': [disc]}


def test_planar_motion_stays_planar_and_hangs():
    """Section V of the paper without pressure: alpha, gamma and phi stay zero, and the robot hangs straight down."""
    robot = sd.load('fabric_arm')
    q0 = np.zeros(15)
    q0[1::5] = (0.1, 0.01, 0.01)
    run = robot.simulate(q0, np.zeros(15), None, np.linspace(0.0, 60.0, 121), step=2e-3)
    assert np.abs(run.q.reshape(-1, 3, 5)[:, :, [0, 2, 4]]).max() < 1e-9
    centre = robot.pose(run.q[-1], 'tip') @ np.array([0.0, 1.0, 0.0, 1.0])
    assert_close(centre[:2], [0.0, -4.0], 0.02)


@pytest.mark.parametrize(
    'fold',
    [
        [0.0, np.pi, 0.0, 0.0, 0.0],  # thread folded back
        [0.4, 0.0, 0.2, np.pi / 2, 0.1],  # gamma and phi axes parallel
        [0.0, 0.0, 0.0, 0.0, 0.0],  # straight
        [1.0, 2.8, -0.5, 1.4, 0.3],  # kinked
    ],
)
def test_folded_kinked_and_straight_poses_move_on(fold):
    robot = undamped('fabric_arm')
    q0 = np.concatenate([fold, [0.1, 0.5, 0.0, 0.2, 0.0], fold])
    run = robot.simulate(q0, np.zeros(15), None, np.linspace(0.0, 1.0, 21), 'rk4', step=5e-4)
    assert np.all(np.isfinite(run.q))
    assert np.abs(run.q[-1] - q0).max() > 0.01
    X0 = robot.pose(q0, 'tip')
    assert_close(robot.pose(run.q[0], 'tip'), X0, 1e-9)
    kinetic, gravitational, elastic = robot.energy(run.q, run.qd)
    energy = kinetic + gravitational + elastic
    assert_close(energy, np.full(21, energy[0]), 1e-6, np.ptp(kinetic))


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_a_motion_that_cannot_go_on_says_where():
    """Beyond 44.7 mm the extension spring of Table I softens and changes sign; the actuator diverges."""
    robot = sd.load('floating_actuator')
    q0 = robot.rest.copy()
    q0[8] = 0.12
    with pytest.raises(sd.NotConverged, match='simulation stopped at t = ') as caught:
        robot.simulate(q0, np.zeros(9), None, np.linspace(0.0, 5.0, 11))
    assert 0.0 < caught.value.time < 5.0
    assert np.all(np.isfinite(caught.value.state[0]))
    with pytest.raises(sd.NotConverged, match='no next state in motion 1 '):
        robot.simulate([robot.rest, q0], np.zeros(9), None, np.linspace(0.0, 5.0, 11))


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'t_eval': [0.0, 0.0, 1.0]}, 't_eval: expected rising times'),
        ({'method': 'euler'}, "method: expected one of implicit, rk4.*got 'euler'"),
        ({'inputs': np.zeros((3, 2))}, r'inputs: expected shape \(11, 16\), got \(3, 2\)'),
        ({'inputs': lambda t: np.zeros(3)}, r'inputs\(t\): expected shape \(16,\), got \(3,\)'),
        ({'kind': 'torque'}, "kind: expected 'pressure' or 'force'"),
        ({'step': -1.0}, 'step: expected a finite number > 0, got -1.0'),
        ({'method': 'BDF', 'rtol': np.nan}, 'rtol: expected a finite number > 0, got nan'),
        (
            {'q0': np.zeros((2, 8)), 'inputs': np.zeros((3, 11, 16))},
            r'expected shape \(11, 16\) or \(2, 11, 16\)',
        ),
        ({'q0': np.zeros((2, 8)), 'qd0': np.zeros((3, 8))}, 'batches of different lengths'),
        ({'q0': np.zeros(3)}, 'q0: expected shape'),
    ],
)
def test_wrong_arguments_are_named(change, message):
    robot = sd.load('honeycomb_arm')
    good = {'q0': np.zeros(8), 'qd0': np.zeros(8), 'inputs': None, 't_eval': np.linspace(0.0, 0.1, 11)}
    with pytest.raises(ValueError, match=message):
        robot.simulate(**{**good, **change})


def test_discs_have_no_implicit_method_and_do_not_pretend():
    discs, arm, t = sd.load('fabric_arm'), sd.load('honeycomb_arm'), [0.0, 0.01]
    assert discs.simulate(np.zeros(15), np.zeros(15), None, t).method == 'rk4'
    assert arm.simulate(np.zeros(8), np.zeros(8), None, t).method == 'implicit'
    message = "method: expected one of rk4, BDF, Radau, LSODA, DOP853 for a robot of discs, got 'implicit'"
    with pytest.raises(ValueError, match=message):
        discs.simulate(np.zeros(15), np.zeros(15), None, t, 'implicit')


def test_progress_is_reported():
    robot = sd.load('honeycomb_arm')
    parts = []
    t = np.linspace(0.0, 2.0, 21)
    robot.simulate(np.zeros(8), np.zeros(8), None, t, step=4e-4, progress=parts.append)
    assert parts == sorted(parts)
    assert len(parts) > 1
    assert parts[-1] == 1.0


def test_forces_may_drive_instead_of_pressures():
    robot = sd.load('floating_actuator')
    t = np.linspace(0.0, 2.0, 21)
    force = np.zeros(9)
    force[8] = 1.0
    run = robot.simulate(robot.rest, np.zeros(9), np.tile(force, (21, 1)), t, kind='force')
    held = robot.gravity(run.q[-1]) + robot.elastic(run.q[-1])
    assert_close(held[6:], force[6:], 1e-3)
