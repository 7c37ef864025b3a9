"""Plant of the virtual rig: set points in, true state of all frames out."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import mujoco
import numpy as np

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.robot_description import Description
from soft_dynamics.errors import NotConverged
from soft_hw_bridge.rig.mujoco_model import CUTS, TIP_LOAD, ball_inertia, blueprint

_BAD_STATE = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQACC) + 1)
_ANGULAR_FIRST = np.array([3, 4, 5, 0, 1, 2])


class Follower(NamedTuple):
    """Chamber forces that rotate with the body, at a point of it and in its axes."""

    body: int
    p: Array  # [m]
    torque: Array  # (3, chambers) [N m/Pa]
    force: Array  # (3, chambers) [N/Pa]


class Plant:
    """A finely divided MuJoCo robot with valves.

    step [s]: step of the integrator. tip_load and obstacle: see `mujoco_model`. W is the world of ROS, z up.
    """

    def __init__(
        self, robot: Description, step: float = 1e-3, tip_load: float = 0.0, obstacle: tuple[float, ...] = ()
    ) -> None:
        self.description = robot
        self.plan = plan = blueprint(robot, tip_load, obstacle)
        self.model = model = plan.compile()
        model.opt.timestep = step
        self.data = data = mujoco.MjData(model)
        mujoco.set_mju_user_warning(lambda _: None)  # prevents MuJoCo's log file; `step` reads the counters
        self.frame_names = ('base', *(segment.name for segment in robot.segments))
        self.pressure = np.zeros(len(robot.actuation.chambers))  # [Pa] in the chambers
        lag = robot.actuation.valve_lag
        self._approach = 1.0 - math.exp(-step / lag) if lag > 0.0 else 1.0  # towards the command, per step
        self._frames = np.array([model.site(name).id for name in self.frame_names])
        self._columns, self._followers = self._actuation()
        cubic = [(model.joint(name), law) for name, law in plan.laws.items() if law.k3]
        self._cubic = [
            (int(joint.dofadr[0]), int(joint.qposadr[0]), law.k3, law.rest) for joint, law in cubic
        ]
        # MuJoCo creates a new view at each access to a field; these fields are used in every step.
        self._applied, self._q = data.qfrc_applied, data.qpos
        self._bad_states, self._base_sensors = data.warning.number[_BAD_STATE], data.sensordata
        mujoco.mj_forward(model, data)  # gives the base sensor a value before the first step

    @property
    def t(self) -> float:
        """Time since the start [s]."""
        return float(self.data.time)

    def step(self, command: Array, steps: int = 1) -> None:
        """Advance some steps with these set points of the valves [Pa]."""
        model, data, pressure = self.model, self.data, self.pressure
        for _ in range(steps):
            pressure += self._approach * (command - pressure)
            self._actuate()
            mujoco.mj_step2(model, data)
            mujoco.mj_step1(model, data)
            if any(self._bad_states.tolist()):
                reason = f'a step of {model.opt.timestep:g} s is too long for the plant'
                raise NotConverged(self.t, self._q.copy(), reason)

    def advance(self, duration: float, command: Any = None) -> None:
        """Advance with constant set points (default: zero)."""
        pressure = np.zeros(self.pressure.size) if command is None else as_array('command', command)
        if pressure.shape != self.pressure.shape:
            raise ValueError(f'command: expected shape {self.pressure.shape}, got {pressure.shape}')
        self.step(pressure, round(duration / self.model.opt.timestep))

    def load(self, mass: float) -> None:
        """Set the load at the tip [kg], in addition to the robot file; keeps pose and rates."""
        body, total = self.model.body(TIP_LOAD).id, self.description.tip_load + mass
        self.model.body_mass[body] = total
        self.model.body_inertia[body] = ball_inertia(total)
        mujoco.mj_setConst(self.model, mujoco.MjData(self.model))
        mujoco.mj_step1(self.model, self.data)

    def place(self, q: Any, qd: Any = None) -> None:
        """Set a pose of the model: each cut gets its share of a coordinate. Not for discs."""
        shares = [share for cuts in self.plan.cuts.values() for share in cuts]
        q = as_array('q', q)
        qd = np.zeros(len(shares)) if qd is None else as_array('qd', qd)
        for name, given in (('q', q), ('qd', qd)):
            if given.shape != (len(shares),):
                raise ValueError(f'{name}: expected shape ({len(shares)},), got {given.shape}')
        for j, (scale, straight, joints) in enumerate(shares):
            for joint in map(self.model.joint, joints):
                self.data.qpos[joint.qposadr] = scale * (q[j] - straight) / CUTS
                self.data.qvel[joint.dofadr] = scale * qd[j] / CUTS
        mujoco.mj_step1(self.model, self.data)

    # ---- true state ----------------------------------------------------------------------------------------------

    def poses(self) -> Array:
        """X_WF (frames, 4, 4) in the order of `frame_names`."""
        X = np.zeros((len(self._frames), 4, 4))
        X[:, :3, :3] = self.data.site_xmat[self._frames].reshape(-1, 3, 3)
        X[:, :3, 3] = self.data.site_xpos[self._frames]
        X[:, 3, 3] = 1.0
        return X

    def velocities(self) -> Array:
        """V_WF (frames, 6): angular first, world aligned, at each frame's origin."""
        V = np.empty((len(self._frames), 6))
        for row, site in zip(V, self._frames, strict=True):
            mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_SITE, site, row, 0)
        return V

    def base_wrench(self) -> Array:
        """Torque and force (6,) on the robot at its base, in the base's axes, one step ago."""
        return self._base_sensors[_ANGULAR_FIRST]

    def energy(self) -> float:
        """Kinetic and potential energy [J], without the cubic part of springs."""
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy.sum())

    # ---- inside --------------------------------------------------------------------------------------------------

    def _actuate(self) -> None:
        """Apply the forces of the chambers and of the cubic parts of springs."""
        applied, pressure, data = self._applied, self.pressure, self.data
        self._columns.dot(pressure, out=applied)
        for body, p, torque, force in self._followers:
            R_WB = data.xmat[body].reshape(3, 3)
            torque_W, force_W = R_WB @ (torque @ pressure), R_WB @ (force @ pressure)
            mujoco.mj_applyFT(self.model, data, force_W, torque_W, data.xpos[body] + R_WB @ p, body, applied)
        for dof, coordinate, k3, rest in self._cubic:
            applied[dof] -= k3 * (self._q[coordinate] - rest) ** 3

    def _actuation(self) -> tuple[Array, list[Follower]]:
        """Return constant forces per pressure on the joints (nv, chambers), and those that rotate with a body."""
        columns = np.zeros((self.model.nv, self.pressure.size))
        wrenches = {name: np.zeros((2, 3, self.pressure.size)) for name in self.frame_names}
        for k, chamber in enumerate(self.description.actuation.chambers):
            for before, segment in zip(self.frame_names, self.description.segments, strict=False):
                if not segment.moves or chamber.segment not in ('all', segment.name):
                    continue
                if chamber.work in ('tip_wrench', 'end_force'):
                    at_end, at_start = segment.chamber_wrenches(chamber.area, chamber.position)
                    wrenches[segment.name][:, :, k] += at_end.reshape(2, 3)
                    wrenches[before][:, :, k] += at_start.reshape(2, 3)
                elif segment.singular:
                    raise ValueError(
                        f'chamber {chamber.name!r}: the virtual rig has no joints for the angles of a {segment.type}'
                    )
                else:
                    given = chamber.work == 'gain'
                    gain = chamber.gain if given else segment.volume_gain(chamber.area, chamber.position)
                    for force, (scale, _, joints) in zip(gain, self.plan.cuts[segment.name], strict=True):
                        for joint in joints:
                            columns[self.model.joint(joint).dofadr[0], k] = force / scale
        sites = {name: self.model.site(name) for name in wrenches}
        followers = [
            Follower(int(sites[name].bodyid[0]), sites[name].pos, *wrench)
            for name, wrench in wrenches.items()
            if np.any(wrench) and self.model.body_weldid[sites[name].bodyid[0]]  # not on fixed bodies
        ]
        return columns, followers
