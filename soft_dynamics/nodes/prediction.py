"""Publish, next to the measured state, the state that the model predicts."""

from __future__ import annotations

import numpy as np
from rclpy.node import Node
from soft_robot_suite.msg import ChamberPressures, SoftState

from soft_dynamics.arguments import Array
from soft_dynamics.counters import RateCounter, Status, stream_status
from soft_dynamics.ros.conversions import float64s, time_to_ns
from soft_dynamics.ros.qos import SENSOR, STATE
from soft_dynamics.twin import LONGEST_GAP, Twin


class Prediction:
    """`state` and `pressure/measured` in, `state/predicted` out, with the stamps of `state`."""

    def __init__(self, node: Node, twin: Twin) -> None:
        self._node, self._twin = node, twin
        self._pressure: Array | None = None if twin.robot.chamber_names else np.zeros(0)
        self._start_ns: int | None = None
        self._states = RateCounter()
        self._error = 0.0
        self._publisher = node.create_publisher(SoftState, 'state/predicted', STATE)
        node.create_subscription(ChamberPressures, 'pressure/measured', self.on_pressure, SENSOR)
        node.create_subscription(SoftState, 'state', self.on_state, STATE)

    def on_pressure(self, msg: ChamberPressures) -> None:
        measured = dict(zip(msg.names, msg.pressure, strict=False))
        try:
            self._pressure = np.array([measured[name] for name in self._twin.robot.chamber_names])
        except KeyError as missing:
            self._warn(f'pressure/measured lacks chamber {missing} of {self._twin.robot.name}')

    def on_state(self, msg: SoftState) -> None:
        robot = self._twin.robot
        if tuple(msg.names) != robot.coordinate_names:
            self._warn(f'state is of {msg.model or "?"}, expected the coordinates of {robot.name}')
            return
        if self._pressure is None:
            return
        stamp_ns = time_to_ns(msg.header.stamp)
        self._start_ns = stamp_ns if self._start_ns is None else self._start_ns
        try:
            q, qd = self._twin.feed((stamp_ns - self._start_ns) * 1e-9, msg.q, msg.qd, self._pressure)
        except ValueError as error:
            self._warn(f'state is not usable: {error}')
            return
        self._states.tick(self._now())
        self._error = float(np.max(np.abs(q - msg.q)))
        self._publisher.publish(
            SoftState(
                header=msg.header,
                model=robot.name,
                names=msg.names,
                q=float64s(q),
                qd=float64s(qd),
                sources=['pressure'],
            )
        )

    def status(self) -> Status:
        """Judge the stream of states and report how far the model is from them."""
        t = self._now()
        verdict = stream_status(self._states.rate(t), self._states.age(t), 0.0, LONGEST_GAP)
        values = {
            **verdict.values,
            'largest error [rad or m]': f'{self._error:.3g}',
            'restarts': self._twin.restarts,
        }
        return verdict._replace(values=values)

    def _now(self) -> float:
        return self._node.get_clock().now().nanoseconds * 1e-9

    def _warn(self, text: str) -> None:
        self._node.get_logger().warning(text, throttle_duration_sec=5.0)
