"""Time and pressure until a controller vents on a false state.

python -m benchmarks.lying_states [--seconds 15] [--write-docs]

A simulated robot, 10 % off the model of its controller, follows a slow motion under the configuration law. From 3 s on
its state is false (frozen with fresh stamps, drifting, sign-flipped), or the poses of the estimator are (frozen,
mirrored, one body 3 cm away). The table shows the time from the first false state to venting and the largest pressure
until then. Robots with true states, 20 % off the model and with 500 g at the tip, must not vent.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.page import replace_part
from soft_control.control_loop import ControlLoop
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw
from soft_control.references import JointPath
from soft_control.safety.state_machine import Mode, State
from soft_dynamics.array import Array
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_dynamics.robot import Robot, load
from soft_estimation.kalman.model_filter import ModelFilter

ROBOTS = ('honeycomb_arm', 'pneumatic_arm')
PERIOD = 0.01  # [s] of state and control
BEGIN_T = 3.0  # [s] of the first false state; those 'from the start' begin at zero
BEND = 0.25  # [rad] of the motion
NOISE = 1e-4  # [m] noise of a pose; in [rad] ten times this number
TREMBLE = 1e-6  # [rad] noise of a state without estimator
BLACKOUT = 0.3  # [s] after which the estimator stops publishing
DRIFT = 0.1  # [rad/s]
SHIFT = 0.03  # [m]
PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'benchmarks' / 'wrong_states.md'
BEGIN, END = '<!-- lying states -->', '<!-- end of lying states -->'

Poses = dict[str, Array]
StateLie = Callable[[float, Array, Array], tuple[Array, Array]]  # (time since its begin, q, qd)
PoseLie = Callable[[float, Poses], Poses]


class Lie(NamedTuple):
    """A change of the state, or of the poses of the bodies, from a time on."""

    name: str
    begin: float  # [s]
    make: Callable[[], StateLie | PoseLie]
    of_poses: bool = False


class Outcome(NamedTuple):
    """The result of a lie on a robot."""

    vented: float  # [s] after the lie began; inf: not vented
    reason: str
    peak: float  # [-] largest pressure since then, relative to the limit
    full: float  # [s] with a chamber above 95 % of the limit
    off: float  # [rad] largest error of a coordinate of the followed state


def frozen() -> StateLie:
    """Return a lie that repeats the first state."""
    first: list[tuple[Array, Array]] = []

    def say(t: float, q: Array, qd: Array) -> tuple[Array, Array]:
        first.append((q, qd))
        return first[0]

    return say


def frozen_but_trembling() -> StateLie:
    """Return the same with noise, which a comparison of bits does not detect."""
    say, rng = frozen(), np.random.default_rng(1)

    def tremble(t: float, q: Array, qd: Array) -> tuple[Array, Array]:
        q, qd = say(t, q, qd)
        return q + TREMBLE * rng.normal(size=q.size), 0.0 * qd

    return tremble


def drifting() -> StateLie:
    def say(t: float, q: Array, qd: Array) -> tuple[Array, Array]:
        return q + DRIFT * t * (np.arange(q.size) == 0), qd

    return say


def flipped() -> StateLie:
    return lambda t, q, qd: (-q, -qd)


def one_flipped() -> StateLie:
    def say(t: float, q: Array, qd: Array) -> tuple[Array, Array]:
        sign = np.where(np.arange(q.size) == 1, -1.0, 1.0)
        return sign * q, sign * qd

    return say


def frozen_poses() -> PoseLie:
    first: list[Poses] = []

    def say(t: float, X_WS: Poses) -> Poses:
        first.append(X_WS)
        return first[0]

    return say


def mirrored_poses() -> PoseLie:
    """Return a fault that mirrors the world at the plane x = 0, like a wrong choice of axes."""
    mirror = np.diag([-1.0, 1.0, 1.0, 1.0])
    return lambda t, X_WS: {name: mirror @ X @ mirror for name, X in X_WS.items()}


def shifted_body() -> PoseLie:
    """Return a lie that shifts the second body that is not on the base."""

    def say(t: float, X_WS: Poses) -> Poses:
        name = sorted(X_WS)[-3]
        X = X_WS[name].copy()
        X[:3, 3] += X[:3, 0] * SHIFT
        return {**X_WS, name: X}

    return say


LIES = (
    Lie('state frozen', BEGIN_T, frozen),
    Lie('state frozen, with noise', BEGIN_T, frozen_but_trembling),
    Lie(f'first coordinate drifts by {DRIFT:g} rad/s', BEGIN_T, drifting),
    Lie('all signs flipped', BEGIN_T, flipped),
    Lie('all signs flipped from the start', 0.0, flipped),
    Lie('one sign flipped from the start', 0.0, one_flipped),
    Lie('poses frozen', BEGIN_T, frozen_poses, True),
    Lie('poses mirrored from the start', 0.0, mirrored_poses, True),
    Lie('one body shifted by 3 cm', BEGIN_T, shifted_body, True),
)
HONEST = (
    Lie('correct state', math.inf, frozen),
    Lie('correct poses', math.inf, frozen_poses, True),
)


def off_by(robot: Robot, spread: float, tip_load: float = 0.0, seed: int = 3) -> Robot:
    """Return the robot with masses, springs and dampers changed by up to `spread`, and a load at the tip [kg]."""
    rng = np.random.default_rng(seed)

    def off(values: Any) -> Any:
        return tuple(float(v * (1.0 + rng.uniform(-spread, spread))) for v in values)

    segments = []
    for segment in robot.description.segments:
        changes: dict[str, Any] = {'mass': off([segment.mass])[0]}
        if hasattr(segment, 'material'):
            law = segment.material
            changes['material'] = dataclasses.replace(
                law, stiffness=off(law.stiffness), damping=off(law.damping)
            )
        segments.append(dataclasses.replace(segment, **changes))
    return Robot(dataclasses.replace(robot.description, segments=tuple(segments), tip_load=tip_load))


class Rig:
    """A plant, its tracked bodies, an estimator for tests with false poses, and a control loop."""

    def __init__(self, plant: Robot, model: Robot, lie: Lie, seed: int = 0) -> None:
        self.plant, self.model, self.lie, self.t = plant, model, lie, 0.0
        gains = ConfigurationGains().eased(model, model.description.actuation.valve_lag + 2.0 * PERIOD)
        self.loop = ControlLoop(model, ConfigurationLaw(model, gains))
        self.q, self.qd = self._settled()
        self.p = np.zeros(len(plant.chamber_names))
        self.estimator = ModelFilter(model) if lie.of_poses else None
        self._say: Any = lie.make()
        self._rng = np.random.default_rng(seed)
        mount = model.description.mount
        self._X_WM = pose_from_rpy(mount.position, mount.rpy)
        self._bodies = {s.name: s for s in model.description.sensors if s.kind in ('mocap', 'vive')}

    def _settled(self) -> tuple[Array, Array]:
        motion = self.plant.simulate(self.plant.rest, np.zeros(self.plant.nq), None, [0.0, 10.0], step=0.02)
        return motion.q[-1], motion.qd[-1]

    def sense(self) -> None:
        """Feed the (false) state to the loop."""
        since = self.t - self.lie.begin
        if self.estimator is None:
            q, qd = self.q + TREMBLE * self._rng.normal(size=self.q.size), self.qd.copy()
            if since >= 0.0:
                q, qd = self._say(since, q, qd)
            self.loop.feed(State(self.t, q, qd))
            return
        X_WS = self._poses()
        if since >= 0.0:
            X_WS = self._say(since, X_WS)
        try:
            self.estimator.feed_pressure(self.t, self.p)
            self.estimator.feed_poses(self.t, X_WS)
        except ValueError:
            pass
        if self.is_trusted():
            found = self.estimator.estimate(self.t)
            self.loop.feed(State(self.t, found.q, found.qd))
            self.estimator.bodies.look()

    def is_trusted(self) -> bool:
        """Whether the estimator would publish its state."""
        estimator = self.estimator
        return (
            estimator is not None
            and estimator.located
            and self.t - estimator.shown_at <= BLACKOUT
            and estimator.is_explained
        )

    def _poses(self) -> Poses:
        out = {}
        for name, body in self._bodies.items():
            X = self._X_WM @ self.plant.pose(self.q, body.frame) @ pose_from_rpy(body.position, body.rpy)
            shake = self._rng.normal(0.0, NOISE, 3), self._rng.normal(0.0, 10.0 * NOISE, 3)
            out[name] = X @ pose_from_rpy(*shake)
        return out

    def cycle(self) -> None:
        """Advance by one period."""
        command = self.loop.step(self.t).pressure
        lag = self.plant.description.actuation.valve_lag
        after = command + math.exp(-PERIOD / max(lag, 1e-9)) * (self.p - command)
        motion = self.plant.simulate(self.q, self.qd, np.array([self.p, after]), [0.0, PERIOD], step=0.005)
        self.q, self.qd, self.p = motion.q[-1], motion.qd[-1], after
        self.t += PERIOD
        self.sense()


def reference(model: Robot, rig: Rig, seconds: float) -> JointPath:
    """Return a slow motion of all coordinates, starting at the reported state."""
    times = np.arange(1.0, seconds + 1.0, 0.25)
    phase = np.linspace(0.0, 1.5 * math.pi, model.nq)
    points = BEND * np.sin(0.8 * times[:, None] + phase)
    return JointPath(rig.t, rig.loop.present(rig.t), times, points)


def run(name: str, lie: Lie, seconds: float, spread: float = 0.1, tip_load: float = 0.0) -> Outcome:
    """Run the loop of a robot under a lie."""
    model = load(name)
    rig = Rig(off_by(model, spread, tip_load), model, lie)
    limit = model.description.actuation.pressure_max
    rig.loop.begin(0.0)
    for _ in range(5):
        rig.sense()
        rig.t += PERIOD
    rig.sense()
    try:
        rig.loop.follow(rig.t, reference(model, rig, seconds))
    except ValueError as error:  # the loop takes no reference
        return Outcome(0.0, str(error), 0.0, 0.0, 0.0)
    begin = 0.0 if math.isinf(lie.begin) else lie.begin
    peak = full = off = 0.0
    while rig.t < seconds:
        rig.cycle()
        since, memory = rig.t - begin, rig.loop.memory
        if memory.mode is not Mode.FOLLOWING:
            return Outcome(since, memory.reason, peak / limit, full, off)
        if since >= 0.0 and rig.loop.state is not None:
            peak = max(peak, float(rig.p.max()))
            full += PERIOD * (rig.p.max() > 0.95 * limit)
            off = max(off, float(np.abs(rig.loop.state.q - rig.q).max()))
    return Outcome(math.inf, '', peak / limit, full, off)


def row(name: str, what: str, found: Outcome) -> str:
    vented = 'never' if math.isinf(found.vented) else f'{found.vented:.2f} s'
    return (
        f'| {name} | {what} | {vented} | {100 * found.peak:.0f} % | {found.full:.1f} s | {found.off:.2f} rad '
        f'| {found.reason} |'
    )


def table(seconds: float) -> list[str]:
    lines = ['| robot | input | vented after | peak pressure | at full pressure | largest error | reason |']
    lines.append('|---|---|---|---|---|---|---|')
    print(*lines, sep='\n')
    for name in ROBOTS:
        for lie in (*LIES, *HONEST):
            lines.append(row(name, lie.name, run(name, lie, seconds)))
            print(lines[-1], flush=True)
        for lie in HONEST:
            found = run(name, lie, seconds, 0.2, 0.5)
            lines.append(row(name, f'{lie.name}, 20 % off, 500 g at the tip', found))
            print(lines[-1], flush=True)
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog='lying_states', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--seconds', type=float, default=15.0, help='duration of each run [s]; default 15')
    parser.add_argument('--write-docs', action='store_true', help=f'write the table into {PAGE.name}')
    options = parser.parse_args(arguments)
    lines = table(options.seconds)
    if options.write_docs:
        replace_part(PAGE, BEGIN, END, '\n'.join(lines))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
