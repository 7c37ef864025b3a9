"""Diagnostics of a node, once a second on `/diagnostics`.

The topic name is absolute, as usual in ROS: one monitor sees all robots, and status names contain the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from soft_dynamics.diagnostics import Status
from soft_dynamics.errors import one_line
from soft_dynamics.ros.qos import STATE

_PERIOD = 1.0  # [s]
_LONGEST_TEXT = 500  # characters: messages may contain external text


class Diagnostics:
    """Publishes the status that the given functions return.

    Diagnostics(self, 'OptiTrack at 192.168.1.10', {'stream': self.stream_status})
    """

    def __init__(self, node: Node, hardware_id: str, sources: Mapping[str, Callable[[], Status]]) -> None:
        self.hardware_id = hardware_id
        self._node = node
        self._sources = dict(sources)
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', STATE)
        # Steady time: diagnostics continue while simulated time is paused.
        node.create_timer(_PERIOD, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def publish(self) -> None:
        """Publish now, for changes that cannot wait for the next second."""
        name = self._node.get_fully_qualified_name()
        array = DiagnosticArray(
            status=[self._message(f'{name}: {label}', source()) for label, source in self._sources.items()]
        )
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)

    def _message(self, name: str, status: Status) -> DiagnosticStatus:
        return DiagnosticStatus(
            level=bytes([status.level]),
            name=name,
            message=one_line(status.message, _LONGEST_TEXT),
            hardware_id=one_line(self.hardware_id, _LONGEST_TEXT),
            values=[
                KeyValue(key=one_line(key, _LONGEST_TEXT), value=one_line(str(value), _LONGEST_TEXT))
                for key, value in status.values.items()
            ],
        )
