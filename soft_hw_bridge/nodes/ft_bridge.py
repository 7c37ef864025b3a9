"""ATI force/torque sensor: publishes `ft/wrench`; the service `ft/bias` tares the sensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import WrenchStamped
from std_srvs.srv import Trigger

from soft_dynamics.diagnostics import Status
from soft_dynamics.reader import quantity
from soft_dynamics.ros.conversions import time_from_ns
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.qos import SENSOR
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.ft.client import FtConfig, NetFtClient, Sample
from soft_hw_bridge.nodes.bridge_base import BridgeNode

_POLL_TIMEOUT = 0.1  # [s]


@dataclass(frozen=True)
class Config(FtConfig):
    """Parameters of the node."""

    frame_id: str = quantity('ft_sensor', doc='frame of the wrench: the sensor frame')


class FtBridge(BridgeNode[NetFtClient]):
    """Publishes each new sample in N and N m. Tares only on request."""

    config: Config

    def __init__(self) -> None:
        super().__init__('ft_bridge', Config)
        self._publisher = self.create_publisher(WrenchStamped, 'ft/wrench', SENSOR)
        self._message = WrenchStamped()  # reused for all samples, a thousand per second
        self.create_service(Trigger, 'ft/bias', self._on_bias)

    def open_device(self) -> tuple[NetFtClient, str]:
        client = NetFtClient(self.config, self.now_ns)
        self._message.header.frame_id = self.config.frame_id
        return client, f'Net F/T at {self.config.host}:{self.config.rdt_port}'

    def poll_device(self, device: NetFtClient) -> None:
        for sample in device.poll(_POLL_TIMEOUT):
            if self.is_active:
                self._publish(sample)

    def supervise_device(self, device: NetFtClient) -> Status:
        return device.status()

    def close_device(self, device: NetFtClient) -> None:
        device.close()

    def _publish(self, sample: Sample) -> None:
        message = self._message
        force, torque = message.wrench.force, message.wrench.torque
        message.header.stamp = time_from_ns(sample.stamp_ns)
        force.x, force.y, force.z = sample.force
        torque.x, torque.y, torque.z = sample.torque
        self._publisher.publish(message)

    def _on_bias(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        try:
            if self._device is None:
                raise DeviceError('not configured')
            self._device.bias()
        except DeviceError as error:
            response.message = str(error)
        else:
            response.success = True
        return response


def main(args: list[str] | None = None) -> int:
    return run_node(FtBridge, args)
