"""Messages to arrays and back, without nodes."""

import importlib
import sys
import time
from array import array
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, Transform, Twist, Vector3, Wrench
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from transforms3d import affines, quaternions

from soft_dynamics.geometry import quaternion
from soft_dynamics.ros import conversions

ONE_TO_THREE, FOUR_TO_SIX = Vector3(x=1.0, y=2.0, z=3.0), Vector3(x=4.0, y=5.0, z=6.0)
QUAT = Quaternion(x=0.5, y=-0.5, z=0.5, w=0.5)


def test_wrench_is_torque_first() -> None:
    message = Wrench(force=ONE_TO_THREE, torque=FOUR_TO_SIX)
    assert conversions.wrench_to_array(message).tolist() == [4, 5, 6, 1, 2, 3]
    assert conversions.wrench_from_array([4, 5, 6, 1, 2, 3]) == message


def test_twist_is_angular_first() -> None:
    message = Twist(linear=ONE_TO_THREE, angular=FOUR_TO_SIX)
    assert conversions.twist_to_array(message).tolist() == [4, 5, 6, 1, 2, 3]
    assert conversions.twist_from_array(np.array([4, 5, 6, 1, 2, 3])) == message


def test_pose_and_transform_keep_the_order_of_the_quaternion() -> None:
    pose = Pose(position=Point(x=1.0, y=2.0, z=3.0), orientation=QUAT)
    transform = Transform(translation=ONE_TO_THREE, rotation=QUAT)
    for quat_WB, p_WB in (conversions.pose_to_arrays(pose), conversions.transform_to_arrays(transform)):
        assert quat_WB.tolist() == [0.5, -0.5, 0.5, 0.5]
        assert p_WB.tolist() == [1, 2, 3]
    assert conversions.pose_from_arrays(quat_WB, p_WB) == pose
    assert conversions.transform_from_arrays(quat_WB, p_WB) == transform


def test_an_unset_orientation_is_refused() -> None:
    """Quaternion() is the identity; careless senders leave all fields zero."""
    with pytest.raises(ValueError, match='unit length'):
        conversions.pose_to_arrays(Pose(orientation=Quaternion(w=0.0)))
    with pytest.raises(ValueError, match='unit length'):
        conversions.transform_from_arrays([0, 0, 0, float('nan')], [0, 0, 0])


@pytest.mark.parametrize('ns', [0, 1, 999_999_999, 1_000_000_000, 1_794_802_551_481_083_391, -1])
def test_nanoseconds_are_exact(ns: int) -> None:
    stamp = conversions.time_from_ns(ns)
    assert conversions.time_to_ns(stamp) == ns
    assert 0 <= stamp.nanosec < 1_000_000_000


def test_seconds_are_rounded_to_the_nearest_nanosecond() -> None:
    assert conversions.time_from_seconds(1.3) == Time(sec=1, nanosec=300_000_000)
    assert conversions.time_from_seconds(0.9999999999) == Time(sec=1, nanosec=0)
    assert conversions.time_to_seconds(Time(sec=2, nanosec=500_000_000)) == 2.5


@pytest.mark.parametrize('dtype', [np.float64, np.float32, np.int64])
def test_arrays_are_flattened_row_by_row(dtype: type) -> None:
    columns_first = np.arange(6).reshape(2, 3).astype(dtype).T
    assert JointState(position=conversions.float64s(columns_first)).position == array('d', [0, 3, 1, 4, 2, 5])


def test_whole_numbers_become_floats() -> None:
    """rclpy does not check fields, and serializes an int in a float64 field as garbage."""
    pose = conversions.pose_from_arrays([0, 0, 0, 1], [1, 2, 3])
    wrench = conversions.wrench_from_array(np.arange(6))
    assert {type(v) for v in (pose.position.x, pose.orientation.w, wrench.force.x, wrench.torque.z)} == {
        float
    }


TURNS = [*Rotation.random(50, random_state=1).as_matrix(), np.eye(3), np.diag([1.0, -1.0, -1.0])]


@pytest.fixture(params=['transforms3d', 'tf_transformations'])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The conversions without ROS, and with ROS, whose package calls transforms3d like this."""
    stand_in: Any = None  # Python treats it as a missing module
    if request.param == 'tf_transformations':
        stand_in = ModuleType('tf_transformations')
        stand_in.quaternion_matrix = lambda quat: affines.compose(
            [0.0] * 3, quaternions.quat2mat([quat[3], *quat[:3]]), [1.0] * 3
        )
        stand_in.quaternion_from_matrix = lambda X: tuple(
            np.roll(quaternions.mat2quat(affines.decompose(X)[1]), -1)
        )
    monkeypatch.setitem(sys.modules, 'tf_transformations', stand_in)
    yield importlib.reload(conversions)
    monkeypatch.undo()
    importlib.reload(conversions)


def test_rotations_of_messages_agree_with_the_suites_own(library: ModuleType) -> None:
    for k, R in enumerate(TURNS):
        X = np.eye(4)
        X[:3, :3], X[:3, 3] = R, [1.0, 2.0, k]
        pose, transform = library.pose_from_matrix(X), library.transform_from_matrix(X)
        own = quaternion.from_rotation(R)
        for quat, p in (library.pose_to_arrays(pose), library.transform_to_arrays(transform)):
            np.testing.assert_allclose(quat * np.sign(quat @ own), own, atol=1e-12)
            assert p.tolist() == [1.0, 2.0, k]
        np.testing.assert_allclose(library.pose_to_matrix(pose), X, atol=1e-12)
        np.testing.assert_allclose(
            library.pose_to_matrix(pose)[:3, :3], quaternion.to_rotation(own), atol=1e-12
        )


def test_a_message_of_a_pose_costs_little(library: ModuleType) -> None:
    """CPU time of this thread; at most a tenth of the period of poses at 100 Hz."""
    X = np.eye(4)
    X[:3, :3] = TURNS[0]
    costs = []
    for _ in range(20):
        start = time.thread_time()
        for _ in range(20):
            library.pose_to_matrix(library.pose_from_matrix(X))
        costs.append((time.thread_time() - start) / 20)
    assert min(costs) < 1e-3


def test_an_unset_orientation_has_no_matrix(library: ModuleType) -> None:
    with pytest.raises(ValueError, match='unit length'):
        library.pose_to_matrix(Pose(orientation=Quaternion(w=0.0)))
