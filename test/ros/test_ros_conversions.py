"""Messages to arrays and back; no node runs."""

from array import array

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, Transform, Twist, Vector3, Wrench
from sensor_msgs.msg import JointState

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
    """A Quaternion() is the identity; what careless senders leave is all zero."""
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
    """A message does not check its fields, and an int in a float64 is sent as garbage."""
    pose = conversions.pose_from_arrays([0, 0, 0, 1], [1, 2, 3])
    wrench = conversions.wrench_from_array(np.arange(6))
    assert {type(v) for v in (pose.position.x, pose.orientation.w, wrench.force.x, wrench.torque.z)} == {
        float
    }
