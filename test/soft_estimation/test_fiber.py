"""Fiber shapes against closed curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from soft_dynamics.geometry.curve import integrate_curve
from soft_estimation.inverse_kinematics.fiber_shape import frames_along, hinge_angles, link_errors, spline

S = 0.0008 * np.arange(212)


def circle(radius: float) -> np.ndarray:
    """Points along y that bend towards -x, in the plane."""
    phi = S / radius
    return radius * np.stack([np.cos(phi) - 1.0, np.sin(phi), 0.0 * phi], 1)


def test_spline_bridges_lost_points() -> None:
    points = circle(0.1)
    broken = points.copy()
    broken[50:60] = math.nan
    assert np.max(np.abs(spline(S, broken)(S) - points)) < 1e-6


def test_hinge_angles_of_a_circle() -> None:
    """Chords of a circle meet at the angle of their arc; the first one is at half that angle to the base."""
    span = 0.0338 / 0.1
    fit = hinge_angles(S, circle(0.1), np.full(5, 0.0337))
    assert fit.q[1:] == pytest.approx(np.full(4, 0.0337 / 0.1), rel=1e-6)
    assert fit.q[0] == pytest.approx(0.5 * 0.0337 / 0.1, rel=1e-6)
    assert fit.position_error == pytest.approx(0.0337 * span**2 / 24.0, rel=0.02)


def test_a_fiber_that_leaves_the_plane_is_seen() -> None:
    points = circle(0.2)
    points[:, 2] = 0.3 * S
    assert hinge_angles(S, points, np.full(5, 0.0337)).position_error > 0.009


def test_more_links_follow_the_fiber_better() -> None:
    phi = 10.0 * S**2 / 0.17 + 4.0 * S
    points, _ = integrate_curve(S, np.stack([np.gradient(phi, S), 0.0 * S, 0.0 * S], 1))
    errors = [link_errors(S, points, links).max() for links in (2, 3, 4, 5)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match=r'points: expected shape \(212, 3\)'):
        spline(S, np.zeros((3, 212)))
    with pytest.raises(ValueError, match='at least 2'):
        spline(S, np.full((212, 3), math.nan))
    with pytest.raises(ValueError, match=r'fiber of 0\.2 m'):
        hinge_angles(S, circle(0.1), [0.1, 0.1])


def test_frames_are_carried_along_an_arc_without_twist() -> None:
    """A bend in any direction rotates the frame by that bend, with any points missing."""
    s = np.linspace(0.0, 0.3, 301)
    for u, v in ((0.8, 0.0), (0.5, -0.7), (0.0, 0.0)):
        p = integrate_curve(s, np.tile([u / 0.3, v / 0.3, 0.0], (301, 1)))[0]
        expected = [Rotation.from_rotvec([share * u, share * v, 0.0]).as_matrix() for share in (1 / 3, 1.0)]
        ends = p[[100, 300]]
        p[[0, 7, 8, 150]] = np.nan
        places, frames, *_ = frames_along(s, p, [0.1, 0.3])
        assert places == pytest.approx(ends, abs=1e-5)
        assert frames == pytest.approx(np.array(expected), abs=1e-4)
    with pytest.raises(ValueError, match='valid ones'):
        frames_along(s, np.full((301, 3), np.nan), [0.1])
