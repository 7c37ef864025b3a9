"""The reference derivations against the numbers and claims of each paper."""

from dataclasses import replace
from typing import Literal

import casadi as ca
import numpy as np
import pytest
from compare import assert_close, slope
from numpy.typing import NDArray
from reference import arcs
from reference.godage import Godage, GodageParameters
from reference.jensen import Jensen, JensenParameters, JensenSegment
from reference.mehl import BETA, Mehl, MehlParameters, MehlSegment
from reference.samples import MEHL, SCHULTZ
from reference.schultz import Schultz, SchultzParameters
from reference.schultz_regular import Motion, SchultzRegular, motion, rates
from reference.wang import Wang, WangParameters, pcc_pose, pcc_to_puj, puj_pose
from scipy.integrate import solve_ivp
from scipy.linalg import eigh, eigvalsh
from scipy.optimize import brentq, root
from scipy.spatial.transform import Rotation
from states import random_states, states_of

Array = NDArray[np.float64]

# --- Jensen


def bare(h: float, m: float, r: float, placement: arcs.Placement) -> Jensen:
    return Jensen(JensenParameters((JensenSegment(h, m, r, link=None),)), placement)


@pytest.mark.parametrize(
    ('placement', 'a', 'b'), [('lumped', 9, 4), ('distributed', 20, 12), ('point', 36, np.inf)]
)
def test_bare_straight_joint_has_the_known_inertia(placement: arcs.Placement, a: float, b: float) -> None:
    h, m, r = 0.17, 0.8, 0.06
    M = bare(h, m, r, placement).mass_matrix([0, 0])
    assert_close(M, m * (h**2 / a + r**2 / b) * np.eye(2), 1e-14)


def test_lumped_joint_loses_exactly_the_power_of_its_changing_inertia() -> None:
    """dT/dt = qd (M qdd + c) + w (dI/dt) w/2: the model omits dI/dt, as the paper does."""
    h, m, r = 0.2, 0.7, 0.08
    model = bare(h, m, r, 'lumped')
    q, qd, qdd = np.array([0.9, -1.2]), np.array([1.3, 0.4]), np.array([-0.5, 2.0])
    T_rate = slope(lambda t: model.kinetic_energy(q + t * qd + t**2 / 2 * qdd, qd + t * qdd))
    I_rate = slope(lambda t: ca.DM(arcs.lumped_inertia(q[0] + t * qd[0], q[1] + t * qd[1], h, m, r)).full())
    w = model.frames(q)[1][:3, :3].T @ model.jacobian(q, 1)[:3] @ qd
    lost = w @ I_rate @ w / 2
    power = qd @ (model.mass_matrix(q) @ qdd + model.coriolis(q, qd))
    assert abs(lost) > 0.1 * abs(power)
    assert T_rate == pytest.approx(power + lost, rel=1e-7)


def test_twenty_discs_integrate_the_arc_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    q = [1.9, -2.4]
    coarse = [bare(0.2, 0.7, 0.08, placement).mass_matrix(q) for placement in ('lumped', 'distributed')]
    monkeypatch.setattr(arcs, 'QUADRATURE_POINTS', 31)
    fine = [bare(0.2, 0.7, 0.08, placement).mass_matrix(q) for placement in ('lumped', 'distributed')]
    assert_close(np.array(coarse), np.array(fine), 1e-14)


def test_four_chambers_do_the_work_of_equation_24() -> None:
    model, d_times_area = Jensen(JensenParameters()), 0.055 * np.pi * 0.033**2
    block = d_times_area * np.array([[1, -1, 0, 0], [0, 0, 1, -1]])
    for q, *_ in states_of(model):
        assert_close(model.actuation(q), np.kron(np.eye(3), block), 1e-14)


# --- Mehl


def test_printed_actuation_example() -> None:
    chamber = {'chamber_radius': 0.013, 'chamber_angle': 0.0, 'x_m': -0.026, 'y_m': 0.008}  # at (13, -8) mm
    model = Mehl(MehlParameters((MehlSegment(length=0.14, chamber_area=1.0, **chamber),)))

    def column(direction: float, law: Literal['tip_wrench', 'p_dv']) -> Array:
        q = np.zeros(9)
        q[6:8] = 0.05 * 1.61 * np.array([np.cos(direction), np.sin(direction)])
        return model.actuation(q, law)[6:, 0]

    direction = brentq(
        lambda a: column(a, 'tip_wrench')[0] + 0.68, 2.2, 2.4
    )  # not printed; a fit of one number
    assert_close(column(direction, 'tip_wrench'), np.array([-0.68, 0.67, np.sin(1.61) / 1.61]), 5e-3)
    assert_close(column(direction, 'p_dv'), np.array([-0.26, 0.16, 1.0]), 1e-14)
    assert_close(column(0, 'tip_wrench')[2:], np.array([np.sin(1.61) / 1.61]), 1e-14)


def test_actuation_laws_agree_only_when_straight() -> None:
    model = Mehl(MehlParameters())
    q = np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.0, 0.0, 0.01])
    assert_close(model.actuation(q) / 31e-6, model.actuation(q, 'p_dv') / 31e-6, 1e-14)
    q[6:8] = 0.03, 0.05
    phi, p = np.hypot(0.03, 0.05) / 0.05, np.array([3e4, 1e4, 2e4])
    net = (model.actuation(q) @ p)[:3]
    assert np.linalg.norm(net) == pytest.approx(31e-6 * p.sum() * 2 * np.sin(phi / 2), rel=1e-12)
    state = q, 0.1 * q, 0.2 * q
    seen = model.base_wrench(*state, 'world') - model.base_wrench_minus_actuation(*state, p)
    assert_close(seen[3:], net)


def test_only_the_arc_block_of_the_mass_matrix_is_regular() -> None:
    model = Mehl(MehlParameters())
    for q, *_ in random_states(np.random.default_rng(1), 9, 5, **model.layout):
        M = model.mass_matrix(q)
        assert np.linalg.matrix_rank(M, tol=1e-10 * np.abs(M).max()) == 3
        assert np.linalg.matrix_rank(M[6:, 6:], tol=1e-10 * np.abs(M[6:, 6:]).max()) == 3


def test_elongation_spring_turns_over_at_44_7_mm() -> None:
    model = Mehl(MehlParameters())
    pull = [model.elastic(np.array([0] * 8 + [dl * 1e-3]))[8] for dl in (44.2, 44.7, 45.2)]
    assert pull[1] > max(pull[0], pull[2])


def test_hybrid_dynamics_solves_the_equation_of_motion() -> None:
    model = Mehl(MEHL)
    q, qd, qdd = states_of(model)[0]
    tau_0, qdd_c = model.hybrid_dynamics(q, qd, qdd[:6], np.arange(6.0))
    tau = model.inverse_dynamics(q, qd, np.concatenate([qdd[:6], qdd_c]))
    assert_close(tau, np.concatenate([tau_0, np.arange(6.0)]))


def test_regressor_times_parameters_is_the_torque() -> None:
    model = Mehl(MehlParameters())
    beta = [getattr(MehlSegment(), name) for name in BETA]
    for state in states_of(model):
        assert_close(model.regressor(*state) @ beta, model.inverse_dynamics(*state), 1e-13)


# --- Schultz


def test_mass_determinant_vanishes_with_sine_beta_and_cosine_psi() -> None:
    model = Schultz(SchultzParameters(mass=(2.0,)))
    q = np.array([0.3, 1.0, 0.4, 0.6, -0.5])
    ratios = []
    for beta in (0.01, 1.0, 2.0, 3.0):
        q[1] = beta
        ratios.append(np.linalg.det(model.mass_matrix(q)) / np.sin(beta) ** 2)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-10)
    for singular in ([0.3, 0, 0.4, 0.6, -0.5], [0.3, np.pi, 0.4, 0.6, -0.5], [0.3, 1, 0.4, np.pi / 2, -0.5]):
        assert np.linalg.matrix_rank(model.mass_matrix(singular), tol=1e-12) == 4


def test_zxz_differs_by_a_linear_change_of_coordinates() -> None:
    one, other = Schultz(SCHULTZ), Schultz(SCHULTZ, 'zxz')
    to_zxz = np.kron(np.eye(3), np.eye(5) - np.outer(np.eye(5)[2], np.eye(5)[0]))  # gamma - alpha
    for q, qd, _ in states_of(one):
        assert_close(one.frames(q)[-1], other.frames(to_zxz @ q)[-1], 1e-14)
        assert_close(one.mass_matrix(q), to_zxz.T @ other.mass_matrix(to_zxz @ q) @ to_zxz, 1e-13)
        assert_close(one.coriolis(q, qd), to_zxz.T @ other.coriolis(to_zxz @ q, to_zxz @ qd), 1e-13)


def test_momentum_changes_at_the_canonical_rate() -> None:
    model = Schultz(SCHULTZ)
    q, qd, qdd = states_of(model)[0]
    tau = model.inverse_dynamics(q, qd, qdd) - 0.7 * model.actuation(q)[:, 0]
    expected = slope(lambda t: model.momentum(q + t * qd + t**2 / 2 * qdd, qd + t * qdd))
    assert_close(model.momentum(q, qd), model.mass_matrix(q) @ qd, 1e-13)
    assert_close(model.momentum_rate(q, qd, tau, pressure=0.7), expected, 1e-9)


def test_regular_mass_matrix_maps_to_that_of_the_angles() -> None:
    model = Schultz(SCHULTZ)
    regular = SchultzRegular(SCHULTZ)
    for q, *_ in states_of(model):
        pose, A = rates(model, q)
        M = regular.mass_matrix(pose)
        assert_close(model.mass_matrix(q), A.T @ M @ A, 1e-13)
        assert np.linalg.cond(M) < 200


def test_angles_and_quasi_velocities_move_alike() -> None:
    parameters, pressure, n = replace(SCHULTZ, damping=0.0), 1.3, 15
    model, regular = Schultz(parameters), SchultzRegular(parameters, pressure)
    rng = np.random.default_rng(0)
    q, qd = rng.uniform(0.3, 1.2, n), rng.normal(size=n)

    def rate(_t: float, y: Array) -> Array:
        force = pressure * model.actuation(y[:n])[:, 0] - model.inverse_dynamics(y[:n], y[n:], np.zeros(n))
        return np.concatenate([y[n:], np.linalg.solve(model.mass_matrix(y[:n]), force)])

    end = solve_ivp(rate, (0, 0.3), np.concatenate([q, qd]), 'DOP853', rtol=1e-11, atol=1e-12).y[:n, -1]
    poses = np.array(model.frames(end))
    (moved,) = regular.simulate(motion(model, q, qd), [0.3])
    assert_close(regular.origins(moved), poses[:, :3, 3], 1e-10)
    assert_close(moved.R, poses[1:, :3, :3], 1e-10)


def test_regular_motion_passes_the_singular_pose() -> None:
    """The thread swings through beta = 0, where alpha jumps; the energy is continuous."""
    parameters = SchultzParameters(mass=(2.0,), damping=0.0, gravity=(0.5, -1.0, 0.0))
    regular = SchultzRegular(parameters)
    start = motion(Schultz(parameters), [0.4, 0.1, 0.3, 0.2, -0.1], [0.0, -1.0, 0.5, 0.8, -0.6])

    def energy(at: Motion) -> float:
        nu, tip, R = at.nu.ravel(), regular.origins(at)[1], at.R[0]
        springs = 0.0
        for angle, stiffness, rest in parameters.springs:
            length = np.linalg.norm(tip + R @ parameters.rim(1, angle) - parameters.rim(0, angle))
            springs += stiffness / 2 * (length - rest) ** 2
        fall = parameters.mass[0] * regular.centres(at)[0] @ regular.gravity_W
        return float(nu @ regular.mass_matrix(at) @ nu / 2 + springs - fall)

    path = regular.simulate(start, np.linspace(0, 2, 41))
    assert min(np.arccos(at.P[0, 2, 2]) for at in path) < 0.05
    assert np.ptp([energy(at) for at in path]) < 1e-8


@pytest.mark.parametrize(('force', 'y', 'z'), [(0.0, -4.0, 0.0), (24.0, -3.48, -1.90)])
def test_printed_static_poses(force: float, y: float, z: float) -> None:
    model, planar = Schultz(SchultzParameters(area=1.0)), np.array([1, 3, 6, 8, 11, 13])

    def pose(angles: Array) -> Array:
        q = np.zeros(15)
        q[planar] = angles
        return q

    def residual(angles: Array) -> Array:
        q = pose(angles)
        return np.asarray((model.gravity(q) + model.elastic(q) - force * model.actuation(q)[:, 0])[planar])

    solution = root(residual, [1.7, 1.4, -1.3, 1.4, -1.3, 1.57], tol=1e-12)
    tip = model.frames(pose(solution.x))[-1]
    assert solution.success
    assert_close((tip[:3, 3] + tip[:3, 1])[1:], [y, z], 2e-3)


# --- Wang


def test_paper_masses_leave_one_massless_mode_per_segment() -> None:
    paper, cured = (Wang(WangParameters(mid_fraction=f), 'full') for f in (0.0, 0.5))
    for q, qd, _ in states_of(paper):
        inertias, modes = np.linalg.eigh(paper.mass_matrix(q))
        assert np.sum(inertias > 1e-9) == 12
        assert_close(modes[:, :4].T @ paper.coriolis(q, qd), np.zeros(4), 1e-12, scale=1.0)
        assert_close(modes[:, :4].T @ paper.gravity(q), np.zeros(4), 1e-12, scale=1.0)
    straight = cured.layout['rest']
    assert np.linalg.matrix_rank(cured.mass_matrix(straight)) == 16
    assert np.linalg.cond(cured.mass_matrix(straight)) == pytest.approx(2.96e4, rel=1e-2)


def test_upright_arm_could_not_stand() -> None:
    model, step = Wang(WangParameters(gravity=(0.0, 0.0, -9.81))), 1e-4
    force = [model.gravity(e) + model.elastic(e) for e in (*step * np.eye(8), *-step * np.eye(8))]
    K = (np.array(force[:8]) - np.array(force[8:])) / (2 * step)
    assert eigvalsh(K[::2, ::2]).min() == pytest.approx(-2.06, abs=5e-3)
    assert eigvalsh(K[1::2, 1::2]).min() == pytest.approx(-0.65, abs=5e-3)


def test_full_model_with_locked_slides_is_the_reduced_one() -> None:
    d = np.array([[0.08, 0.11], [0.1, 0.07], [0.06, 0.1], [0.09, 0.05]])
    full, reduced = Wang(WangParameters(), 'full'), Wang(WangParameters(), 'reduced', d)
    angles = np.ravel(full.layout['bends'])
    for q, qd, _ in random_states(np.random.default_rng(2), 8, 5):
        all_q, all_qd = np.repeat(d, 2, axis=1).ravel(), np.zeros(16)
        all_q[angles], all_qd[angles] = q, qd
        assert_close(full.mass_matrix(all_q)[np.ix_(angles, angles)], reduced.mass_matrix(q), 1e-14)
        assert_close(full.coriolis(all_q, all_qd)[angles], reduced.coriolis(q, qd), 1e-14)
        assert_close(full.gravity(all_q)[angles], reduced.gravity(q), 1e-14)


@pytest.mark.parametrize('psi', [0.0, 1e-9, 0.4, 1.5, 2.5, 3.0])
@pytest.mark.parametrize('phi', [0.0, 0.8, 2.0, np.pi, -1.2])
def test_puj_reaches_the_tip_of_the_arc_up_to_a_twist(phi: float, psi: float) -> None:
    puj = pcc_to_puj(phi, psi, 0.3)
    pose = puj_pose(*puj[:4])
    pose[:3, :3] = pose[:3, :3] @ Rotation.from_euler('z', puj.twist).as_matrix()
    assert_close(pose, pcc_pose(phi, psi, 0.3), 1e-13)


def test_twist_of_the_printed_example() -> None:
    assert np.degrees(pcc_to_puj(np.pi / 4, np.pi / 2, 0.2).twist) == pytest.approx(-45, abs=1e-9)


def test_puj_pose_is_the_segment_of_the_arm() -> None:
    model, q = Wang(WangParameters(), 'full'), np.tile([0.1, 0.7, -0.4, 0.05], 4)
    assert_close(model.frames(q)[1], puj_pose(*q[:4]), 1e-15)


# --- Godage


def test_printed_bending_frequencies() -> None:
    length, mass = 0.17 / 5, 0.069 / 5
    third = mass * length**2 / 3
    readings = {
        5.92: GodageParameters(),
        5.80: GodageParameters(inertia=third),
        4.91: GodageParameters(com_distance=length, inertia=third),
        5.00: GodageParameters.literal(),
    }
    for printed, parameters in readings.items():
        stiffness = eigvalsh(1.6067 * np.eye(5), Godage(parameters).mass_matrix(np.zeros(5)))
        assert np.sqrt(stiffness[0]) / (2 * np.pi) == pytest.approx(printed, abs=5e-3)


def test_printed_fastest_mode() -> None:
    model = Godage(GodageParameters())
    stiffness, modes = eigh(1.6067 * np.eye(5), model.mass_matrix(np.zeros(5)))
    omega = np.sqrt(stiffness[-1])
    assert omega / (2 * np.pi) == pytest.approx(300, rel=0.03)
    assert modes[:, -1] @ model.damping(0 * modes[0], modes[:, -1]) / (2 * omega) == pytest.approx(
        4.8, abs=0.05
    )


@pytest.mark.parametrize(('pressure', 'degrees'), [(119e3, 14.1), (198e3, 23.5), (240e3, 28.5)])
def test_printed_static_bend(pressure: float, degrees: float) -> None:
    model = Godage(GodageParameters())
    q = model.actuation(np.zeros(5))[:, 0] * pressure / 1.6067
    assert_close(model.elastic(q), model.actuation(q)[:, 0] * pressure)
    tip = model.frames(q)[-1]
    assert np.degrees(np.arctan2(-tip[0, 1], tip[1, 1])) == pytest.approx(degrees, abs=0.05)
