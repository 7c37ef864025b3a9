"""A lifecycle node that prints every step to stdout and fails on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rclpy

from soft_dynamics.diagnostics import OK, WARN, Status
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.lifecycle import ManagedNode
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config


@dataclass(frozen=True)
class Config:
    """The failure to inject."""

    fail_in: str = ''  # name of a callback
    loses_context: bool = False  # when active


class Managed(ManagedNode):
    """Prints the name of each transition callback."""

    config: Config

    def __init__(self) -> None:
        super().__init__('managed')
        self.config = bind_config(self, Config)
        self.diagnostics = Diagnostics(self, 'rig 1', {'lifecycle': self.lifecycle_status})

    def lifecycle_status(self) -> Status:
        if self.active:
            return Status(OK, 'active', {'answer': 42})
        return Status(WARN, 'not active')

    def _step(self, name: str) -> None:
        print(name, flush=True)
        if self.config.fail_in == name:
            raise OSError(f'{name}: the device does not answer')

    def on_configure(self, state: Any) -> Any:
        self._step('on_configure')
        return super().on_configure(state)

    def on_activate(self, state: Any) -> Any:
        self._step('on_activate')
        if self.config.loses_context:
            self.create_timer(0.0, rclpy.shutdown)
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> Any:
        self._step('on_deactivate')
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> Any:
        self._step('on_cleanup')
        return super().on_cleanup(state)

    def on_shutdown(self, state: Any) -> Any:
        self._step('on_shutdown')
        return super().on_shutdown(state)


def main(args: list[str] | None = None) -> int:
    return run_node(Managed, args)
