"""Fiber shape sensor: publishes points and curvature along the body on `fiber/shape`."""

from __future__ import annotations

from dataclasses import dataclass

from soft_robot_suite.msg import ShapeSamples

from soft_dynamics.diagnostics import Status
from soft_dynamics.reader import quantity
from soft_dynamics.ros.conversions import float64s, time_from_ns
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.qos import SENSOR
from soft_hw_bridge.fiber.config import FiberConfig
from soft_hw_bridge.fiber.stream import FiberStream, Shape
from soft_hw_bridge.nodes.bridge_base import BridgeNode

_POLL_TIMEOUT = 0.1  # [s]


@dataclass(frozen=True)
class Config(FiberConfig):
    """Parameters of the node."""

    frame_id: str = quantity('fiber_base', doc='frame of the points: base of the fiber, z along the fiber')


class FiberBridge(BridgeNode[FiberStream]):
    """Publishes each new shape with its time of measurement."""

    config: Config

    def __init__(self) -> None:
        super().__init__('fiber_bridge', Config)
        self._publisher = self.create_publisher(ShapeSamples, 'fiber/shape', SENSOR)

    def open_device(self) -> tuple[FiberStream, str]:
        stream = FiberStream(self.config, self.now_ns)
        host, port = stream.address
        self._frame_id = self.config.frame_id
        return stream, f'{self.config.protocol} at {host}:{port}'

    def poll_device(self, device: FiberStream) -> None:
        for shape in device.poll(_POLL_TIMEOUT):
            if self.is_active:
                self._publisher.publish(self._message(shape))

    def supervise_device(self, device: FiberStream) -> Status:
        return device.status()

    def close_device(self, device: FiberStream) -> None:
        device.close()

    def _message(self, shape: Shape) -> ShapeSamples:
        frame = shape.frame
        message = ShapeSamples(arc_length=float64s(frame.s))
        message.header.stamp = time_from_ns(shape.stamp_ns)
        message.header.frame_id = self._frame_id
        if frame.p_FC_F is not None:
            message.points = float64s(frame.p_FC_F)
        if frame.curvature_C is not None:
            message.curvature = float64s(frame.curvature_C)
        return message


def main(args: list[str] | None = None) -> int:
    return run_node(FiberBridge, args)
