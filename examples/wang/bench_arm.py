"""Simulated test bench of Wang's honeycomb arm: the plant of the virtual rig and a control loop in lock-step.

The plant advances by a millisecond of simulated time per step. The estimator gets only the markers, with rate, noise
and delay of motion capture. The law gets only the estimate and the measured tip. The plant differs from the model of
the law, its valves lag, and its load is unmodelled. The log contains the true motion, for scoring only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import soft_dynamics as sd
from soft_control.control_loop import Actuate, ControlLoop
from soft_control.safety.state_machine import Mode, State
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.inverse_kinematics.pose_tracking import Tracking
from soft_estimation.inverse_kinematics.poses import pose
from soft_hw_bridge.rig.config import MocapConfig
from soft_hw_bridge.rig.device_emulators import Mounted
from soft_hw_bridge.rig.plant import Plant

MS = 1e-3  # [s] step of the plant
ARM = sd.load('honeycomb_arm')
TIP = 'plate4'  # the tracked body at the tip


@dataclass
class Log:
    """The true motion after each control cycle, in the frame of the robot file."""

    t: list[float] = field(default_factory=list)
    q: list[Any] = field(default_factory=list)  # [rad] of the plant's segments
    X: list[Any] = field(default_factory=list)  # pose of the plant's tip
    speed: list[float] = field(default_factory=list)  # [m/s] of the plant's tip


class BenchArm:
    """An arm at rest with a load [kg] at its tip, and a law called at `rate` [Hz]."""

    def __init__(self, law: Any, rate: float, load: float = 0.0, actuate: Actuate | None = None) -> None:
        self.plant, self.loop = Plant(ARM.description, MS, load), ControlLoop(ARM, law, actuate)
        self.estimator, self.tracking, self.log = PoseDifferentiator(ARM), Tracking(ARM), Log()
        self._config, self._random = MocapConfig(), np.random.default_rng(0)
        self._bodies = Mounted(self.plant, list(self.tracking.sensors.values()))
        self._frames: deque[tuple[float, dict[str, Any]]] = deque()  # measured, not yet delivered
        self._seen, self._millisecond, self._period = 0, 0, round(1.0 / (rate * MS))
        self._command = np.zeros(len(ARM.chamber_names))
        self.advance(0.5)  # at rest
        self.loop.begin(self.t)
        self._sense()

    @property
    def t(self) -> float:
        return self._millisecond * MS

    def run(self, seconds: float) -> Log:
        """Run control and plant. Fails if the loop stops following."""
        for _ in range(round(seconds / (self._period * MS))):
            self._sense()
            memory = self.loop.step(self.t)
            if memory.mode is not Mode.FOLLOWING:
                raise RuntimeError(f'{self.t:.2f} s: {memory.mode.value}: {memory.reason}')
            self._command = memory.pressure
            self.advance(self._period * MS)
            self._note()
        return self.log

    def advance(self, seconds: float) -> None:
        """Advance the plant under the last command."""
        for _ in range(round(seconds / MS)):
            self.plant.step(self._command)
            self._millisecond += 1
            if self.t >= self._seen / self._config.rate:
                self._seen += 1
                self._frames.append((self.t, self._bodies.measured(self._config, self._random)))
            while self._frames and self._frames[0][0] + self._config.delay <= self.t:
                t, frame = self._frames.popleft()
                for name, (p_WS, quat_WS) in frame.items():
                    self.estimator.feed_pose(t, name, pose(quat_WS, p_WS))
                self._tip = t, self.tracking.frame_pose(TIP, pose(frame[TIP].quat_WB, frame[TIP].p_WB))

    def _sense(self) -> None:
        now = self.estimator.estimate(self.t)
        self.loop.feed(State(now.t, now.q, now.qd))
        self.loop.feed_tip(*self._tip)

    def _note(self) -> None:
        X_WF, names, log = self.plant.poses(), self.plant.frame_names, self.log
        poses = {s.name: X_WF[names.index(s.frame)] for s in self.tracking.sensors.values()}
        log.t.append(self.t)
        log.q.append(self.tracking.configuration(poses).q)
        log.X.append(self.tracking.frame_pose(TIP, poses[TIP]))
        log.speed.append(float(np.linalg.norm(self.plant.velocities()[-1, 3:])))
