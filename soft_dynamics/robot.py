"""Public API of the dynamics. Every method takes one state (nq,) or a batch (count, nq)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from numpy import empty, zeros

from .array import Array, are_vectors, as_array, as_states, finite
from .description.robot_description import Description, from_mapping, load_description
from .errors import SingularInertia
from .geometry.centerline import centerline, element_lengths
from .kernels.batch_calls import derivatives_one, forward_one, inverse_one, linearize_one
from .kernels.forward_dynamics import OK
from .kernels.kinematics import frames_and_jacobian
from .kernels.tracking_forces import tracking_forces
from .model.disc_dampers import Dampers
from .model.disc_model import DiscModel
from .model.joint_model import JointModel
from .segments import Universal
from .simulation.simulate import Trajectory, simulate


class Shape:
    """Coordinates, frames and kinematics of one robot; immutable."""

    description: Description  # as loaded, without link lengths that were set later
    name: str
    nq: int
    coordinate_names: tuple[str, ...]
    coordinate_units: tuple[str, ...]  # 'rad' or 'm'
    frame_names: tuple[str, ...]
    chamber_names: tuple[str, ...]
    _model: JointModel
    # True if every coordinate, spring and damper belongs to one joint: a single kernel then does the whole call.
    _plain: bool
    _raw: Array  # the numbers of the chain
    _frame_elements: npt.NDArray[np.intp]

    def __init__(self, description: Description) -> None:
        model = JointModel(description)
        self._set(
            description=description,
            name=description.name,
            nq=model.build.nv,
            coordinate_names=tuple(model.build.names),
            coordinate_units=tuple(model.build.units),
            frame_names=tuple(model.build.frames),
            chamber_names=tuple(chamber.name for chamber in description.actuation.chambers),
            _model=model,
        )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f'{name}: a robot is immutable; create another one with sd.load or with_tip_load'
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f'{name}: a robot is immutable')

    # ---- frames --------------------------------------------------------------------------------------------------

    def forward_kinematics(self, q: Any) -> Array:
        """Poses X_WF (n_frames, 4, 4) of all frames, base to tip, in the order of `frame_names`."""
        states, single = as_states(self.nq, q=q)
        X = self._model.poses(self._model.change.position(states['q']))
        X = finite('the poses', np.ascontiguousarray(X[:, list(self._model.build.frames.values())]), states)
        return X[0] if single else X

    def pose(self, q: Any, frame: str) -> Array:
        """Pose X_WF (4, 4) of one frame; 'tip' is the last."""
        self._element(frame)
        index = -1 if frame == 'tip' else self.frame_names.index(frame)
        return np.ascontiguousarray(self.forward_kinematics(q)[..., index, :, :])

    def jacobian(self, q: Any, frame: str) -> Array:
        """6 x nq Jacobian of a frame: angular first, world aligned, at the frame's origin."""
        element = self._element(frame)
        states, single = as_states(self.nq, q=q)
        J = self._model.jacobian(self._model.change.position(states['q']), element)
        J = finite('the Jacobian', self._model.change.columns(J), states)
        return J[0] if single else J

    def frames_and_jacobian(self, q: Any) -> tuple[Array, Array]:
        """(forward_kinematics(q), jacobian(q, 'tip')) in one call, faster than both."""
        X: Array = np.empty((len(self.frame_names), 4, 4))
        J: Array = np.empty((6, self.nq))
        plain = self._plain and are_vectors(self.nq, q)
        if plain and frames_and_jacobian(self._raw, self._frame_elements, q, X, J):
            return X, J
        return self.forward_kinematics(q), self.jacobian(q, 'tip')

    def _element(self, frame: str, argument: str = 'frame') -> int:
        if isinstance(frame, str):
            if frame == 'tip':
                return int(self._model.chain.size) - 1
            if frame in self.frame_names:
                return self._model.build.frames[frame]
        raise ValueError(f'{argument}: expected one of {", ".join(self.frame_names)}, tip; got {frame!r}')

    # ---- body ----------------------------------------------------------------------------------------------------

    @property
    def rest(self) -> Array:
        """Coordinates at which the springs are relaxed."""
        x = np.zeros(self.nq)
        for e in self._model.chain:
            x[e['iv'] : e['iv'] + e['n']] = e['rest'][: e['n']]
        return self._model.change.public_position(x)

    @property
    def length(self) -> float:
        """Length of the body at rest [m]."""
        return float(element_lengths(self._model.chain).sum())

    def centerline(self, q: Any, s_samples: Any) -> Array:
        """Points (samples, 3) of the body at the arc lengths s [m] of its rest shape, base to tip: see `centerline`."""
        states, single = as_states(self.nq, q=q)
        points = centerline(self, states['q'], as_array('s_samples', s_samples))
        points = finite('the centreline', np.ascontiguousarray(points), states)
        return points[0] if single else points


Wrenches = Mapping[str, Any]


class Robot(Shape):
    """Dynamics, kinematics and simulation of one robot; immutable.

    Conventions: SI; q, qd, tau in the order of `coordinate_names`; twists and wrenches angular first; the world is
    the frame that the base stands in (for a moving base, the frame of its coordinates).
    """

    _dampers: Dampers  # of discs: they act on several joints
    _discs: DiscModel | None
    _link_lengths: Array | None  # if they differ from those of the description
    _raw_parts: tuple[Array, Array]  # numbers of the chain without springs and dampers; also without gravity

    def __init__(self, description: Description) -> None:
        super().__init__(description)
        build = self._model.build
        discs = DiscModel(description, build.frames) if DiscModel.suits(description) else None
        self._set(_dampers=Dampers(description, build), _discs=discs, _link_lengths=None)
        self._set_model(self._model)

    def _set_model(self, model: JointModel) -> None:
        plain = model.change.trivial and not model.springs.size and not self._dampers.any
        self._set(
            _model=model,
            _plain=plain,
            _raw=model.chain.view(np.float64),
            _raw_parts=tuple(model.variant(g, False, False).view(np.float64) for g in (True, False)),
            _frame_elements=np.array(list(model.build.frames.values())),
        )

    # ---- making robots -------------------------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Robot:
        """Create a robot from a description in memory. Raises RobotFileError with all problems."""
        name = data.get('name', 'robot') if isinstance(data, Mapping) else 'robot'
        return cls(from_mapping(data, name if isinstance(name, str) else 'robot'))

    def with_tip_load(self, mass: float) -> Robot:
        """Return this robot with a point mass [kg] at its tip."""
        load = as_array('mass', mass)
        if load.size != 1 or load.min() < 0.0:
            raise ValueError(f'mass: expected one number >= 0 kg, got {mass!r}')
        other = Robot(dataclasses.replace(self.description, tip_load=float(load.item())))
        return other if self._link_lengths is None else other.with_link_lengths(self._link_lengths)

    def with_link_lengths(self, lengths: Any) -> Robot:
        """Return this robot of universal segments with given link lengths (segments, 2) [m].         [Wang, eq. 8]"""
        d, build = as_array('lengths', lengths), self._model.build
        segments = [s for s in self.description.segments if isinstance(s, Universal)]
        if not segments or any(s.lengths == 'free' for s in segments):
            raise ValueError(
                f'lengths: expected a robot of universal segments with fixed lengths, got {self.name}'
            )
        if d.shape != (len(segments), 2):
            raise ValueError(f'lengths: expected shape ({len(segments)}, 2), got {d.shape}')
        if not np.all(d > 0.0):
            raise ValueError(f'lengths: expected numbers > 0 m, got {d.min():g}')
        chain, heads = self._model.chain.copy(), np.array([build.starts[s.name] + 1 for s in segments])
        chain['pz'][heads], chain['pz'][heads + 2] = d[:, 0], d[:, 1]
        other = object.__new__(Robot)
        other._set(**{**vars(self), '_link_lengths': d.copy()})
        other._set_model(self._model.with_chain(chain))
        return other

    # ---- dynamics ------------------------------------------------------------------------------------------------

    def inverse_dynamics(
        self,
        q: Any,
        qd: Any,
        qdd: Any,
        *,
        external: Wrenches | None = None,
        gravity: bool = True,
        elastic: bool = True,
        damping: bool = True,
    ) -> Array:
        """Generalised forces of a motion: tau = M qdd + c + g + k + d - sum J^T w.

        external: wrench (6,) or (count, 6) by frame name, world axes, at the frame's origin. Each flag switches a
        term off.
        """
        every_term = gravity and elastic and damping and external is None
        if every_term and self._plain and are_vectors(self.nq, q, qd, qdd):
            tau: Array = empty(self.nq)
            if inverse_one(self._raw, q, qd, qdd, tau):
                return tau
        states, single = as_states(self.nq, q=q, qd=qd, qdd=qdd)
        wrench = self._wrenches(states['q'], external)
        tau = self._inverse(states, wrench, gravity, elastic, damping)[0]
        return tau[0] if single else tau

    def forward_dynamics(
        self,
        q: Any,
        qd: Any,
        tau: Any,
        *,
        base_acceleration: Any = None,
        external: Wrenches | None = None,
        gravity: bool = True,
        elastic: bool = True,
        damping: bool = True,
    ) -> Array:
        """Accelerations under generalised forces. A prescribed base has a given acceleration, zero by default.

        `damping_on` in the robot file selects whether the dampers of discs act on the angles or on the body rates.
        `simulate` always uses the body rates, because b alpha' is unbounded near singular angles.
        Raises SingularInertia if a coordinate moves no mass in this pose.
        """
        every_term = gravity and elastic and damping and external is None and base_acceleration is None
        if every_term and self._plain and are_vectors(self.nq, q, qd, tau):
            qdd: Array = zeros(self.nq)
            if forward_one(self._raw, q, qd, tau, qdd):
                return qdd
        states, single = as_states(self.nq, q=q, qd=qd, tau=tau)
        model, count = self._model, states['q'].shape[0]
        vd = self._given_accelerations(base_acceleration, count)
        wrench = self._wrenches(states['q'], external)
        if self._discs is not None:
            states['tau'] = self._less_dampers(states, damping)
            status = self._discs.forward(states, wrench, gravity, elastic, vd)
        else:
            x, v, force = self._joint_forces(states, elastic, damping)
            status = model.forward(model.variant(gravity, elastic, damping), x, v, force, wrench, vd)
            vd = model.change.public_rate(vd)
        if status != OK:
            raise self._singular(status, states)
        vd = finite('the accelerations', vd, states)
        return vd[0] if single else vd

    def hybrid_dynamics(self, q: Any, qd: Any, base_acceleration: Any, tau: Any) -> tuple[Array, Array]:
        """Base forces and accelerations under a given base motion.                [Mehl, eq. 28, signs corrected]

        tau has all nq forces; the first six are ignored. Returns (tau with the six base forces, qdd).
        """
        qdd = self.forward_dynamics(q, qd, tau, base_acceleration=base_acceleration)
        full, base = np.array(np.broadcast_to(as_array('tau', tau), qdd.shape)), self._model.prescribed
        full[..., base] = self.inverse_dynamics(q, qd, qdd)[..., base]
        return full, qdd

    def inverse_derivatives(self, q: Any, qd: Any, qdd: Any) -> tuple[Array, Array, Array]:
        """Exact (dtau/dq, dtau/dqd, M) of inverse dynamics without springs and dampers, gravity included."""
        dq, dv, M = empty((3, self.nq, self.nq))
        plain = self._plain and are_vectors(self.nq, q, qd, qdd)
        if plain and derivatives_one(self._raw_parts[0], q, qd, qdd, dq, dv, M):
            return dq, dv, M
        states, single = as_states(self.nq, q=q, qd=qd, qdd=qdd)
        dq, dv, M = self._derivatives(states['q'], states['qd'], states['qdd'], gravity=True)
        return (dq[0], dv[0], M[0]) if single else (dq, dv, M)

    def mass_matrix(self, q: Any) -> Array:
        """M(q), symmetric."""
        states, single = as_states(self.nq, q=q)
        zero = np.zeros_like(states['q'])
        M = self._derivatives(states['q'], zero, zero)[2]
        return M[0] if single else M

    def coriolis(self, q: Any, qd: Any) -> Array:
        """The vector c(q, qd) = C(q, qd) qd."""
        states, single = as_states(self.nq, q=q, qd=qd)
        states['qdd'] = np.zeros_like(states['q'])
        c = self._inverse(states, self._wrenches(states['q'], None), False, False, False)[0]
        return c[0] if single else c

    def coriolis_matrix(self, q: Any, qd: Any) -> Array:
        """Half of dc/dqd: C qd = c, and M' - 2C is skew except for the lumped arc.               [Wang, eq. 9]"""
        states, single = as_states(self.nq, q=q, qd=qd)
        C = 0.5 * self._derivatives(states['q'], states['qd'], np.zeros_like(states['q']))[1]
        return C[0] if single else C

    def gravity(self, q: Any) -> Array:
        """g(q) = d(gravitational energy)/dq"""
        states, single = as_states(self.nq, q=q)
        states['qd'] = states['qdd'] = np.zeros_like(states['q'])
        g = self._inverse(states, self._wrenches(states['q'], None), True, False, False)[0]
        return g[0] if single else g

    def elastic(self, q: Any) -> Array:
        """k(q) = d(elastic energy)/dq"""
        states, single = as_states(self.nq, q=q)
        x = self._model.change.position(states['q'])
        force = self._model.change.public_force(self._model.material(x, np.zeros_like(x))[0])
        force = finite('the forces', force, states)
        return force[0] if single else force

    def damping(self, q: Any, qd: Any) -> Array:
        """d(q, qd), the damper forces; for discs by `damping_on` (`simulate` always uses rates)."""
        states, single = as_states(self.nq, q=q, qd=qd)
        change = self._model.change
        force = self._model.material(change.position(states['q']), change.rate(states['qd']))[1]
        force = change.public_force(force) + self._dampers.force(states['q'], states['qd'])
        force = finite('the forces', force, states)
        return force[0] if single else force

    def tracking_forces(self, q: Any, qd: Any, q_r: Any, qd_r: Any, qdd_r: Any) -> Array:
        """Forces to follow q_r from q: M(q) qdd_r + C(q, qd) qd_r + g(q) + k(q_r) + d(q, qd_r).      [Wang, eq. 9]"""
        tau: Array = empty(self.nq)
        plain = self._plain and are_vectors(self.nq, q, qd, q_r, qd_r, qdd_r)
        if plain and tracking_forces(self._raw, *self._raw_parts, q, qd, q_r, qd_r, qdd_r, tau):
            return tau
        states, single = as_states(self.nq, q=q, qd=qd, q_r=q_r, qd_r=qd_r, qdd_r=qdd_r)
        q, qd, q_r, qd_r, qdd_r = states.values()
        tau = self.inverse_dynamics(q, np.zeros_like(q), qdd_r, elastic=False, damping=False)
        tau += np.einsum('kij,kj->ki', self.coriolis_matrix(q, qd), qd_r)
        tau += self.elastic(q_r) + self.damping(q, qd_r)
        return tau[0] if single else tau

    def base_wrench(
        self, q: Any, qd: Any, qdd: Any, *, external: Wrenches | None = None, minus_actuation: Any = None
    ) -> Array:
        """Wrench (6,) on the robot at its base, about the base's origin, in its axes; some sensors report the negative.

        This is the total wrench: pressures are internal and act on the base through the motion. [Mehl, eq. 28]
        minus_actuation: pressures (chambers,) or (count, chambers) [Pa]; their net wrench on the frames is subtracted,
        tau_0 - (tau_CC)_0. [Mehl, eq. 17]
        """
        states, single = as_states(self.nq, q=q, qd=qd, qdd=qdd)
        wrench = self._wrenches(states['q'], external, minus_actuation)
        ground = finite('the wrench', self._inverse(states, wrench, True, False, False)[1], states)
        X_WB = self.forward_kinematics(states['q'])[:, 0]
        n = ground[:, :3] - np.cross(X_WB[:, :3, 3], ground[:, 3:])
        W = np.einsum('kji,kaj->kai', X_WB[:, :3, :3], np.stack([n, ground[:, 3:]], 1)).reshape(-1, 6)
        return W[0] if single else W

    def actuation(self, q: Any) -> Array:
        """The matrix (nq, chambers) from pressures to generalised forces, by virtual work."""
        states, single = as_states(self.nq, q=q)
        change = self._model.change
        A = change.rows(self._model.actuation(change.position(states['q'])))
        return A[0] if single else A

    def linearize(self, q: Any, qd: Any, tau: Any) -> tuple[Array, Array]:
        """Exact derivatives of (qd, qdd): A (2nq, 2nq) with respect to (q, qd), B (2nq, nq) with respect to tau.

        Raises SingularInertia if a coordinate moves no mass in this pose.
        """
        A: Array = empty((2 * self.nq, 2 * self.nq))
        B: Array = empty((2 * self.nq, self.nq))
        plain = self._plain and are_vectors(self.nq, q, qd, tau)
        if plain and linearize_one(self._raw, q, qd, tau, self._model.prescribed, A, B):
            return A, B
        states, single = as_states(self.nq, q=q, qd=qd, tau=tau)
        x, v, force = self._joint_forces(states, True, True)
        slopes = [self._model.change.joint_matrix(d) for d in self._dampers.slopes(states['q'], states['qd'])]
        A, B, status = self._model.linearize(x, v, force, slopes if self._dampers.any else ())
        if status != OK:
            raise self._singular(status, states)
        finite('the derivatives', A, states)
        A, B = self._model.change.public_slopes(A, B)
        return (A[0], B[0]) if single else (A, B)

    def energy(self, q: Any, qd: Any) -> tuple[Any, Any, Any]:
        """(kinetic, gravitational, elastic) energy [J]."""
        states, single = as_states(self.nq, q=q, qd=qd)
        kinetic = 0.5 * np.einsum('ki,kij,kj->k', states['qd'], self.mass_matrix(states['q']), states['qd'])
        x = self._model.change.position(states['q'])
        gravitational, elastic = self._model.gravity_energy(x), self._model.material(x, np.zeros_like(x))[2]
        if single:
            return float(kinetic[0]), float(gravitational[0]), float(elastic[0])
        return kinetic, gravitational, elastic

    def momentum(self, q: Any, qd: Any) -> Array:
        """Canonical momentum p = M qd.                                                          [Schultz, eq. 7]"""
        states, single = as_states(self.nq, q=q, qd=qd)
        p = np.einsum('kij,kj->ki', self.mass_matrix(states['q']), states['qd'])
        return p[0] if single else p

    def momentum_rate(self, q: Any, qd: Any, tau: Any) -> Array:
        """dp/dt = dT/dq - dV/dq - d + tau, including dT/dq, which the paper omits.              [Schultz, eq. 7]"""
        states, single = as_states(self.nq, q=q, qd=qd, tau=tau)
        slope = self._derivatives(states['q'], np.zeros_like(states['q']), states['qd'])[0]
        kinetic_slope = 0.5 * np.einsum('kij,ki->kj', slope, states['qd'])
        held = self.gravity(states['q']) + self.elastic(states['q']) + self.damping(states['q'], states['qd'])
        rate = kinetic_slope - held + states['tau']
        return rate[0] if single else rate

    # ---- motion ---------------------------------------------------------------------------------------------------

    def simulate(
        self, q0: Any, qd0: Any, inputs: Any, t_eval: Any, method: str = 'default', **options: Any
    ) -> Trajectory:
        """Simulate the motion under pressures or forces; `simulate.simulate` lists methods and options."""
        return simulate(self, q0, qd0, inputs, t_eval, method, **options)

    # ---- inside --------------------------------------------------------------------------------------------------

    def _inverse(
        self, states: dict[str, Array], wrench: Array, gravity: bool, elastic: bool, damping: bool
    ) -> tuple[Array, Array]:
        """(public forces, ground wrench about the world's origin) of many states."""
        model, change = self._model, self._model.change
        if self._discs is not None:
            tau, ground = self._discs.inverse(states, wrench, gravity, elastic)
        else:
            x, v, vd = change.position(states['q']), change.rate(states['qd']), change.rate(states['qdd'])
            tau, ground = model.inverse(model.variant(gravity, elastic, damping), x, v, vd, wrench)
            tau = change.public_force(tau + model.spring_force(x) if elastic else tau)
        if damping:
            tau = tau + self._dampers.force(states['q'], states['qd'])
        return finite('the forces', tau, states), ground

    def _joint_forces(
        self, states: dict[str, Array], elastic: bool, damping: bool
    ) -> tuple[Array, Array, Array]:
        """(x, v, forces) of the joints, minus the springs and dampers that act on several joints."""
        change = self._model.change
        x, v = change.position(states['q']), change.rate(states['qd'])
        force = change.force(self._less_dampers(states, damping))
        return x, v, force - self._model.spring_force(x) if elastic else force

    def _less_dampers(self, states: dict[str, Array], damping: bool) -> Array:
        """The forces minus those of the dampers that act on several joints."""
        return states['tau'] - self._dampers.force(states['q'], states['qd']) if damping else states['tau']

    def _derivatives(
        self, q: Array, qd: Array, qdd: Array, gravity: bool = False
    ) -> tuple[Array, Array, Array]:
        """(dtau/dq, dtau/dqd, M) of the inertial terms, in public coordinates."""
        model, change = self._model, self._model.change
        chain = model.variant(gravity, False, False)
        dq, dv, M = model.derivatives(chain, change.position(q), change.rate(qd), change.rate(qdd))
        finite(
            'the derivatives', dq, {'q': q, 'qd': qd, 'qdd': qdd}
        )  # M becomes NaN as well: NaN times 0 is NaN
        return change.public_matrix(dq), change.public_matrix(dv), change.public_matrix(M)

    def _wrenches(self, q: Array, external: Wrenches | None, pressures: Any = None) -> Array:
        """Wrenches (count, N, 6) of frames and chambers in the axes of the frames; (count, 0, 6) for none."""
        count, model = len(q), self._model
        found: dict[int, Array] = {}
        if external is not None and not isinstance(external, Mapping):
            raise ValueError(
                f'external: expected a mapping of frames to wrenches, got {type(external).__name__}'
            )
        for frame, value in (external or {}).items():
            element, w = self._element(frame, 'external'), as_array(f'external[{frame!r}]', value)
            if w.shape not in ((6,), (count, 6)):
                raise ValueError(f'external[{frame!r}]: expected shape (6,) or ({count}, 6), got {w.shape}')
            found[element] = found.get(element, 0.0) + w
        wrench = model.wrenches(model.change.position(q), found) if found else zeros((count, 0, 6))
        if pressures is None:
            return wrench
        p, m = as_array('minus_actuation', pressures), len(self.chamber_names)
        if p.shape not in ((m,), (count, m)):
            raise ValueError(f'minus_actuation: expected shape ({m},) or ({count}, {m}), got {p.shape}')
        inner = np.einsum('kc,cij->kij', np.broadcast_to(p, (count, m)), model.actuators.wrenches)
        return inner + wrench if found else inner

    def _given_accelerations(self, value: Any, count: int) -> Array:
        qdd, base = np.zeros((count, self.nq)), self._model.prescribed
        if value is None:
            return qdd
        given = as_array('base_acceleration', value)
        if not base.size:
            raise ValueError('base_acceleration: expected a robot with a prescribed base')
        if given.shape not in ((6,), (count, 6)):
            raise ValueError(f'base_acceleration: expected shape (6,) or ({count}, 6), got {given.shape}')
        qdd[:, base] = given
        return qdd

    def _singular(self, coordinate: int, states: dict[str, Array]) -> SingularInertia:
        self.mass_matrix(
            states['q']
        )  # these two reject states that are too large, which look singular as well
        self.coriolis(states['q'], states['qd'])
        return SingularInertia(self.coordinate_names[coordinate], 'simulate() passes through such poses')


def load(name: str | Path, overrides: Mapping[str, Any] | None = None) -> Robot:
    """Load a shipped robot by name, or any robot by path; `overrides` is merged over the file, key by key.

    Raises FileNotFoundError or RobotFileError.
    """
    return Robot(load_description(name, overrides))
