"""The reference derivations against closed forms, Lagrange, their own derivatives and Pinocchio."""

from fractions import Fraction
from math import factorial
from typing import Any

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
from compare import assert_close, slope
from numpy.typing import NDArray
from reference.arcs import arc, arc_centroid
from reference.godage import Godage, GodageParameters
from reference.jensen import Jensen, JensenParameters, JensenSegment
from reference.mechanics import System, entire
from reference.mehl import Mehl
from reference.samples import ENERGETIC, NAMES, build
from reference.wang import Wang, WangParameters
from scipy.integrate import quad_vec
from scipy.linalg import eigvalsh, expm
from states import states_of

Array = NDArray[np.float64]

# --- the arc


@pytest.mark.parametrize('phi', ['0', '1e-9', '1e-4', '0.3', '2.5', '4', '6.5'])
@pytest.mark.parametrize('j', [0, 1, 2, 3])
def test_series_matches_exact_fractions(j: int, phi: str) -> None:
    x = Fraction(phi) ** 2
    exact = sum((-x) ** k / factorial(2 * k + j) for k in range(60))
    exact_slope = -sum(k * (-x) ** (k - 1) / factorial(2 * k + j) for k in range(1, 60))
    symbol = ca.SX.sym('x')
    f = ca.Function('f', [symbol], [entire(j, symbol), ca.jacobian(entire(j, symbol), symbol)])
    values = [float(out) for out in f(float(x))]
    assert values == pytest.approx([float(exact), float(exact_slope)], rel=1e-13, abs=1e-14)


@pytest.mark.parametrize(('u', 'v'), [(0.0, 0.0), (1e-9, 0.0), (0.0, -1e-4), (0.8, -1.1), (-2.0, 1.5)])
def test_arc_is_the_integral_of_its_turning_tangent(u: float, v: float) -> None:
    h, spin = 0.2, np.array([[0, 0, v], [0, 0, -u], [-v, u, 0]])
    R, p = arc(u, v, h)
    tip, _ = quad_vec(lambda s: h * expm(s * spin)[:, 2], 0, 1, epsabs=1e-14)
    centroid, _ = quad_vec(lambda s: h * (1 - s) * expm(s * spin)[:, 2], 0, 1, epsabs=1e-14)
    assert_close(ca.DM(R).full(), expm(spin), 1e-14)
    assert_close(ca.DM(p).full()[:, 0], tip, 1e-13)
    assert_close(ca.DM(arc_centroid(u, v, h)).full()[:, 0], centroid, 1e-13)


def test_centroid_is_the_centre_of_rotation_of_the_tip() -> None:
    model = Jensen(JensenParameters((JensenSegment(link=None),)))
    u, v = 0.7, -1.9
    J = model.jacobian([u, v], 1)
    lever = model.frames([u, v])[1][:3, 3] - ca.DM(arc_centroid(u, v, 0.21)).full()[:, 0]
    assert_close(J[3:], np.cross(J[:3].T, lever).T, 1e-14)


# --- every model


@pytest.mark.parametrize('name', ENERGETIC)
def test_newton_agrees_with_lagrange(name: str) -> None:
    model = build(name)
    for state in states_of(model):
        assert_close(model.inverse_dynamics(*state), model.lagrange(*state), 1e-12)


@pytest.mark.parametrize('name', ENERGETIC)
def test_power_in_is_the_rate_of_energy(name: str) -> None:
    model = build(name)
    q, qd, qdd = states_of(model)[0]

    def energy(t: float) -> float:
        q_t, qd_t = q + t * qd + t**2 / 2 * qdd, qd + t * qdd
        return model.kinetic_energy(q_t, qd_t) + model.gravitational_energy(q_t) + model.elastic_energy(q_t)

    power = qd @ (model.inverse_dynamics(q, qd, qdd) - model.damping(q, qd))
    assert power == pytest.approx(slope(energy), rel=1e-7)


@pytest.mark.parametrize('name', NAMES)
def test_mass_matrix_is_that_of_the_kinetic_energy(name: str) -> None:
    model = build(name)
    for q, qd, _ in states_of(model):
        M = model.mass_matrix(q)
        assert_close(M, M.T, 1e-14)
        assert eigvalsh(M).min() > -1e-13 * np.abs(M).max()
        assert qd @ M @ qd / 2 == pytest.approx(model.kinetic_energy(q, qd), rel=1e-11)


@pytest.mark.parametrize('name', ENERGETIC)
def test_rate_of_mass_less_twice_coriolis_is_skew(name: str) -> None:
    model = build(name)
    q, qd, _ = states_of(model)[0]
    M_rate, C = slope(lambda t: model.mass_matrix(q + t * qd)), model.coriolis_matrix(q, qd)
    assert_close(C @ qd, model.coriolis(q, qd), 1e-12)
    assert_close(C + C.T, M_rate, 1e-9)


@pytest.mark.parametrize('name', NAMES)
def test_jacobian_is_the_rate_of_the_pose(name: str) -> None:
    model = build(name)
    for q, qd, _ in states_of(model, 1):
        poses, rates = np.array(model.frames(q)), slope(lambda t: np.array(model.frames(q + t * qd)))  # noqa: B023
        assert_close(
            np.einsum('kji,kjl->kil', poses[:, :3, :3], poses[:, :3, :3]), [np.eye(3)] * len(poses), 1e-14
        )
        for k, (pose, rate) in enumerate(zip(poses, rates, strict=True)):
            spin = rate[:3, :3] @ pose[:3, :3].T
            twist = [spin[2, 1], spin[0, 2], spin[1, 0], *rate[:3, 3]]
            assert_close(model.jacobian(q, k) @ qd, twist, 1e-9, scale=1.0)


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('size', [1e-12, 1e-9, 1e-6])
def test_straight_is_the_limit_of_almost_straight(name: str, size: float) -> None:
    model = build(name)
    rest, qd = (np.broadcast_to(model.layout[key], model.nq) for key in ('rest', 'scale'))
    straight, almost = (
        [model.mass_matrix(q), model.coriolis(q, qd), model.gravity(q), model.jacobian(q, -1)]
        for q in (rest, rest + size * qd)
    )
    inertia = np.abs(straight[0]).max()  # c and g may vanish in the straight pose
    for a, b in zip(almost, straight, strict=True):
        assert_close(a, b, 30 * size + 1e-14, scale=inertia)


@pytest.mark.parametrize('name', ['mehl point', 'mehl lumped', 'mehl distributed'])
def test_base_rows_of_a_floating_robot_are_its_base_wrench(name: str) -> None:
    model = build(name)
    assert isinstance(model, Mehl)
    for state in states_of(model):
        wrench = model.base_wrench(*state, 'world')
        expected = np.concatenate([wrench[3:], model.euler_rates(state.q).T @ wrench[:3]])
        assert_close(model.inverse_dynamics(*state)[:6], expected, 1e-12)


@pytest.mark.parametrize(
    ('name', 'mass'), [('jensen lumped', 2.85), ('schultz zxz', 8.0), ('wang full', 3.08), ('godage', 0.089)]
)
def test_base_carries_the_weight_at_rest(name: str, mass: float) -> None:
    model: Any = build(name)
    q = states_of(model)[0].q
    weight_W = mass * np.asarray(model.parameters.gravity)
    assert_close(model.base_wrench(q, 0 * q, 0 * q, 'world')[3:], -weight_W, 1e-13)
    assert_close(model.base_wrench(q, 0 * q, 0 * q)[3:], -model.parameters.R_WB.T @ weight_W, 1e-13)


# --- Pinocchio

Joint = tuple[
    Any, float, list[float], float, list[float]
]  # model, mass, centre of mass, inertia about z, placement


def pinocchio_chain(joints: list[Joint], gravity: list[float]) -> Any:
    model, parent = pin.Model(), 0
    for k, (joint, mass, com, inertia, placement) in enumerate(joints):
        parent = model.addJoint(parent, joint, pin.SE3(np.eye(3), np.array(placement)), f'joint {k}')
        body = pin.Inertia(mass, np.array(com), np.diag([0, 0, inertia]))
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    model.gravity.linear = np.array(gravity)
    return model


def assert_agrees_with_pinocchio(ours: System, theirs: Any) -> None:
    data = theirs.createData()
    for q, qd, qdd in states_of(ours):
        inertial = ours.mass_matrix(q) @ qdd + ours.coriolis(q, qd) + ours.gravity(q)
        assert_close(inertial, pin.rnea(theirs, data, q, qd, qdd), 1e-12)
        reaction = data.liMi[1].act(data.f[1])
        assert_close(ours.base_wrench(q, qd, qdd), [*reaction.angular, *reaction.linear], 1e-12)
        assert_close(np.triu(ours.mass_matrix(q)), np.triu(pin.crba(theirs, data, q)), 1e-12)


def test_wang_agrees_with_pinocchio() -> None:
    parameters, nowhere = WangParameters(mid_fraction=0.5, tip_load=0.5), [0.0, 0.0, 0.0]
    joints: list[Joint] = []
    for k, mass in enumerate(parameters.mass):
        following = parameters.mass[k + 1] / 4 if k < 3 else parameters.tip_load
        joints += [
            (pin.JointModelPZ(), mass / 2, nowhere, 0, nowhere),
            (pin.JointModelRY(), 0, nowhere, 0, nowhere),
            (pin.JointModelRX(), 0, nowhere, 0, nowhere),
            (pin.JointModelPZ(), mass / 4 + following, nowhere, 0, nowhere),
        ]
    assert_agrees_with_pinocchio(Wang(parameters, 'full'), pinocchio_chain(joints, [0, 0, 9.81]))


def test_godage_agrees_with_pinocchio() -> None:
    lengths, masses, gravity = (0.03, 0.05, 0.04), (0.02, 0.03, 0.01), [2.0, -9.0, 0.0]
    roots = (0.0, *lengths[:-1])
    joints: list[Joint] = [
        (pin.JointModelRZ(), m, [0, a / 2, 0], m * a**2 / 12, [0, root, 0])
        for a, m, root in zip(lengths, masses, roots, strict=True)
    ]
    ours = Godage(GodageParameters(n=3, length=lengths, mass=masses, gravity=gravity))
    assert_agrees_with_pinocchio(ours, pinocchio_chain(joints, gravity))
