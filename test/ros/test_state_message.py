"""A state message that is reused for every publication."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rclpy.serialization import deserialize_message
from soft_robot_suite.msg import SoftState

import soft_dynamics as sd
from soft_estimation.differentiate.differentiator import Motion
from soft_estimation.nodes.state_message import StateMessage


def motion(start: float) -> Motion:
    q, qd, qdd, variance = np.split(start + np.arange(40.0), [8, 16, 24])
    return Motion(1.0, q, qd, qdd, variance)


def test_what_is_sent_is_what_was_estimated() -> None:
    arm = sd.load('honeycomb_arm')
    message = StateMessage(arm)
    for start in (0.0, 100.0):
        sent = deserialize_message(
            message.write(motion(start), 12_000_000_034, {'pressure', 'mocap'}), SoftState
        )
        assert (sent.header.stamp.sec, sent.header.stamp.nanosec, sent.header.frame_id) == (
            12,
            34,
            'base_link',
        )
        assert (sent.model, list(sent.names)) == ('honeycomb_arm', list(arm.coordinate_names))
        assert list(sent.sources) == ['mocap', 'pressure']
        values = [*sent.q, *sent.qd, *sent.qdd, *sent.covariance_diagonal]
        assert values == (start + np.arange(40.0)).tolist()


def test_a_state_that_is_not_finite_is_never_sent() -> None:
    wrong = motion(0.0)
    wrong.qd[3] = math.nan
    with pytest.raises(ArithmeticError, match='not finite'):
        StateMessage(sd.load('honeycomb_arm')).write(wrong, 0, ())
