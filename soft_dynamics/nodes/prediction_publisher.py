"""Publish the state predicted by the model, for comparison with the measured state."""

from __future__ import annotations

import numpy as np
from rclpy.node import Node
from soft_robot_suite.msg import ChamberPressures, SoftState

from soft_dynamics.array import Array
from soft_dynamics.diagnostics import RateCounter, Status, stream_status
from soft_dynamics.messages.flat_messages import Flat
from soft_dynamics.ros.conversions import float64s, time_from_ns
from soft_dynamics.ros.message_guard import Refusals, subscribe
from soft_dynamics.ros.qos import SENSOR, STATE
from soft_dynamics.simulation.live_model import LONGEST_GAP, Twin


class Prediction:
    """Subscribes to `state` and `pressure/measured`; publishes `state/predicted` with the stamps of `state`."""

    def __init__(self, node: Node, twin: Twin) -> None:
        self._node, self._twin = node, twin
        self._pressure: Array | None = None if twin.robot.chamber_names else np.zeros(0)
        self._start_ns: int | None = None
        self._states = RateCounter()
        self._error = 0.0
        self._refusals = Refusals(node)
        self._publisher = node.create_publisher(SoftState, 'state/predicted', STATE)
        subscribe(node, ChamberPressures, 'pressure/measured', self.on_pressure, SENSOR, self._refusals.add)
        subscribe(node, SoftState, 'state', self.on_state, STATE, self._refusals.add)

    def on_pressure(self, message: Flat) -> None:
        """Store the pressures. Raises ValueError if one is missing."""
        (_, names, *_), (pressure,) = message.texts, message.arrays
        measured = dict(zip(names, pressure.tolist(), strict=False))
        missing = [name for name in self._twin.robot.chamber_names if name not in measured]
        if missing:
            raise ValueError(f'lacks chamber {missing[0]!r} of {self._twin.robot.name}')
        self._pressure = np.array([measured[name] for name in self._twin.robot.chamber_names])

    def on_state(self, message: Flat) -> None:
        """Publish the prediction for the time of a state. Raises ValueError if the state is of another robot."""
        (frame_id, model, names, _), (q_measured, qd_measured, *_) = message.texts, message.arrays
        robot = self._twin.robot
        if names != robot.coordinate_names:
            raise ValueError(f'expected the coordinates of {robot.name}, got a state of {model[:100] or "?"}')
        if self._pressure is None:
            return
        self._start_ns = message.stamp_ns if self._start_ns is None else self._start_ns
        t = (message.stamp_ns - self._start_ns) * 1e-9
        q, qd = self._twin.feed(t, q_measured, qd_measured, self._pressure)
        self._states.tick(self._now())
        self._error = float(np.max(np.abs(q - q_measured)))
        predicted = SoftState(
            model=robot.name, names=list(names), q=float64s(q), qd=float64s(qd), sources=['pressure']
        )
        predicted.header.stamp, predicted.header.frame_id = time_from_ns(message.stamp_ns), frame_id
        self._publisher.publish(predicted)

    def status(self) -> Status:
        """Return the status of the stream of states, with the error of the model."""
        t = self._now()
        verdict = stream_status(self._states.rate(t), self._states.age(t), 0.0, LONGEST_GAP)
        values = {
            **verdict.values,
            'largest error [rad or m]': f'{self._error:.3g}',
            'restarts': self._twin.restarts,
            **self._refusals.report(),
        }
        return verdict._replace(values=values)

    def _now(self) -> float:
        return self._node.get_clock().now().nanoseconds * 1e-9
