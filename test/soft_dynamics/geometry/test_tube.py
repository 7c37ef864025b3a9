"""The drawn body against closed forms and against the robot's own frames."""

from __future__ import annotations

import numpy as np
import pytest

import soft_dynamics as sd
from soft_dynamics.geometry.tube import frame_poses, rings, segment_pressures, tube
from soft_dynamics.segments import Disc

ROBOTS = ('bending_actuator', 'fabric_arm', 'floating_actuator', 'honeycomb_arm', 'pneumatic_arm')


def bent(robot: sd.Robot) -> np.ndarray:
    lengths = [name.endswith(('_dx', '_dy', '_dl')) for name in robot.coordinate_names]
    return robot.rest + np.random.default_rng(2).uniform(-1, 1, robot.nq) * np.where(lengths, 0.03, 0.6)


@pytest.mark.parametrize('name', ROBOTS)
def test_every_segment_is_drawn_from_its_start_to_its_end(name: str) -> None:
    robot = sd.load(name)
    q = bent(robot)
    body, X_RF = tube(robot, q), frame_poses(robot, q)
    for k, segment in enumerate(robot.description.segments):
        ends = body.points[body.segment == k][[0, -1]]
        arm = segment.radius if isinstance(segment, Disc) else 0.0
        np.testing.assert_allclose(ends, X_RF[k : k + 2, :3, 3] + arm * X_RF[k : k + 2, :3, 1], atol=1e-9)


def test_an_arc_has_its_own_curvature_and_tangents() -> None:
    robot = sd.load('pneumatic_arm')
    q = np.array([0.3, 0.4, 0.0, -1.2, 0.0, 0.0])
    body = tube(robot, q, 50)
    curvature = [body.curvature[body.segment == k][0] for k in range(6)]
    np.testing.assert_allclose(curvature, [0.5 / 0.2, 0.0, 1.2 / 0.2, 0.0, 0.0, 0.0], rtol=0.002, atol=1e-4)
    np.testing.assert_allclose(body.tangents[-1], frame_poses(robot, q)[-1, :3, 2], atol=1e-3)


def test_between_plates_runs_the_circle_that_touches_both_links() -> None:
    robot = sd.load('honeycomb_arm')
    q = np.zeros(8)
    q[0] = 0.8
    body = tube(robot, q, 40)
    half, own = 0.5 * 0.185, body.segment == 0
    assert body.curvature[own][0] == pytest.approx(np.tan(0.4) / half, rel=0.003)
    X_RF = frame_poses(robot, q)
    centre = X_RF[0, :3, 3] + half / np.tan(0.4) * X_RF[0, :3, 0]
    np.testing.assert_allclose(
        np.linalg.norm(body.points[own] - centre, axis=1), half / np.tan(0.4), rtol=1e-3
    )


@pytest.mark.parametrize('name', ROBOTS)
def test_rings_lie_around_the_body_without_twist(name: str) -> None:
    robot = sd.load(name)
    body = tube(robot, bent(robot))
    spokes = rings(body, 8) - body.points[:, None]
    np.testing.assert_allclose(np.linalg.norm(spokes, axis=2), np.repeat(body.radius[:, None], 8, 1))
    np.testing.assert_allclose(np.einsum('ksi,ki->ks', spokes, body.tangents), 0.0, atol=1e-12)
    directions = spokes / body.radius[:, None, None]
    assert np.einsum('ksi,ksi->ks', directions[1:], directions[:-1]).min() > 0.8


def test_pressure_is_shown_as_the_mean_of_a_segments_chambers() -> None:
    description = sd.load('pneumatic_arm').description
    pressure = np.zeros(12)
    pressure[4:8] = 0.0, 150e3, 75e3, 75e3
    np.testing.assert_allclose(segment_pressures(description, pressure), [0, 0, 0.5, 0, 0, 0])
    np.testing.assert_array_equal(segment_pressures(description, np.full(12, 1e9)), [1, 0, 1, 0, 1, 0])
