"""A closed loop with a plant that differs from the controller's model, with valves and a control cycle."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from soft_control.control_loop import ControlLoop
from soft_control.safety.state_machine import Memory, State
from soft_dynamics.robot import Robot, load
from soft_dynamics.segments import Disc

robot_of = lru_cache(load)


@lru_cache
def perturbed(name: str, load_mass: float = 0.0, seed: int = 3, spread: float = 0.1) -> Robot:
    """Return the robot with masses, springs and dampers off by up to `spread`, and a load at the tip [kg]."""
    random = np.random.default_rng(seed)
    description = robot_of(name).description

    def off(values: Any) -> Any:
        return tuple(float(v * (1.0 + random.uniform(-spread, spread))) for v in values)

    segments = []
    for segment in description.segments:
        changes: dict[str, Any] = {'mass': off([segment.mass])[0]}
        if hasattr(segment, 'material'):
            material = segment.material
            changes['material'] = dataclasses.replace(
                material, stiffness=off(material.stiffness), damping=off(material.damping)
            )
        segments.append(dataclasses.replace(segment, **changes))
    return Robot(dataclasses.replace(description, segments=tuple(segments), tip_load=load_mass))


class Rig:
    """The plant at rest without pressure, and a control loop that runs on it."""

    def __init__(self, plant: Robot, loop: ControlLoop, rate: float, noise: float = 0.0) -> None:
        self.plant, self.loop, self.dt, self.t = plant, loop, 1.0 / rate, 0.0
        self.q, self.qd = settle(plant)
        self.p = np.zeros(len(plant.chamber_names))
        self.noise, self.random = noise, np.random.default_rng(0)
        self.loop.begin(self.t)
        self.sense()

    def sense(self) -> None:
        q = self.q + self.noise * self.random.normal(size=self.q.size)
        self.loop.feed(State(self.t, q, self.qd.copy()))

    def run(self, duration: float, watch: Callable[[Rig, Memory], Any]) -> list[Any]:
        """Run control and plant together; return the values of `watch` after each cycle."""
        seen = []
        for _ in range(round(duration / self.dt)):
            memory = self.loop.step(self.t)
            lag = self.plant.description.actuation.valve_lag
            after = memory.pressure + math.exp(-self.dt / max(lag, 1e-9)) * (self.p - memory.pressure)
            motion = self.plant.simulate(
                self.q, self.qd, np.array([self.p, after]), [0.0, self.dt], step=step_of(self.plant, 0.005)
            )
            self.q, self.qd, self.p = motion.q[-1], motion.qd[-1], after
            self.t += self.dt
            self.sense()
            seen.append(watch(self, memory))
        return seen


def step_of(robot: Robot, step: float) -> float:
    """Return the step for a simulation [s]: that of discs is explicit."""
    return min(step, 0.002) if isinstance(robot.description.segments[0], Disc) else step


@lru_cache
def _settled(plant: Robot) -> tuple[Any, Any]:
    zero = np.zeros(plant.nq)
    motion = plant.simulate(plant.rest, zero, None, [0.0, 10.0], step=step_of(plant, 0.02))
    return motion.q[-1], motion.qd[-1]


def settle(plant: Robot) -> tuple[Any, Any]:
    """Return the state at rest without pressure."""
    q, qd = _settled(plant)
    return q.copy(), qd.copy()
