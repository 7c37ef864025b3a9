"""A control loop around a law with constant forces, and a reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from closed_loop import robot_of

from soft_control.control_loop import Actuate, ControlLoop
from soft_control.references import JointSample
from soft_control.safety.state_machine import Memory, Mode, State

ROBOT = robot_of('honeycomb_arm')
LIMITS = ROBOT.description.actuation
DT = 0.01  # [s]
TREMBLE = 1e-12  # [rad] the loop rejects bit-identical states as frozen


class Reference:
    """Stands still until the test moves it."""

    expires = math.inf

    def __init__(self) -> None:
        self.value = np.zeros(8)

    def sample(self, t: float) -> JointSample:
        return JointSample(self.value, np.zeros(8), np.zeros(8))


class ConstantForces:
    """A law that always requests the same forces, and records its calls."""

    def __init__(self) -> None:
        self.tau, self.started, self.left = np.tile([0.4, 0.0], 4), np.zeros(8), np.zeros(8)
        self.failure: Exception | None = None

    def rest(self, state: State) -> Any:
        return JointSample(state.q, np.zeros(8), np.zeros(8))

    def start(self, t: float, state: State, reference: Any, tau: np.ndarray) -> None:
        self.started = tau

    def forces(self, t: float, dt: float, state: State, reference: Any) -> np.ndarray:
        if self.failure is not None:
            raise self.failure
        return self.tau

    def applied(self, dt: float, tau: np.ndarray) -> None:
        self.left = tau


class Bench:
    def __init__(self, **actuate: float) -> None:
        self.law, self.reference, self.t = ConstantForces(), Reference(), 0.0
        self.loop = ControlLoop(ROBOT, self.law, Actuate(**actuate))
        self.state: np.ndarray | None = np.zeros(8)

    def run(self, steps: int = 1) -> Memory:
        for _ in range(steps):
            self.t += DT
            if self.state is not None:
                tremble = TREMBLE * math.sin(1e3 * self.t)
                self.loop.feed(State(self.t, self.state + tremble, np.zeros(8)))
            memory = self.loop.step(self.t)
        return memory


def following() -> Bench:
    """Return an inflated loop in mode follow."""
    bench = Bench()
    bench.run()
    bench.loop.follow(bench.t, bench.reference)
    memory = bench.run(50)
    assert memory.mode is Mode.FOLLOWING
    np.testing.assert_allclose(
        ROBOT.actuation(ROBOT.rest) @ memory.pressure, bench.law.tau, rtol=1e-4, atol=1e-4
    )
    return bench
