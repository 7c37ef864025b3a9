"""Every body name maps to a topic name that ROS accepts."""

import pytest
from rclpy.validate_full_topic_name import validate_full_topic_name

from soft_hw_bridge.nodes.pose_publishers import topic_token


@pytest.mark.parametrize(
    ('name', 'token'),
    [
        ('tip', 'tip'),
        ('RaceQuad', 'RaceQuad'),
        ('LHR-0000000A', 'LHR_0000000A'),
        ('rigid body 1', 'rigid_body_1'),
        ('2nd', 'body_2nd'),
        ('a__b', 'a_b'),
        ('é', 'body__'),
        ('', 'body_'),
    ],
)
def test_name_becomes_a_valid_token(name: str, token: str) -> None:
    assert topic_token(name) == token
    validate_full_topic_name(f'/mocap/{token}/pose')
