"""From strain to curvature: gaps, and cores checked against the lengths of deformed curves."""

import numpy as np
import pytest

from soft_dynamics.geometry.curve import integrate_curve
from soft_hw_bridge.fiber.strain_to_curvature import CoreLayout, StrainSolver, bridge_gaps


def test_short_gaps_are_bridged_and_long_ones_stay():
    s = np.linspace(0.0, 0.9, 10)
    values = np.column_stack([2 * s, -s, np.ones(10)])
    damaged = values.copy()
    damaged[2, 1] = np.nan
    damaged[5:8] = np.nan
    damaged[9] = np.nan
    mended = bridge_gaps(s, damaged, max_gap=0.25)
    np.testing.assert_allclose(mended[2], values[2])
    assert np.isnan(mended[5:8]).all()
    assert np.isnan(mended[9]).all()
    np.testing.assert_allclose(bridge_gaps(s, damaged, max_gap=0.5)[5:8], values[5:8])
    assert np.isnan(damaged[2, 1])


def length_strain(layout, s, kappa, stretch):
    """Return the strain of each core, from its deformed and its straight length."""
    h = 1e-5
    strains = np.empty((len(layout.radius), len(s)))
    for i, (r, angle) in enumerate(zip(layout.radius, layout.angle, strict=True)):
        for j, x in enumerate(s):
            ends = []
            for k in (kappa[j], np.zeros(3)):
                places = np.array([x, x + h])
                p, R = integrate_curve(places, np.tile(k, (2, 1)), np.full(2, stretch[j] if k.any() else 0.0))
                phase = angle + layout.pretwist * places
                core = p + np.einsum(
                    'nij,nj->ni', R, np.column_stack([r * np.cos(phase), r * np.sin(phase), np.zeros(2)])
                )
                ends.append(np.linalg.norm(core[1] - core[0]))
            strains[i, j] = ends[0] / ends[1] - 1
    return strains


@pytest.mark.parametrize('pretwist', [0.0, 90.0])
def test_curvature_comes_back_from_the_lengths_of_the_cores(pretwist):
    layout = CoreLayout(
        (0.0, 40e-6, 40e-6, 40e-6), (0.0, 0.3, 0.3 + 2 * np.pi / 3, 0.3 + 4 * np.pi / 3), pretwist
    )
    s = np.linspace(0.0, 0.2, 9)
    twist = 3.0 if pretwist else 0.0
    kappa = np.column_stack([4 + 10 * s, 7 - 20 * s, np.full(9, twist)])
    stretch = np.full(9, 2e-4)
    curvature, estimate = StrainSolver(layout).solve(s, length_strain(layout, s, kappa, stretch))
    np.testing.assert_allclose(curvature[:, :2], kappa[:, :2], rtol=2e-3, atol=5e-3)
    np.testing.assert_allclose(curvature[:, 2], twist, atol=0.1)
    np.testing.assert_allclose(estimate, stretch, atol=2e-6)


def test_the_outer_side_of_the_bend_is_stretched():
    layout = CoreLayout((1e-3,) * 3, tuple(np.radians([0, 120, 240])))
    towards_x = np.array([[0.0, 5.0, 0.0]])  # rotation about y bends the tip towards +x
    strain = layout.matrix(np.zeros(1))[0] @ np.array([0.0, 5.0, 0.0])
    assert strain[0] < 0 < strain[1]
    curvature, _ = StrainSolver(layout).solve(np.zeros(1), strain[:, None])
    np.testing.assert_allclose(curvature, towards_x, atol=1e-12)


@pytest.mark.parametrize(
    ('radius', 'angle'),
    [
        ((1e-3, 1e-3), (0.0, 3.0)),
        ((1e-3, 1e-3, 0.0), (0.0, np.pi, 0.0)),
        ((-1e-3, 1e-3, 1e-3), (0.0, 2.0, 4.0)),
    ],
)
def test_layouts_that_cannot_tell_bending_are_refused(radius, angle):
    with pytest.raises(ValueError, match=r'cores must be|radius must be'):
        CoreLayout(radius, angle)
