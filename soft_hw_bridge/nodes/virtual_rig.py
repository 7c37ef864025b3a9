"""Virtual rig: simulates a robot and its devices, which speak the protocols of the real ones.

When all ports listen, the node prints them as one line of JSON. It publishes diagnostics only, and `/clock` at
pace `stepped`.
"""

from __future__ import annotations

import json
import threading
from typing import NoReturn

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage

from soft_dynamics.ros.conversions import time_from_seconds
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.qos import SENSOR
from soft_dynamics.ros.report import report
from soft_hw_bridge.rig.config import RigConfig
from soft_hw_bridge.rig.virtual_rig import Rig

_SUPERVISE_PERIOD = 0.1  # [s]


class VirtualRig(Node):
    """Runs a rig in its own thread."""

    config: RigConfig
    can_wait = True  # real devices have their own computers

    def __init__(self) -> None:
        super().__init__('virtual_rig')
        bind_config(self, RigConfig, _refuse)
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._is_stepped = self.config.pace == 'stepped'
        self._clock_publisher = (
            self.create_publisher(ClockMessage, '/clock', SENSOR) if self._is_stepped else None
        )
        self._rig = Rig(self.config, self._tell_time)
        # A daemon, so that an aborted start does not block the end of the process.
        self._thread = threading.Thread(target=self._run, name='rig', daemon=True)
        self._thread.start()
        Diagnostics(self, f'virtual {self.config.robot}', {'rig': self._rig.status})
        self.create_timer(_SUPERVISE_PERIOD, self._supervise, clock=Clock(clock_type=ClockType.STEADY_TIME))
        print(json.dumps({'robot': self.config.robot, 'ports': self._rig.ports}), flush=True)

    def destroy_node(self) -> None:
        """Stop the rig, then destroy the node."""
        self._stop.set()
        self._thread.join()
        self._rig.close()
        super().destroy_node()

    def _run(self) -> None:
        try:
            self._rig.run(self._stop.is_set)
        except Exception as error:
            self._error = error

    def _supervise(self) -> None:
        if self._error:
            report(self.get_logger(), 'the rig has stopped', self._error)
            raise SystemExit(1)
        self._tell_time()  # also while the clock stands still, for late subscribers

    def _tell_time(self, *_: float) -> None:
        if self._clock_publisher:
            with self._lock:  # two threads publish, and time must not go back
                self._clock_publisher.publish(ClockMessage(clock=time_from_seconds(self._rig.plant.t)))


def _refuse(_: RigConfig) -> NoReturn:
    raise ValueError('parameters of a virtual rig apply at its start')


def main(args: list[str] | None = None) -> int:
    return run_node(VirtualRig, args)
