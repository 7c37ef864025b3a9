"""Base class of all bridges."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from typing import Any, Generic, TypeVar

from rclpy.clock import Clock
from rclpy.clock_type import ClockType

from soft_dynamics.diagnostics import OK, STALE, Status
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.lifecycle import ManagedNode
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.report import USER_ERRORS

Device = TypeVar('Device')

_SUPERVISE_PERIOD = 0.1  # [s]
_COUNT_PERIOD = 0.2  # [s] least time between two reports of growing counters
_COUNTERS = {  # of faults
    *('lost', 'duplicate', 'out_of_order', 'malformed', 'foreign', 'reconnects', 'restarts'),
    *('clock_relocks', 'invalid', 'device_errors', 'device_losses'),
}


class BridgeNode(ManagedNode, Generic[Device]):
    """Polls a device in its own thread from configure to cleanup; subclasses publish while `is_active`.

    Names and clock are thus known before the first message, and activation finds no old samples. Parameters apply at
    the next configure; the node rejects invalid values at once. It logs each change of state and publishes it on
    `/diagnostics` at once, and a grown fault counter at most five times a second.
    """

    def __init__(self, node_name: str, config_class: type[Any]) -> None:
        super().__init__(node_name)
        self.check_config(bind_config(self, config_class, self._on_change))
        self.is_active = False  # like `active`, for the thread
        self.diagnostics = Diagnostics(self, 'not configured', {'device': self._status})
        self._device: Device | None = None
        self._thread = threading.Thread()
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._told = (OK, '')
        self._counted: list[object] = []
        self._counted_t = 0.0
        self.create_timer(_SUPERVISE_PERIOD, self._supervise, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def check_config(self, config: Any) -> None:
        """Raise the errors of `open_device` about parameters that the dataclass cannot check alone."""

    @abstractmethod
    def open_device(self) -> tuple[Device, str]:
        """Return the device, ready to poll, and its hardware id; DeviceError if that is impossible."""

    @abstractmethod
    def poll_device(self, device: Device) -> None:
        """Read the device and publish if `is_active`; wait at most 0.1 s. Runs in the thread."""

    @abstractmethod
    def supervise_device(self, device: Device) -> Status:
        """Return the status and create publishers. Runs ten times a second in the executor."""

    @abstractmethod
    def close_device(self, device: Device) -> None: ...

    def now_ns(self) -> int:
        """Return ROS time."""
        return int(self.get_clock().now().nanoseconds)

    def on_configure(self, state: Any) -> Any:
        device, self.diagnostics.hardware_id = self.open_device()
        self._device = device
        self._stop.clear()
        self._thread = threading.Thread(target=self._poll, args=(device,), name='device')
        self._thread.start()
        return super().on_configure(state)

    def on_activate(self, state: Any) -> Any:
        self.is_active = True
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> Any:
        self.is_active = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> Any:
        if self._device is not None:
            device, self._device = self._device, None
            self._stop.set()
            self._thread.join()
            self.close_device(device)
        return super().on_cleanup(state)

    def _on_change(self, config: Any) -> None:
        try:
            self.check_config(config)
        except USER_ERRORS as error:
            raise ValueError(str(error)) from None
        self.get_logger().info('new parameters apply at the next configure')

    def _poll(self, device: Device) -> None:
        try:
            while not self._stop.is_set():
                self.poll_device(device)
        except Exception as error:
            self._error = error

    def _supervise(self) -> None:
        if self._error:
            raise self._error  # a bug: end as after an exception in a callback
        status, t = self._status(), time.monotonic()
        counted = [value for key, value in status.values.items() if key.rpartition('.')[2] in _COUNTERS]
        if (status.level, status.message) != self._told:
            self._told = (status.level, status.message)
            if status.level == OK:  # rclpy allows a line of code only one severity
                self.get_logger().info(status.message)
            else:
                self.get_logger().warning(status.message)
        elif counted == self._counted or t - self._counted_t < _COUNT_PERIOD:
            return
        self._counted, self._counted_t = counted, t
        self.diagnostics.publish()

    def _status(self) -> Status:
        if self._device is None:
            return Status(STALE, 'not configured')
        return self.supervise_device(self._device)
