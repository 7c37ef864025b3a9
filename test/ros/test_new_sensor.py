"""A sensor kind from outside the package: one entry in the table; the node subscribes and the filter uses it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import rclpy
from sensor_msgs.msg import JointState
from toy_sensor import BEND, NOISE

import soft_dynamics as sd
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.ros.conversions import time_from_ns
from soft_dynamics.ros.qos import SENSOR
from soft_estimation.kalman.model_filter import ModelFilter
from soft_estimation.kalman.sensors import SENSORS
from soft_estimation.kalman.warm_up import warm_up
from soft_estimation.nodes.estimator_config import Config, Setup
from soft_estimation.nodes.sensor_subscriptions import SensorInputs
from soft_estimation.scheduler import Ready, Sample, Scheduler

FLEX = Sensor(name='flex', kind='bend', frame='segment1')  # type: ignore[arg-type]
BENT = 0.1  # [rad]


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> sd.Robot:
    """The shipped arm with only the new sensor."""
    monkeypatch.setitem(SENSORS, 'bend', BEND)
    return sd.Robot(dataclasses.replace(sd.load('honeycomb_arm').description, sensors=(FLEX,)))


@pytest.fixture
def node() -> Iterator[Any]:
    rclpy.init()
    node = rclpy.create_node('bend_sensor')
    yield node
    node.destroy_node()
    rclpy.try_shutdown()


def test_the_filter_follows_the_new_sensor(arm: sd.Robot) -> None:
    estimator, rng = ModelFilter(arm), np.random.default_rng(1)
    for t in np.arange(0.0, 1.0, 0.01).tolist():
        estimator.feed_pressure(t, np.zeros(16))
        BEND.feed(estimator, 'flex', t, JointState(position=[BENT + rng.normal(0.0, NOISE)]))
    state = estimator.estimate(1.0)
    assert estimator.located
    assert estimator.innovations['flex'].accepted > 90
    assert state.q[0] == pytest.approx(BENT, abs=NOISE)
    assert state.variance[0] < NOISE**2  # many samples are more precise than one
    assert state.variance[0] < 0.1 * state.variance[1]  # the sensor does not see the other angle
    with pytest.raises(ValueError, match=r'expected a sensor of kind bend \(flex\), got .strip.'):
        BEND.feed(estimator, 'strip', 1.0, JointState(position=[BENT]))


def test_the_node_hears_the_new_sensor_and_lets_it_lead(arm: sd.Robot, node: Any) -> None:
    setup, heard, refused = Setup(Config(), arm, [FLEX]), list[Sample](), list[str]()
    assert setup.sees
    scheduler = Scheduler(200.0, 200.0, at_samples=False, leaders=tuple(SENSORS))
    inputs = SensorInputs(
        node, setup, scheduler, heard.append, lambda name, error: refused.append(str(error))
    )
    publisher = node.create_publisher(JointState, 'bend/flex', SENSOR)
    message = JointState(position=[BENT])
    message.header.stamp = time_from_ns(5_000_000_000)
    deadline = time.monotonic() + 30.0
    while not heard:
        assert time.monotonic() < deadline
        publisher.publish(message)
        rclpy.spin_once(node, timeout_sec=0.1)
    sample = heard[0]
    assert (sample.name, sample.kind, sample.stamp_ns) == ('flex', 'bend', 5_000_000_000)
    estimator = setup.make_filter()
    warm_up(setup.make_filter(), arm, setup.sensors)
    (ready,) = scheduler.add(sample, sample.stamp_ns)
    assert inputs.feed(estimator, ready)
    assert scheduler.leads('bend', ready.now)
    assert estimator.shown_at == 0.0
    wrong = Ready(sample._replace(message=JointState(position=[1.0, 2.0])), 0.01, 0.01)
    with pytest.raises(ValueError, match='position: expected 1 number, got 2'):
        inputs.feed(estimator, wrong)
    assert refused == []
    inputs.close()
