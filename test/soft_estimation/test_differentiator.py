"""The differentiator against motions with known rates."""

from __future__ import annotations

import math

import numpy as np
import pytest

import soft_dynamics as sd
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.differentiate.differentiator import Differentiator, DifferentiatorConfig
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator

T = np.arange(0.0, 3.0, 0.005)


def rates(filter_: Differentiator, q: np.ndarray) -> np.ndarray:
    out = []
    for t, value in zip(T, q, strict=True):
        filter_.feed(t, [value])
        out.append(filter_.estimate(t).qd[0])
    return np.array(out)


def test_a_parabola_has_its_rate_and_acceleration_without_lag() -> None:
    differentiator = Differentiator(1, DifferentiatorConfig(bandwidth=5.0))
    qd = rates(differentiator, 0.3 - 0.7 * T + 2.0 * T**2)
    assert qd[-100:] == pytest.approx(-0.7 + 4.0 * T[-100:], abs=1e-6)
    assert differentiator.estimate(T[-1] + 0.1).qdd == pytest.approx([4.0], abs=1e-4)


def test_a_noisy_swing_is_differentiated_far_better_than_by_differences() -> None:
    q, qd = 0.5 * np.sin(2.0 * math.pi * T), math.pi * np.cos(2.0 * math.pi * T)
    noisy = q + np.random.default_rng(1).normal(0.0, 1e-3, T.size)
    error = rates(Differentiator(1, DifferentiatorConfig(bandwidth=8.0, noise=1e-3)), noisy)[100:] - qd[100:]
    differences = np.diff(noisy)[99:] / 0.005 - qd[100:]
    assert np.std(error) < 0.12  # [rad/s] of 3.1
    assert np.std(error) < 0.5 * np.std(differences)


@pytest.mark.parametrize('rate', [100.0, 400.0])
def test_the_bandwidth_is_the_same_at_every_rate(rate: float) -> None:
    """Third-order Butterworth: at the cut-off the amplitude is about 1, far above it falls."""
    amplitude = {}
    for frequency in (1.0, 40.0):
        differentiator, values = Differentiator(1, DifferentiatorConfig(bandwidth=5.0, gate=1e6)), []
        for t in np.arange(0.0, 3.0, 1.0 / rate):
            differentiator.feed(t, [math.sin(2.0 * math.pi * frequency * t)])
            values.append(differentiator.estimate(t).q[0])
        amplitude[frequency] = max(values[-int(rate) :])
    assert amplitude[1.0] == pytest.approx(1.0, abs=0.05)
    assert amplitude[40.0] < 0.4


def test_one_wild_sample_leaves_no_trace_and_a_new_place_is_accepted_in_time() -> None:
    differentiator = Differentiator(1, DifferentiatorConfig(bandwidth=8.0, timeout=0.2))
    q = np.where(T > 2.0, 1.5, 0.5)
    q[200] += 0.5
    qd = rates(differentiator, q)
    assert np.max(np.abs(qd[150:400])) < 1e-6
    assert differentiator.rejected > 1
    assert differentiator.estimate(T[-1]).q == pytest.approx([1.5], abs=1e-3)


def test_what_is_not_seen_coasts_with_growing_variance() -> None:
    differentiator = Differentiator(2)
    for t in T[:200]:
        differentiator.feed(t, [t, t])
    before = differentiator.estimate(T[199]).variance
    for t in T[200:230]:
        differentiator.feed(t, [t, 0.0], np.array([True, False]))
    after = differentiator.estimate(T[229])
    assert after.q == pytest.approx([T[229], T[229]], abs=1e-3)
    assert after.variance[1] > 10.0 * before[1]
    assert after.variance[0] == pytest.approx(before[0], rel=0.1)


def test_what_is_not_seen_for_long_stands_still() -> None:
    differentiator = Differentiator(1, DifferentiatorConfig(timeout=0.25))
    for t in T[:200]:
        differentiator.feed(t, [t])
    for t in (2.0, 200.0):
        motion = differentiator.estimate(t)
        assert motion.q == pytest.approx([T[199] + 0.25], abs=1e-3)
        assert motion.qd == 0.0
    differentiator.feed(200.0, [7.0])
    assert differentiator.estimate(200.0).q == pytest.approx([7.0])


def test_a_light_tip_that_starts_fast_is_followed() -> None:
    """Released at 0.3 rad, it swings at 6 Hz."""
    after = np.maximum(T - 1.0, 0.0)
    q = 0.3 * np.cos(12.0 * math.pi * after) * np.exp(-2.0 * after)
    differentiator = Differentiator(1)
    rates(differentiator, q)
    assert differentiator.rejected == 0


def test_bodies_that_leave_a_segment_open_are_refused() -> None:
    arm = sd.load('honeycomb_arm')
    with pytest.raises(ValueError, match='end of every soft segment; plate2, plate4 cannot determine'):
        PoseDifferentiator(arm, sensors=('plate2', 'plate4'))


def test_a_body_that_is_lost_stops_its_segments_and_no_others() -> None:
    arm, q = sd.load('honeycomb_arm'), 0.1 * np.arange(1.0, 9.0)
    mount = pose_from_rpy(arm.description.mount.position, arm.description.mount.rpy)
    differentiator = PoseDifferentiator(arm)
    for k, t in enumerate(T[:300]):
        X_WF = mount @ arm.forward_kinematics(q * (1.0 + 0.2 * t))
        poses = {f'plate{i}': X for i, X in enumerate(X_WF) if k < 100 or i != 2}
        differentiator.feed_poses(t, poses)
    motion = differentiator.estimate(T[299])
    lost, seen = [2, 3, 4, 5], [0, 1, 6, 7]
    assert motion.qd[seen] == pytest.approx(0.2 * q[seen], abs=1e-3)
    assert motion.q[seen] == pytest.approx(q[seen] * (1.0 + 0.2 * T[299]), abs=1e-3)
    assert np.all(motion.qd[lost] == 0.0)
    assert motion.q[lost] == pytest.approx(q[lost] * (1.0 + 0.2 * (T[99] + 0.25)), abs=1e-3)
    assert np.all(motion.variance[lost] > 100.0 * motion.variance[seen].max())


def test_a_first_sample_that_is_wrong_does_not_throw_it() -> None:
    """It rejects two radians in 5 ms, and accepts 20 rad/s."""
    for first, rate in ((2.0, 0.0), (0.0, 20.0)):
        differentiator = Differentiator(1)
        differentiator.feed(0.0, [first])
        for t in T[1:100]:
            differentiator.feed(t, [rate * t])
            assert differentiator.estimate(t).q == pytest.approx([rate * t], abs=1e-3)
        assert differentiator.estimate(t).qd == pytest.approx([rate], abs=1e-3)
        assert differentiator.rejected == (rate == 0.0)


def shown(robot: sd.Robot, q: np.ndarray, twist: float) -> dict[str, np.ndarray]:
    """Poses of all tracked bodies, the second one rotated about its own z."""
    mount = pose_from_rpy(robot.description.mount.position, robot.description.mount.rpy)
    X_WF = dict(zip(robot.frame_names, mount @ robot.forward_kinematics(q), strict=True))
    bodies = {s.name: s for s in robot.description.sensors if s.kind in ('mocap', 'vive')}
    poses = {name: X_WF[s.frame] @ pose_from_rpy(s.position, s.rpy) for name, s in bodies.items()}
    turned = list(poses)[1]
    poses[turned] = poses[turned] @ pose_from_rpy([0.0, 0.0, 0.0], [0.0, 0.0, twist])
    return poses


@pytest.mark.parametrize('name', ['honeycomb_arm', 'pneumatic_arm'])
def test_poses_with_a_twist_that_no_segment_has_are_left_out(name: str) -> None:
    robot = sd.load(name)
    q = np.full(robot.nq, 0.1)
    differentiator = PoseDifferentiator(robot)
    differentiator.feed_poses(0.0, shown(robot, q, 0.8))
    assert not differentiator.located
    assert differentiator.unexplained > 0
    differentiator.feed_poses(0.01, shown(robot, q, 0.0))
    assert differentiator.estimate(0.01).q == pytest.approx(q, abs=1e-9)


def test_there_is_no_state_before_all_coordinates_were_seen() -> None:
    arm, q = sd.load('honeycomb_arm'), np.full(8, 0.1)
    differentiator, poses = PoseDifferentiator(arm), shown(arm, q, 0.0)
    differentiator.feed_poses(0.0, {name: X for name, X in poses.items() if name != 'plate4'})
    assert not differentiator.located
    with pytest.raises(ValueError, match='all coordinates'):
        differentiator.estimate(0.0)
    differentiator.feed_poses(0.01, poses)
    assert differentiator.estimate(0.01).q == pytest.approx(q, abs=1e-9)


def test_misuse_is_refused() -> None:
    differentiator = Differentiator(1)
    differentiator.feed(1.0, [0.0])
    for call in (lambda: differentiator.feed(0.9, [0.0]), lambda: differentiator.estimate(0.5)):
        with pytest.raises(ValueError, match='at least 1'):
            call()
    with pytest.raises(ValueError, match='finite'):
        differentiator.feed(2.0, [math.nan])
    with pytest.raises(ValueError, match='bandwidth'):
        Differentiator(1, DifferentiatorConfig(bandwidth=0.0))
