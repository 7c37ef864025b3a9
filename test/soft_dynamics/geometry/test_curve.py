"""From curvature to the curve: closed forms and independent integrators."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import fresnel

from soft_dynamics.geometry import curve
from soft_dynamics.geometry.curve import integrate_curve


def ode_reference(s, kappa, stretch):
    """Integrate the frame and the point with scipy, kappa(s) and stretch(s) as functions."""

    def slope(x, state):
        R = state[:9].reshape(3, 3)
        kx, ky, kz = kappa(x)
        skew = np.array([[0, -kz, ky], [kz, 0, -kx], [-ky, kx, 0]])
        return np.concatenate([(R @ skew).ravel(), R[:, 2] * stretch(x)])

    start = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    solution = solve_ivp(slope, (s[0], s[-1]), start, t_eval=s, rtol=1e-11, atol=1e-12, method='DOP853')
    return solution.y[9:].T, solution.y[:9].T.reshape(-1, 3, 3)


def test_constant_bending_is_a_circle_whatever_the_spacing():
    s = np.array([0.0, 0.1, 0.13, 0.4])
    kappa = 5.0
    p, _ = integrate_curve(s, np.tile([0.0, kappa, 0.0], (4, 1)))
    circle = np.column_stack([1 - np.cos(kappa * s), np.zeros(4), np.sin(kappa * s)]) / kappa
    np.testing.assert_allclose(p, circle, atol=1e-14)


def test_constant_bending_and_twist_is_a_helix():
    s = np.linspace(0.0, 0.3, 7)
    p, R = integrate_curve(s, np.tile([8.0, 0.0, 20.0], (7, 1)))
    p_ode, R_ode = ode_reference(s, lambda _: (8.0, 0.0, 20.0), lambda _: 1.0)
    np.testing.assert_allclose(p, p_ode, atol=1e-10)
    np.testing.assert_allclose(R, R_ode, atol=1e-9)
    axis = np.array([8.0, 0.0, 20.0]) / np.hypot(8.0, 20.0)
    radius = 8.0 / (8.0**2 + 20.0**2)
    progress = p @ axis
    np.testing.assert_allclose(progress, s * axis[2], atol=1e-12)
    centre = np.array([0.0, -radius, 0.0])
    distance = np.linalg.norm(p - centre - np.outer((p - centre) @ axis, axis), axis=1)
    np.testing.assert_allclose(distance, radius, atol=1e-12)


def test_linear_bending_is_a_clothoid():
    rate = 40.0  # [1/m^2] curvature per length
    s = np.linspace(0.0, 0.5, 213)
    p, _ = integrate_curve(s, np.column_stack([np.zeros(213), rate * s, np.zeros(213)]))
    scale = np.sqrt(np.pi / rate)
    sine, cosine = fresnel(s / scale)
    np.testing.assert_allclose(p[:, 0], scale * sine, atol=1e-8)
    np.testing.assert_allclose(p[:, 2], scale * cosine, atol=1e-8)


def test_error_falls_with_the_fourth_power_of_the_spacing():
    def kappa(x):
        return np.array([10 * x + 3, 6 - 30 * x, 15 + 25 * x])

    def stretch(x):
        return 1.02 + 0.1 * x

    errors = []
    for n in (9, 17):
        s = np.linspace(0.0, 0.4, n)
        p, R = integrate_curve(s, kappa(s[None]).T.reshape(n, 3), stretch(s) - 1)
        p_ode, R_ode = ode_reference(s, kappa, stretch)
        errors.append(max(abs(p - p_ode).max(), abs(R - R_ode).max()))
    assert 12 < errors[0] / errors[1] < 22


def test_stretch_scales_a_straight_fiber():
    s = np.linspace(0.0, 1.0, 5)
    p, _ = integrate_curve(s, np.zeros((5, 3)), np.full(5, 0.01))
    np.testing.assert_allclose(p[:, 2], 1.01 * s, atol=1e-15)


def test_kernel_agrees_with_its_own_python():
    rng = np.random.default_rng(0)
    s = np.cumsum(rng.uniform(0.001, 0.1, 20))
    kappa, stretch = rng.normal(0, 20, (20, 3)), rng.normal(1, 0.1, 20)
    results = []
    for kernel in (curve._integrate, curve._integrate.py_func):
        p, R = np.empty((20, 3)), np.empty((20, 3, 3))
        kernel(s, kappa, stretch, p, R)
        results.append((p, R))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-13)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-13)


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match='curvature_C'):
        integrate_curve(np.zeros(4), np.zeros((4, 2)))
    with pytest.raises(ValueError, match='strain'):
        integrate_curve(np.zeros(4), np.zeros((4, 3)), np.zeros(3))
