"""Dynamics of any robot as services, and optionally a live model beside the real arm."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from soft_robot_suite.srv import ForwardDynamics, InverseDynamics

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.robot_files import robot_file
from soft_dynamics.diagnostics import OK, Status
from soft_dynamics.errors import SoftRobotError
from soft_dynamics.nodes.prediction_publisher import Prediction
from soft_dynamics.robot import Robot, load
from soft_dynamics.ros.conversions import float64s
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.report import USER_ERRORS
from soft_dynamics.simulation.live_model import Twin

_LONGEST_REASON = 1000  # characters in a response


@dataclass(frozen=True)
class Config:
    """Parameters of the node."""

    robot: str = field(
        default='honeycomb_arm',
        metadata={'doc': 'name of a shipped robot, or path of a robot file', 'read_only': True},
    )
    predict: bool = field(
        default=False,
        metadata={
            'doc': 'publish predictions of the model driven by the measured pressures',
            'read_only': True,
        },
    )
    resync_period: float = field(
        default=0.0,
        metadata={
            'doc': 'period of resetting the model to the measured state; 0: never',
            'unit': 's',
            'read_only': True,
        },
    )


class DynamicsNode(Node):
    """Answers `dynamics/inverse` and `dynamics/forward` for one state or a batch of them."""

    config: Config

    def __init__(self) -> None:
        super().__init__('dynamics')
        self.config = bind_config(self, Config)
        robot = self._robot('')
        warm_up(robot)
        self.create_service(InverseDynamics, 'dynamics/inverse', self.on_inverse)
        self.create_service(ForwardDynamics, 'dynamics/forward', self.on_forward)
        self.answered = self.refused = 0
        sources = {'services': self.services_status}
        if self.config.predict:
            sources['prediction'] = Prediction(self, Twin(robot, self.config.resync_period)).status
        Diagnostics(self, robot.name, sources)

    def on_inverse(
        self, request: InverseDynamics.Request, response: InverseDynamics.Response
    ) -> InverseDynamics.Response:
        with self._refusals(response):
            robot = self._robot(request.robot)
            q, qd, qdd, tau_pressure = _states(robot, request, 'qdd')
            tau = robot.inverse_dynamics(q, qd, qdd, **_terms(request)) - tau_pressure
            response.tau = _finite(tau)
            response.names = list(robot.coordinate_names)
        return response

    def on_forward(
        self, request: ForwardDynamics.Request, response: ForwardDynamics.Response
    ) -> ForwardDynamics.Response:
        with self._refusals(response):
            robot = self._robot(request.robot)
            q, qd, tau, tau_pressure = _states(robot, request, 'tau')
            qdd = robot.forward_dynamics(q, qd, tau + tau_pressure, **_terms(request))
            response.qdd = _finite(qdd)
            response.names = list(robot.coordinate_names)
        return response

    def services_status(self) -> Status:
        return Status(OK, 'ready', {'answered': self.answered, 'refused': self.refused})

    @contextmanager
    def _refusals(self, response: Any) -> Iterator[None]:
        """Return the reason of an invalid request in the response."""
        try:
            yield
            response.success = True
            self.answered += 1
        except (*USER_ERRORS, ArithmeticError) as error:
            response.message = str(error)[:_LONGEST_REASON]
            self.refused += 1

    def _robot(self, name: str) -> Robot:
        path = robot_file(name or self.config.robot)
        return _load(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _load(path: Path, _modified: int) -> Robot:
    return load(path)


def warm_up(robot: Robot) -> None:
    """Call everything once, so that the first request does not wait for compilation."""
    for shape in ((robot.nq,), (2, robot.nq)):
        zero = np.zeros(shape)
        with suppress(SoftRobotError):
            robot.forward_dynamics(zero, zero, robot.inverse_dynamics(zero, zero, zero))


def _terms(request: Any) -> dict[str, Any]:
    return {'gravity': request.gravity, 'elastic': request.elastic, 'damping': request.damping}


def _states(robot: Robot, request: Any, third: str) -> tuple[Array, Array, Array, Array]:
    """Return q, qd, the third array and the generalised forces of the pressures, each (nq,) or (count, nq)."""
    count, nq = request.count, robot.nq
    if count < 1:
        raise ValueError('count: expected at least 1 state, got 0')
    q = _rows('q', request.q, count, nq)
    qd, x = (
        _rows(name, values, count, nq) if values else np.zeros_like(q)
        for name, values in (('qd', request.qd), (third, getattr(request, third)))
    )
    if not request.pressure:
        return q, qd, x, np.zeros_like(q)
    pressure = _rows('pressure', request.pressure, count, len(robot.chamber_names))
    return q, qd, x, np.einsum('...ij,...j->...i', robot.actuation(q), pressure)


def _rows(name: str, values: array[float], count: int, width: int) -> Array:
    if len(values) != count * width:
        raise ValueError(f'{name}: expected {count} x {width} = {count * width} numbers, got {len(values)}')
    return as_array(name, values).reshape((width,) if count == 1 else (count, width))


def _finite(result: Array) -> array[float]:
    if not np.all(np.isfinite(result)):
        raise ValueError('the result is not finite: numbers in the request are too large')
    return float64s(result)


def main(args: list[str] | None = None) -> int:
    return run_node(DynamicsNode, args)
