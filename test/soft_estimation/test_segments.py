"""Each inverse against the closed-form forward kinematics of its model, written here from the papers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from soft_dynamics.geometry.se3 import inverse
from soft_dynamics.segments.arc import (
    arc_from_pose,
    arc_from_position,
    bend_from_rotation,
    differences_from_pose,
    differences_from_position,
)
from soft_dynamics.segments.base import base_angles
from soft_dynamics.segments.disc import disc_from_pose
from soft_dynamics.segments.hinge import hinge_from_pose
from soft_dynamics.segments.pose_fit import ROUNDING
from soft_dynamics.segments.universal import universal_from_pose

E_Z = np.array([0.0, 0.0, 1.0])


def transform(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, p
    return X


def arc(u: float, v: float, h: float) -> np.ndarray:
    """exp of the constant twist of an arc."""
    twist = np.zeros((4, 4))
    twist[:3, :3] = [[0.0, 0.0, v], [0.0, 0.0, -u], [-v, u, 0.0]]
    twist[2, 3] = h
    return np.asarray(expm(twist))


def universal(d1: float, theta1: float, theta2: float, d2: float) -> np.ndarray:
    R = Rotation.from_euler('YX', [theta1, theta2]).as_matrix()
    return transform(R, d1 * E_Z + d2 * R @ E_Z)


def disc(angles: np.ndarray, length: float, axis_angle: bool = True) -> np.ndarray:
    """Rz Rx Rz Rx Ry; the thread's direction to the last digit of every number, however small."""
    alpha, beta, gamma, psi, phi = angles
    spin = gamma - alpha if axis_angle else gamma
    R = Rotation.from_euler('ZXZ', [alpha, beta, spin]) * Rotation.from_euler('XY', [psi, phi])
    slant = math.sin(beta)
    return transform(
        R.as_matrix(), length * np.array([math.sin(alpha) * slant, -math.cos(alpha) * slant, math.cos(beta)])
    )


SIGNED = st.one_of(
    st.just(0.0), st.floats(-3.0, 3.0), st.floats(-1e-3, 1e-3), st.sampled_from([1e-9, -1e-12, 0.5, -0.5])
)
SMALL = st.builds(
    lambda sign, exponent: sign * 10.0**exponent, st.sampled_from([-1.0, 1.0]), st.floats(-18.0, -0.5)
)
TURN = st.one_of(st.just(0.0), st.floats(-3.0, 3.0))
BETA = st.one_of(TURN, SMALL, SMALL.map(lambda x: math.pi - x), st.sampled_from([math.pi, -math.pi]))
PSI = st.one_of(
    TURN,
    SMALL.map(lambda x: 0.5 * math.pi + x),
    SMALL.map(lambda x: x - 0.5 * math.pi),
    st.sampled_from([0.5 * math.pi, -0.5 * math.pi]),
)


def seen_from_afar(X_BT: np.ndarray, seed: int) -> np.ndarray:
    """X_BT from two poses in the world, all of whose numbers are rounded like those of size 1."""
    rng = np.random.default_rng(seed)
    X_WB = transform(Rotation.random(random_state=rng).as_matrix(), rng.uniform(-1.0, 1.0, 3))
    return np.asarray(inverse(X_WB) @ (X_WB @ X_BT))


@given(SIGNED, SIGNED, st.floats(0.05, 0.5))
def test_arc_comes_back_from_its_tip_pose_and_from_its_tip_position(u: float, v: float, h: float) -> None:
    X = arc(u, v, h)
    for fit in (arc_from_pose(X), arc_from_position(X[:3, 3])):
        assert fit.q == pytest.approx([u, v, h], abs=1e-9)
        assert fit.position_error < 1e-12
    if math.hypot(u, v) < math.pi:
        fit = bend_from_rotation(X[:3, :3])
        assert fit.q == pytest.approx([u, v], abs=1e-9)
        assert fit.rotation_error < 1e-9


@given(st.floats(-3.1, 3.1), SMALL, st.integers(0, 999))
def test_an_arc_next_to_half_a_turn_keeps_its_plane(direction: float, beyond: float, seed: int) -> None:
    """Where the last digits of R alone would separate the twist from the direction of the bend."""
    phi = math.pi + beyond
    u, v = phi * math.cos(direction), phi * math.sin(direction)
    X = seen_from_afar(arc(u, v, 0.2), seed)
    assert arc_from_pose(X).q == pytest.approx([u, v, 0.2], abs=1e-9)
    assert arc_from_pose(X, 0.2).q == pytest.approx([u, v], abs=1e-9)


@given(SIGNED, SIGNED, st.floats(-0.05, 0.05), st.floats(0.02, 0.1))
def test_differences_come_back(u: float, v: float, dl: float, lever: float) -> None:
    X, expected = arc(u, v, 0.13 + dl), [lever * v, -lever * u, dl]
    for fit in (
        differences_from_pose(X, 0.13, lever),
        differences_from_position(X[:3, 3], 0.13, lever),
    ):
        assert fit.q == pytest.approx(expected, abs=1e-9)
    stiff = arc(u, v, 0.13)
    assert differences_from_position(stiff[:3, 3], 0.13, lever, False).q == pytest.approx(
        expected[:2], abs=1e-9
    )


@given(SIGNED, SIGNED, st.floats(0.02, 0.2), st.floats(0.02, 0.2))
def test_universal_joint_comes_back_in_every_quadrant(t1: float, t2: float, d1: float, d2: float) -> None:
    X = universal(d1, t1, t2, d2)
    if np.linalg.norm(X[:3, 2] + E_Z) < 1e-2:
        return
    fit = universal_from_pose(X, d1 + d2)
    assert fit.q[1:3] == pytest.approx([t1, t2], abs=1e-9)
    assert fit.position_error < 1e-8
    if np.linalg.norm(X[:3, 2] - E_Z) > 1e-8:
        assert fit.q == pytest.approx([d1, t1, t2, d2], abs=1e-9)
    assert fit.q[0] + fit.q[3] == pytest.approx(d1 + d2, abs=1e-8)
    equal = universal(d1, t1, t2, d1)
    assert universal_from_pose(equal, 2 * d1).q == pytest.approx([d1, t1, t2, d1], abs=1e-9)
    fixed = universal_from_pose(equal, 2 * d1, free=False)
    assert fixed.q == pytest.approx([t1, t2], abs=1e-9)
    assert fixed.position_error < 1e-9


@given(st.floats(1e-6, 0.01), st.floats(-1.0, 1.0))
def test_links_come_back_next_to_the_folded_pose(short: float, aside: float) -> None:
    q = [0.08, math.pi - short, aside * short, 0.1]
    assert universal_from_pose(universal(*q), 0.18).q == pytest.approx(q, abs=1e-9)


@given(TURN, PSI, TURN, st.tuples(*[st.floats(-0.1, 0.1)] * 3))
def test_the_angles_of_a_base_come_back(a: float, b: float, c: float, step: tuple[float, ...]) -> None:
    """For discs: to 1e-9 from 4e-6 away from the pose where the first and third axes align, in any world pose."""
    R, clear = Rotation.from_euler('XYZ', [a, b, c]).as_matrix(), abs(math.cos(b))
    (found,) = base_angles(R[None], np.add([a, b, c], step))
    again = Rotation.from_euler('XYZ', found).as_matrix()
    if clear > 2.0 * ROUNDING:
        assert again == pytest.approx(R, abs=1e-14)
        assert found == pytest.approx([a, b, c], abs=4e-15 / clear)
    assert again == pytest.approx(R, abs=6.0 * ROUNDING)


@pytest.mark.parametrize('bend', [1e-8, 1e-6, -1e-5, 1e-4, 1e-3, 1e-2])
def test_unequal_links_come_back_next_to_the_straight_pose(bend: float) -> None:
    q = [0.08, bend, -0.6 * bend, 0.1]
    assert universal_from_pose(universal(*q), 0.18).q == pytest.approx(q, abs=1e-9)


def test_rounding_and_noise_of_a_straight_pose_leave_sensible_links() -> None:
    """The pose comes from two world poses: exact to rounding, in single precision, or measured."""
    rng = np.random.default_rng(2)
    for size, limit in ((0.0, 1e-6), (1e-7, 0.07), (1e-3, 0.07)):
        for _ in range(50):
            world = transform(Rotation.random(random_state=rng).as_matrix(), rng.uniform(-3.0, 3.0, 3))
            X = np.linalg.solve(world, world @ universal(0.06, 0.0, 0.0, 0.06))
            X[:3, :3] = X[:3, :3] @ Rotation.from_rotvec(size * rng.normal(size=3)).as_matrix()
            X[:3, 3] += 0.1 * size * rng.normal(size=3)
            d1, _, _, d2 = universal_from_pose(X, 0.12).q
            assert [d1, d2] == pytest.approx([0.06, 0.06], abs=limit)


def test_universal_joint_is_continuous_through_straight() -> None:
    swing = [
        universal_from_pose(universal(0.06, t, -0.7 * t, 0.06), 0.12).q for t in np.linspace(-0.2, 0.2, 401)
    ]
    assert np.max(np.abs(np.diff(swing, axis=0))) < 1.1e-3
    assert swing[200] == pytest.approx([0.06, 0.0, 0.0, 0.06], abs=1e-12)


@given(SIGNED, st.floats(-3.0, 3.0))
def test_hinge_comes_back_with_its_whole_turns(theta: float, offset: float) -> None:
    R = Rotation.from_euler('z', theta + offset).as_matrix()
    fit = hinge_from_pose(transform(R, R @ [0.0, 0.034, 0.0]), 0.034, offset, near=theta + 3.0)
    assert fit.q == pytest.approx([theta], abs=1e-9)
    assert fit.position_error < 1e-12


DISC = st.tuples(TURN, BETA, TURN, PSI, TURN).map(np.array)


def clearance(angles: np.ndarray) -> float:
    """[rad] from the nearest singular pose."""
    return float(min(abs(np.sin(angles[1])), abs(np.cos(angles[3]))))


@settings(max_examples=300)
@given(DISC, st.tuples(*[st.floats(-7.0, 7.0)] * 5), st.booleans())
def test_the_pose_of_a_disc_comes_back_to_the_last_digit_near_whatever_angles(
    angles: np.ndarray, near: tuple[float, ...], axis_angle: bool
) -> None:
    """Into all singular poses. A tilt within rounding is ignored: alpha and phi stay at `near`."""
    X = disc(angles, 0.4, axis_angle)
    fit = disc_from_pose(X, 0.4, near, axis_angle)
    unknown = clearance(angles) < 2.0 * ROUNDING
    assert disc(fit.q, 0.4, axis_angle) == pytest.approx(X, abs=6.0 * ROUNDING if unknown else 1e-14)
    assert fit.position_error < 1e-15


@settings(max_examples=300)
@given(DISC, st.tuples(*[st.floats(-0.1, 0.1)] * 5), st.booleans())
def test_the_angles_of_a_disc_come_back_wherever_doubles_tell_them(
    angles: np.ndarray, step: tuple[float, ...], axis_angle: bool
) -> None:
    """Rounding of R (2e-16, some ten times) turns phi, and gamma against it, by 1/cos(psi) as much: 1e-9 at 4e-6."""
    fit = disc_from_pose(disc(angles, 0.4, axis_angle), 0.4, np.add(angles, step), axis_angle)
    if clearance(angles) > 2.0 * ROUNDING:
        assert fit.q == pytest.approx(angles, abs=4e-15 / abs(math.cos(angles[3])))


@pytest.mark.parametrize('axis_angle', [True, False])
def test_what_a_singular_pose_does_not_tell_is_as_before(axis_angle: bool) -> None:
    """alpha stays when straight, phi at psi = +-pi/2; the rest of gamma makes the pose right."""
    for beta, psi, near in itertools.product(
        (0.0, math.pi), (-0.5 * math.pi, 0.3, 0.5 * math.pi), (np.zeros(5), np.full(5, 0.2))
    ):
        X = disc(np.array([-2.0, beta, 0.4, psi, 1.3]), 0.4, axis_angle)
        fit = disc_from_pose(X, 0.4, near, axis_angle)
        assert fit.q[0] == near[0]
        assert fit.q[4] == (pytest.approx(1.3, abs=1e-14) if psi == 0.3 else near[4])
        assert disc(fit.q, 0.4, axis_angle) == pytest.approx(X, abs=1e-14)


def test_a_pose_the_model_cannot_explain_is_visible() -> None:
    twisted = arc(0.4, -0.3, 0.2)
    twisted[:3, :3] = twisted[:3, :3] @ Rotation.from_euler('z', 0.2).as_matrix()
    fit = arc_from_pose(twisted)
    assert fit.q == pytest.approx([0.4, -0.3, 0.2], abs=1e-12)
    assert fit.rotation_error == pytest.approx(0.2, abs=1e-12)
    longer = universal_from_pose(universal(0.05, 0.3, 0.2, 0.07), 0.10, free=False)
    assert longer.position_error > 0.015
    assert disc_from_pose(disc(np.full(5, 0.3), 1.1), 1.0).position_error == pytest.approx(0.1)


def test_beyond_half_a_turn_the_position_tells_which_way() -> None:
    for phi in (3.2, 4.0, 6.0):
        assert arc_from_pose(arc(-phi, 0.0, 0.3)).q == pytest.approx([-phi, 0.0, 0.3], abs=1e-9)


@pytest.mark.parametrize(
    ('X', 'reason'),
    [
        (np.full((4, 4), math.nan), 'finite'),
        (2.0 * np.eye(4), 'rotation'),
        (np.diag([1.0, 1.0, -1.0, 1.0]), 'rotation'),
        (np.eye(3), r'shape \(4, 4\)'),
    ],
)
def test_what_is_no_pose_is_refused(X: np.ndarray, reason: str) -> None:
    for inverse_of in (
        arc_from_pose,
        lambda X: universal_from_pose(X, 0.1),
        lambda X: hinge_from_pose(X, 0.1),
        lambda X: disc_from_pose(X, 0.1),
    ):
        with pytest.raises(ValueError, match=reason):
            inverse_of(X)


def test_what_no_arc_reaches_is_refused() -> None:
    for p in ([0.0, 0.0, 0.0], [0.0, 0.0, -0.1]):
        with pytest.raises(ValueError, match='p_BT'):
            arc_from_position(p)
