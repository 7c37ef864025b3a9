"""After a failure of the filter the node restarts the estimate instead of ending."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import rclpy

from soft_estimation.nodes.state_estimator import StateEstimator


@pytest.fixture
def node() -> Iterator[StateEstimator]:
    rclpy.init(args=['--ros-args', '-p', 'autostart:=false'])
    node = StateEstimator()
    try:
        node.trigger_configure()
        node.trigger_activate()
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


@pytest.mark.parametrize('error', [ValueError('qdd: expected finite numbers'), ZeroDivisionError('zero')])
def test_a_failing_estimate_starts_anew(node: Any, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    failing, node._scheduler.start_ns = node._estimator, node._clock_ns()
    monkeypatch.setattr(type(failing), 'located', property(fail))
    node._on_silence()
    assert node._failures == 1
    assert node._estimator is not failing
    assert 'lost the state' not in node._status().message
