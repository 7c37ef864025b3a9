"""Recursions without a second derivation: independent software, invariants, limits and refusals."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pinocchio as pin
import pytest
from compare import assert_close, slope
from numba.core.runtime import _nrt_python as nrt
from numba.core.runtime import rtsys
from reference import samples
from states import shipped_states

import soft_dynamics as sd
from soft_dynamics.model.mehl_regressor import PARAMETERS, known_forces, regressor

ROBOTS = sd.robot_names()


# ---- third parties --------------------------------------------------------------------------------------------------


def pinocchio_model(robot):
    """The honeycomb arm with free lengths and no springs, joint by joint; on a free-flyer if its base is free."""
    model = pin.Model()
    model.gravity.linear = np.array(robot.description.gravity)
    parent, here = 0, pin.SE3.Identity()

    def point(mass):
        return pin.Inertia(mass, np.zeros(3), np.zeros((3, 3)))

    base = robot.description.base
    if base.type == 'free':
        parent = model.addJoint(0, pin.JointModelFreeFlyer(), here, 'base')
        model.appendBodyToJoint(parent, pin.Inertia(base.mass, np.zeros(3), np.diag(base.inertia)), here)
    for s in robot.description.segments:
        end = 0.5 * (1.0 - s.joint_mass_fraction) * s.mass
        if parent:
            model.appendBodyToJoint(parent, point(end), here)
        joints = (pin.JointModelPZ(), pin.JointModelRY(), pin.JointModelRX(), pin.JointModelPZ())
        for k, joint in enumerate(joints):
            parent = model.addJoint(parent, joint, here, f'{s.name}_{k}')
            if k == 2:
                model.appendBodyToJoint(parent, point(s.joint_mass_fraction * s.mass), here)
        model.appendBodyToJoint(parent, point(end), here)
    return model


FREE_LINKS = {'lengths': 'free', 'joint_mass_fraction': 0.5, 'link_stiffness': 0.0, 'link_damping': 0.0}


@pytest.fixture(scope='module')
def free_arm():
    robot = sd.load('honeycomb_arm', {'segment_defaults': FREE_LINKS})
    return robot, pinocchio_model(robot)


def test_universal_chain_agrees_with_pinocchio(free_arm):
    robot, model = free_arm
    data = model.createData()
    for q, qd, qdd in zip(*shipped_states(robot, 200), strict=True):
        rigid = robot.inverse_dynamics(q, qd, qdd, elastic=False, damping=False)
        assert_close(rigid, pin.rnea(model, data, q, qd, qdd), 1e-10)
        mass = pin.crba(model, data, q)
        assert_close(robot.mass_matrix(q), np.triu(mass) + np.triu(mass, 1).T, 1e-10)
        tau = rigid + robot.elastic(q) + robot.damping(q, qd)
        assert_close(robot.forward_dynamics(q, qd, tau), qdd, 1e-9)


def test_linearization_agrees_with_pinocchio(free_arm):
    robot, model = free_arm
    data = model.createData()
    n = robot.nq
    for q, qd, tau in zip(*shipped_states(robot, 20), strict=True):
        A, B = robot.linearize(q, qd, tau + robot.elastic(q) + robot.damping(q, qd))
        pin.computeABADerivatives(model, data, q, qd, tau)
        K = np.diag(np.concatenate([[0.0, *s.material.stiffness, 0.0] for s in robot.description.segments]))
        D = np.diag(np.concatenate([[0.0, *s.material.damping, 0.0] for s in robot.description.segments]))
        assert_close(A[n:, :n], data.ddq_dq - data.Minv @ K, 1e-9)
        assert_close(A[n:, n:], data.ddq_dv - data.Minv @ D, 1e-9)
        assert_close(B[n:], data.Minv, 1e-9)


def test_free_base_agrees_with_pinocchios_free_flyer():
    """Its rates are those of position and Cardan angles; Pinocchio's are the twist in base axes."""
    base = {'type': 'free', 'mass': 1.5, 'inertia': [0.02, 0.03, 0.04]}
    robot = sd.load('honeycomb_arm', {'segment_defaults': FREE_LINKS, 'base': base})
    model = pinocchio_model(robot)
    data = model.createData()
    for q, qd, qdd in zip(*shipped_states(robot, 20), strict=True):
        X_WB, J = robot.pose(q, 'base'), robot.jacobian(q, 'base')
        R_WB, w_W = X_WB[:3, :3], J[:3] @ qd
        wd_W = J[:3] @ qdd + slope(lambda t, q=q, qd=qd: robot.jacobian(q + t * qd, 'base')[:3]) @ qd
        twist = np.concatenate([R_WB.T @ qd[:3], R_WB.T @ w_W])
        rate = np.concatenate([R_WB.T @ (qdd[:3] - np.cross(w_W, qd[:3])), R_WB.T @ wd_W])
        pose = np.concatenate([q[:3], pin.Quaternion(R_WB).coeffs(), q[6:]])
        tau = pin.rnea(model, data, pose, np.concatenate([twist, qd[6:]]), np.concatenate([rate, qdd[6:]]))
        expected = np.concatenate([R_WB @ tau[:3], (J[:3, 3:6]).T @ R_WB @ tau[3:6], tau[6:]])
        assert_close(robot.inverse_dynamics(q, qd, qdd, elastic=False, damping=False), expected, 1e-10)
        assert_close(robot.forward_dynamics(q, qd, expected, elastic=False, damping=False), qdd, 1e-9)


def test_planar_links_agree_with_pinocchio():
    robot = sd.load('bending_actuator', {'gravity': [0.0, -9.81, 0.0]})
    model, parent = pin.Model(), 0
    model.gravity.linear = np.array(robot.description.gravity)
    for k, s in enumerate(robot.description.segments):
        placement = pin.SE3(np.eye(3), np.array([0.0, s.length if k else 0.0, 0.0]))
        parent = model.addJoint(parent, pin.JointModelRZ(), placement, s.name)
        inertia = np.diag([0.0, 0.0, s.mass * s.length**2 / 12.0])
        body = pin.Inertia(s.mass, np.array([0.0, s.length / 2.0, 0.0]), inertia)
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    data = model.createData()
    for q, qd, qdd in zip(*shipped_states(robot, 100), strict=True):
        expected = pin.rnea(model, data, q, qd, qdd)
        assert_close(robot.inverse_dynamics(q, qd, qdd, elastic=False, damping=False), expected, 1e-10)


# ---- structure ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ROBOTS)
def test_batches_are_many_single_states(name):
    robot = sd.load(name)
    q, qd, tau = shipped_states(robot, 7)
    for call in (robot.inverse_dynamics, robot.forward_dynamics):
        assert_close(call(q, qd, tau), [call(*state) for state in zip(q, qd, tau, strict=True)], 1e-12)
    assert_close(
        robot.linearize(q, qd, tau)[0], [robot.linearize(*s)[0] for s in zip(q, qd, tau, strict=True)], 1e-12
    )
    for call in (robot.mass_matrix, robot.gravity, robot.elastic, robot.forward_kinematics, robot.actuation):
        assert_close(call(q), [call(state) for state in q], 1e-12)
    assert_close(robot.jacobian(q, 'tip'), [robot.jacobian(state, 'tip') for state in q], 1e-12)
    assert_close(
        robot.inverse_dynamics(q, qd[0], tau[0]), robot.inverse_dynamics(q, qd[[0] * 7], tau[[0] * 7]), 1e-14
    )


def test_recursions_free_what_they_allocate_and_nothing_else():
    """The kernels handle arrays without reference counts, and must neither leak them nor free them early."""
    robot = sd.load('pneumatic_arm')
    state = [np.full(robot.nq, 0.1) for _ in range(3)]
    calls = robot.inverse_dynamics, robot.forward_dynamics, robot.linearize, robot.inverse_derivatives
    expected = [call(*state) for call in calls]
    held = [sys.getrefcount(array) for array in state]
    nrt.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        found = [[call(*state) for call in calls] for _ in range(100)][-1]
        after = rtsys.get_allocation_stats()
    finally:
        nrt.memsys_disable_stats()
    assert after.alloc - before.alloc >= 100 * len(calls)
    assert after.alloc - before.alloc == after.free - before.free
    assert [sys.getrefcount(array) for array in state] == held
    for first, last in zip(expected, found, strict=True):
        np.testing.assert_equal(last, first)


@pytest.mark.parametrize('name', ROBOTS)
def test_mass_matrix_is_symmetric_and_positive_where_it_should_be(name):
    robot = sd.load(name)
    for q in shipped_states(robot)[0]:
        M = robot.mass_matrix(q)
        free = M[6:, 6:] if name == 'floating_actuator' else M
        assert_close(M, M.T, 1e-14)
        assert np.linalg.eigvalsh(free)[0] > 0.0


def test_carried_actuator_has_no_inertia_of_its_base():
    M = (robot := sd.load('floating_actuator')).mass_matrix(shipped_states(robot, 1)[0][0])
    assert np.linalg.matrix_rank(M, tol=1e-12) == 3


def test_full_universal_arm_with_the_papers_masses_has_rank_3n():
    robot = sd.load('honeycomb_arm', {'segment_defaults': {'lengths': 'free'}})
    for q in shipped_states(robot, 5)[0]:
        assert np.linalg.matrix_rank(robot.mass_matrix(q), tol=1e-10) == 12
    with pytest.raises(sd.SingularInertia, match='segment'):
        robot.forward_dynamics(robot.rest, np.zeros(16), np.zeros(16))


def test_jensens_recipe_of_repeated_passes_gives_the_same_matrices():
    """M, C qd and G from inverse dynamics alone.                                             [Jensen, sec. III-D]"""
    robot = sd.load('pneumatic_arm')
    zero = np.zeros(6)
    for q, qd, qdd in zip(*shipped_states(robot, 5), strict=True):
        rigid = {'elastic': False, 'damping': False}
        G = robot.inverse_dynamics(q, zero, zero, **rigid)
        Cqd = robot.inverse_dynamics(q, qd, zero, gravity=False, **rigid)
        M = np.array([robot.inverse_dynamics(q, zero, e, gravity=False, **rigid) for e in np.eye(6)]).T
        assert_close(robot.mass_matrix(q), M, 1e-12)
        assert_close(robot.inverse_dynamics(q, qd, qdd, **rigid), M @ qdd + Cqd + G, 1e-12)


@pytest.mark.parametrize('name', [*ROBOTS, 'fabric_arm zxz', 'pneumatic_arm free'])
def test_external_wrench_works_through_the_jacobian(name):
    """On every frame: on the coordinates by virtual work, on the base as force and moment about the base."""
    changes = {
        'fabric_arm zxz': {'segment_defaults': {'angles': 'zxz'}},
        'pneumatic_arm free': {'base': {'type': 'free', 'mass': 1.0, 'inertia': [0.1, 0.1, 0.1]}},
    }
    robot = sd.load(name.split()[0], changes.get(name))
    states, wrench = shipped_states(robot, 2), np.array([0.3, -0.2, 0.1, 4.0, -5.0, 6.0])
    given = states[2][:, :6] if robot.description.base.type == 'prescribed' else None
    plain, free = robot.inverse_dynamics(*states), robot.base_wrench(*states)
    X_WB = robot.pose(states[0], 'base')
    for frame in (*robot.frame_names, 'tip'):
        push = {'external': {frame: wrench}}
        loaded = robot.inverse_dynamics(*states, **push)
        work = np.einsum('kij,i->kj', robot.jacobian(states[0], frame), wrench)
        assert_close(loaded, plain - work, 1e-12)
        qdd = robot.forward_dynamics(*states[:2], loaded, base_acceleration=given, **push)
        assert_close(qdd, states[2], 1e-9)
        arm = robot.pose(states[0], frame)[:, :3, 3] - X_WB[:, :3, 3]
        moment = wrench[:3] + np.cross(arm, wrench[3:])
        less = (free - robot.base_wrench(*states, **push)).reshape(-1, 2, 3)
        on_base = np.einsum('kij,kaj->kai', X_WB[:, :3, :3], less)
        assert_close(on_base, np.stack([moment, np.tile(wrench[3:], (2, 1))], 1), 1e-11, np.abs(free).max())


def test_tip_load_is_a_force_at_rest():
    robot = sd.load('honeycomb_arm')
    q = shipped_states(robot, 1)[0][0]
    weight = np.concatenate([np.zeros(3), 0.5 * np.array(robot.description.gravity)])
    assert_close(
        robot.with_tip_load(0.5).gravity(q), robot.gravity(q) - robot.jacobian(q, 'tip').T @ weight, 1e-12
    )


def test_link_lengths_are_parameters_of_the_reduced_arm():
    robot = sd.load('honeycomb_arm')
    d = np.array([[0.1, 0.09], [0.08, 0.1], [0.07, 0.08], [0.09, 0.06]])
    reference = samples.Wang(samples.WangParameters(), 'reduced', d=d)
    other = robot.with_link_lengths(d)
    for q, qd, qdd in zip(*shipped_states(robot, 5), strict=True):
        assert_close(other.inverse_dynamics(q, qd, qdd), reference.inverse_dynamics(q, qd, qdd), 1e-11)
        assert_close(other.forward_dynamics(q, qd, reference.inverse_dynamics(q, qd, qdd)), qdd, 1e-9)
    loaded = robot.with_tip_load(0.3).with_link_lengths(d)
    q = shipped_states(robot, 1)[0][0]
    assert_close(other.with_tip_load(0.3).mass_matrix(q), loaded.mass_matrix(q), 1e-14)
    assert_close(other.with_tip_load(0.3).pose(q, 'tip'), other.pose(q, 'tip'), 1e-14)


def test_link_lengths_that_cannot_be_are_refused():
    robot, d = sd.load('honeycomb_arm'), np.full((4, 2), 0.08)
    with pytest.raises(ValueError, match=r'lengths: expected shape \(4, 2\), got \(3, 2\)'):
        robot.with_link_lengths(d[:3])
    for bad in (0.0, -0.01):
        d[1, 1] = bad
        with pytest.raises(ValueError, match=f'lengths: expected numbers > 0 m, got {bad:g}'):
            robot.with_link_lengths(d)
    free = sd.load('honeycomb_arm', {'segment_defaults': {'lengths': 'free'}})
    for other, count in ((sd.load('fabric_arm'), 3), (sd.load('pneumatic_arm'), 3), (free, 4)):
        with pytest.raises(
            ValueError, match='lengths: expected a robot of universal segments with fixed lengths'
        ):
            other.with_link_lengths(np.full((count, 2), 0.08))


def test_base_wrench_without_actuation_is_selectable():
    """tau_0 - (tau_CC)_0: subtract the net effect of the wrench pair at tip and base.               [Mehl, eq. 17]"""
    robot = sd.load('floating_actuator')
    p = np.array([3e4, 5e4, 1e4])
    for q, qd, qdd in zip(*shipped_states(robot, 5), strict=True):
        base = robot.inverse_dynamics(q, qd, qdd)[:6] - (robot.actuation(q) @ p)[:6]
        W = robot.base_wrench(q, qd, qdd, minus_actuation=p)
        R = robot.pose(q, 'base')[:3, :3]
        E = robot.jacobian(q, 'base')[:3, 3:6]
        assert_close(R @ W[3:], base[:3], 1e-11, 1.0)
        assert_close(E.T @ R @ W[:3], base[3:], 1e-11, 1.0)
    states = shipped_states(robot, 3)
    together = robot.base_wrench(*states, minus_actuation=np.tile(p, (3, 1)))
    assert_close(together, robot.base_wrench(*states, minus_actuation=p), 1e-14)
    assert_close(robot.base_wrench(*states, minus_actuation=0 * p), robot.base_wrench(*states), 1e-14)
    with pytest.raises(ValueError, match=r'minus_actuation: expected shape \(3,\) or \(1, 3\), got \(2,\)'):
        robot.base_wrench(q, qd, qdd, minus_actuation=p[:2])


def test_axis_order_of_the_lists_is_switchable():
    swapped = sd.load('honeycomb_arm', {'segment_defaults': {'axis_order': 'xy'}})
    reference = samples.Wang(samples.WangParameters(order='swapped'), 'reduced')
    q, qd, qdd = (a[0] for a in shipped_states(swapped, 1))
    assert_close(swapped.inverse_dynamics(q, qd, qdd), reference.inverse_dynamics(q, qd, qdd), 1e-11)
    bags = np.arange(16).reshape(4, 4)[:, [0, 2, 1, 3]].ravel()  # 2 and 3 of each segment: see the robot file
    assert_close(swapped.actuation(q), reference.chamber_actuation(q)[:, bags], 1e-12)


@pytest.mark.parametrize('lengths', ['fixed', 'free'])
@pytest.mark.parametrize('gain', [[0.0, -1e-4], [2e-4, -1e-4], [-3e-4, 0.0]])
def test_axis_order_moves_a_gain_with_its_sign(gain, lengths):
    segment = {'name': 'a', 'type': 'universal', 'length': 0.2, 'mass': 1.0, 'lengths': lengths}
    chambers = [{'name': 'p', 'segment': 'a', 'gain': gain}]
    data = {'format': 1, 'name': 'one', 'actuation': {'pressure_max': 1e5, 'chambers': chambers}}
    for order, expected in (('yx', gain), ('xy', gain[::-1])):
        robot = sd.Robot.from_dict({**data, 'segments': [{**segment, 'axis_order': order}]})
        angles = [robot.coordinate_names.index(f'a_theta{k}') for k in (1, 2)]
        assert robot.actuation(robot.rest)[angles, 0].tolist() == expected


def test_godages_literal_reading_is_selectable():
    reading = {'com_distance': 0.034, 'inertia': 0.0138 * 0.034**2 / 75.0}
    literal = sd.load('bending_actuator', {'segment_defaults': reading})
    reference = samples.Godage(samples.GodageParameters.literal())
    q = shipped_states(literal, 1)[0][0]
    assert_close(literal.mass_matrix(q), reference.mass_matrix(q), 1e-10)


def regressor_parameters(robot):
    s = robot.description.segments[0]
    k, d = s.material.stiffness, s.material.damping
    return np.array([s.mass, d[0], d[2], k[0], k[2], s.material.cubic_stiffness[2]])


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'tip_load': 0.3},
        {'base': {'type': 'prescribed', 'mass': 2.0, 'inertia': [0.1, 0.2, 0.3]}},
        {'base': {'type': 'free', 'mass': 2.0, 'inertia': [0.1, 0.2, 0.3], 'rpy': [0.3, 0.2, 0.1]}},
        {'rest': [0.01, -0.02, 0.005], 'cubic_stiffness': [3e3, 1e3, -4.2e4]},
    ],
)
def test_regressor_is_linear_in_the_parameters(changes):
    """tau = Psi beta plus the known terms: base, tip load, and the springs that the paper's beta lacks."""
    material = {key: changes[key] for key in ('rest', 'cubic_stiffness') if key in changes}
    robot = sd.load('floating_actuator', {key: changes[key] for key in changes if key not in material})
    (segment,) = robot.description.segments
    changed = dataclasses.replace(segment.material, **{key: tuple(v) for key, v in material.items()})
    segments = (dataclasses.replace(segment, material=changed),)
    robot = sd.Robot(dataclasses.replace(robot.description, segments=segments))
    beta = regressor_parameters(robot)
    assert len(PARAMETERS) == beta.size
    for q, qd, qdd in zip(*shipped_states(robot, 5), strict=True):
        Psi, known = regressor(robot, q, qd, qdd), known_forces(robot, q, qd, qdd)
        assert Psi.shape == (9, 6)
        assert known.shape == (9,)
        assert np.any(known) == bool(changes)
        assert_close(Psi @ beta + known, robot.inverse_dynamics(q, qd, qdd), 1e-12)
    states = shipped_states(robot, 3)
    assert_close(
        regressor(robot, *states) @ beta + known_forces(robot, *states),
        robot.inverse_dynamics(*states),
        1e-12,
    )


def test_regressor_refuses_what_it_cannot_express():
    with pytest.raises(ValueError, match='single extensible arc'):
        regressor(sd.load('pneumatic_arm'), *(np.zeros(6),) * 3)
    robot = sd.load('floating_actuator')
    (segment,) = robot.description.segments
    uneven = dataclasses.replace(segment.material, stiffness=(180.0, 190.0, 250.0))
    changed = dataclasses.replace(segment, material=uneven)
    with pytest.raises(ValueError, match=r'stiffness: expected the same for both bends, got 180 and 190'):
        regressor(sd.Robot(dataclasses.replace(robot.description, segments=(changed,))), *(np.zeros(9),) * 3)


@pytest.mark.parametrize('name', ROBOTS)
def test_tracking_forces_are_the_sum_of_their_terms(name):
    robot = sd.load(name)
    (q, q_r), (qd, qd_r), (_, qdd_r) = shipped_states(robot, 2)
    terms = (
        robot.mass_matrix(q) @ qdd_r,
        robot.coriolis_matrix(q, qd) @ qd_r,
        robot.gravity(q),
        robot.elastic(q_r),
        robot.damping(q, qd_r),
    )
    assert all(np.any(term) for term in terms if name != 'bending_actuator')
    forces = robot.tracking_forces(q, qd, q_r, qd_r, qdd_r)
    assert_close(forces, sum(terms), 1e-12)
    many = robot.tracking_forces(q, qd, *(np.array([x, x]) for x in (q_r, qd_r, qdd_r)))
    assert_close(many, [forces, forces], 1e-12)
    for wrong in (np.full(robot.nq, np.nan), np.zeros(robot.nq - 1)):
        with pytest.raises(ValueError, match='expected'):
            robot.tracking_forces(q, qd, q_r, wrong, qdd_r)
