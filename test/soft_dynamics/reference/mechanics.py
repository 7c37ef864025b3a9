"""Newton and d'Alembert on a list of bodies whose poses are machine-differentiated.

A model states where its masses are (`Body`) and how its frames lie, as CasADi expressions of q; `System` does
the rest:

    tau = sum  J_p^T m (a - g) + J_w^T (I alpha + w x I w)  +  dV/dq  +  b qd

with J_p, J_w, a, alpha from automatic differentiation: no recursion, no derivative made by hand. Where the
body inertia is constant this is Lagrange's equation; where it depends on q (Jensen's lumped arcs) dI/dt is
left out, as in the paper.

Conventions: W world, B base frame (frames[0]); wrenches, twists and Jacobians angular first; SI units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .long_double import LongArray, evaluate_long

Array = NDArray[np.float64]
SX = Any  # a casadi.SX expression; its type annotations differ between releases of CasADi

SERIES_TERMS = 30


def entire(j: int, x: SX) -> SX:
    """f_j(x) = sum_k (-x)^k / (2k + j)!  with x = phi^2.

    j = 0..3: cos phi, sin phi/phi, (1 - cos phi)/phi^2, (phi - sin phi)/phi^3.
    """
    total = 1 / math.factorial(2 * SERIES_TERMS + j)
    for k in reversed(range(SERIES_TERMS)):
        total = 1 / math.factorial(2 * k + j) - x * total
    return total


def vector(*components: SX | float) -> SX:
    return ca.vertcat(*components)


def rotation(axis: str, angle: SX) -> SX:
    """Elementary rotation about 'x', 'y' or 'z'."""
    c, s = ca.cos(angle), ca.sin(angle)
    k = 'xyz'.index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    R = ca.SX.eye(3)
    R[i, i], R[j, j], R[i, j], R[j, i] = c, c, -s, s
    return R


class Frame(NamedTuple):
    """Pose of a frame in the world."""

    R: SX
    p: SX

    def point(self, p_F: SX) -> SX:
        return self.p + self.R @ p_F

    def then(self, R: SX, p: SX) -> 'Frame':
        return Frame(self.R @ R, self.point(p))


def fixed_frame(R: ArrayLike, p: ArrayLike) -> Frame:
    return Frame(ca.SX(ca.DM(np.asarray(R, float))), ca.SX(ca.DM(np.asarray(p, float))))


@dataclass(frozen=True, eq=False)
class Body:
    """A mass at p_W, optionally with an inertia about p_W in the axes of R_W.

    A continuous body is a family: `args` are its extra symbols (arc fraction, weight), `nodes` their values,
    one column per member.
    """

    mass: SX | float
    p_W: SX
    R_W: SX | None = None
    inertia: SX | None = None
    args: SX = field(default_factory=lambda: ca.SX(0, 1))
    nodes: Array = field(default_factory=lambda: np.zeros((0, 1)))


def evaluate(function: Any, *arguments: Any) -> Array:
    """Value of a CasADi function with one output."""
    return np.asarray(function(*arguments).full(), float)


def angular_jacobian(R: SX, q: SX) -> SX:
    """J_w with [w]x = R' R^T, world axes."""
    dR = ca.jacobian(ca.vec(R), q)
    columns = []
    for k in range(q.shape[0]):
        W = ca.reshape(dR[:, k], 3, 3) @ R.T
        columns.append(vector(W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]) / 2)
    return ca.horzcat(*columns)


def polynomial_springs(q: SX, rest: ArrayLike, linear: ArrayLike, cubic: ArrayLike = 0.0) -> SX:
    """Energy of tau = k1 e + k3 e^3, e = q - rest, coordinate by coordinate."""
    rest, linear, cubic = (
        ca.DM(np.broadcast_to(np.asarray(a, float), q.shape[0])) for a in (rest, linear, cubic)
    )
    e = q - rest
    return ca.dot(linear, e**2) / 2 + ca.dot(cubic, e**4) / 4


class System:
    """The dynamics of a set of bodies. A model's constructor makes q, bodies, frames and forces.

    `layout` (rest, scale, bends) are the keyword arguments of states.random_states and states.special_states.
    """

    def __init__(
        self,
        q: SX,
        bodies: Sequence[Body],
        frames: Sequence[Frame],
        gravity_W: ArrayLike,
        elastic_energy: SX,
        damping: ArrayLike,
        layout: dict[str, Any],
    ) -> None:
        self.nq: int = q.shape[0]
        self.layout = layout
        self._gravity_W = ca.DM(np.asarray(gravity_W, float))
        self._damping = np.broadcast_to(np.asarray(damping, float), self.nq)
        self._q, self._qd, self._qdd = q, ca.SX.sym('qd', self.nq), ca.SX.sym('qdd', self.nq)
        self._frames = list(frames)
        members = [self._contributions(body) for body in bodies]
        state = [ca.MX.sym(name, self.nq) for name in ('q', 'qd', 'qdd')]
        self._total = {
            name: ca.Function(name, state, [_sum(name, members, bodies, state)]) for name in members[0]
        }
        self._elastic_energy = ca.Function('elastic_energy', [q], [elastic_energy])
        self._elastic = ca.Function('elastic', [q], [ca.gradient(elastic_energy, q)])
        self._poses = ca.Function('poses', [q], [ca.horzcat(*(ca.horzcat(f.R, f.p) for f in frames))])
        self._jacobians: dict[int, Any] = {}

    def _contributions(self, body: Body) -> dict[str, Any]:
        """Mass matrix, bias, weight, base wrench (base axes) and energies of one body."""
        q, qd, qdd, base = self._q, self._qd, self._qdd, self._frames[0]
        J_p = ca.jacobian(body.p_W, q)
        v = J_p @ qd
        a_bias = ca.jtimes(v, q, qd)
        mass, bias = body.mass * J_p.T @ J_p, body.mass * J_p.T @ a_bias
        kinetic = body.mass * ca.dot(v, v) / 2
        force = body.mass * (J_p @ qdd + a_bias - self._gravity_W)
        moment = ca.cross(body.p_W - base.p, force)
        if body.R_W is not None:
            J_w = angular_jacobian(body.R_W, q)
            inertia_W = body.R_W @ body.inertia @ body.R_W.T
            w = J_w @ qd
            spin_bias = inertia_W @ ca.jtimes(w, q, qd) + ca.cross(w, inertia_W @ w)
            mass += J_w.T @ inertia_W @ J_w
            bias += J_w.T @ spin_bias
            kinetic += ca.dot(w, inertia_W @ w) / 2
            moment += inertia_W @ J_w @ qdd + spin_bias
        outputs = {
            'mass': mass,
            'bias': bias,
            'weight': -body.mass * J_p.T @ self._gravity_W,
            'wrench': vector(base.R.T @ moment, base.R.T @ force),
            'kinetic': kinetic,
            'gravitational': -body.mass * ca.dot(self._gravity_W, body.p_W),
        }
        return {name: ca.Function(name, [q, qd, qdd, body.args], [out]) for name, out in outputs.items()}

    def _call(self, name: str, *state: ArrayLike) -> Array:
        padded = [*state, *([np.zeros(self.nq)] * (3 - len(state)))]
        return evaluate(self._total[name], *padded)

    def mass_matrix(self, q: ArrayLike) -> Array:
        return self._call('mass', q)

    def coriolis(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Vector c(q, qd), quadratic in qd."""
        return self._call('bias', q, qd)[:, 0]

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, qd) = (1/2) dc/dqd: the Christoffel matrix wherever c comes from an energy."""
        c, qd = self.coriolis, np.asarray(qd, float)
        return np.column_stack([c(q, qd + e) - c(q, qd) - c(q, e) for e in np.eye(self.nq)]) / 2

    def gravity(self, q: ArrayLike) -> Array:
        return self._call('weight', q)[:, 0]

    def elastic(self, q: ArrayLike) -> Array:
        return evaluate(self._elastic, q)[:, 0]

    def damping(self, q: ArrayLike, qd: ArrayLike) -> Array:
        return np.asarray(self._damping * np.asarray(qd, float))

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """M qdd + c + g + elastic + damping."""
        inertial = self.mass_matrix(q) @ np.asarray(qdd, float) + self.coriolis(q, qd)
        return np.asarray(inertial + self.gravity(q) + self.elastic(q) + self.damping(q, qd))

    def inverse_dynamics_long(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> LongArray:
        """`inverse_dynamics` in long doubles."""
        zero, state = np.zeros(self.nq), (q, qd, qdd)
        tau = evaluate_long(self._total['mass'], q, zero, zero) @ np.asarray(qdd, np.longdouble)
        for term in (self._total['bias'], self._total['weight'], self._elastic):
            tau = tau + evaluate_long(term, *state[: term.n_in()])[:, 0]
        return tau + self._damping * np.asarray(qd, np.longdouble)

    def frames(self, q: ArrayLike) -> list[Array]:
        """World poses (4 x 4): base, then the end of every segment."""
        stacked = evaluate(self._poses, q)
        return [np.vstack([stacked[:, 4 * k : 4 * k + 4], [0, 0, 0, 1]]) for k in range(len(self._frames))]

    def jacobian(self, q: ArrayLike, k: int) -> Array:
        """Geometric Jacobian (6 x nq) of frames(q)[k]: angular first, world axes, at the frame's origin."""
        k = range(len(self._frames))[k]
        if k not in self._jacobians:
            frame = self._frames[k]
            J = ca.vertcat(angular_jacobian(frame.R, self._q), ca.jacobian(frame.p, self._q))
            self._jacobians[k] = ca.Function('J', [self._q], [J])
        return evaluate(self._jacobians[k], q)

    def base_wrench(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, axes: Literal['base', 'world'] = 'base'
    ) -> Array:
        """Wrench (6, angular first) that the base must exert ON the robot, about the base origin.

        It is the rate of momentum less the weight: reaction and internal actuation together.
        """
        wrench = self._call('wrench', q, qd, qdd)[:, 0]
        R = self.frames(q)[0][:3, :3] if axes == 'world' else np.eye(3)
        return np.concatenate([R @ wrench[:3], R @ wrench[3:]])

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> float:
        return float(self._call('kinetic', q, qd)[0, 0])

    def gravitational_energy(self, q: ArrayLike) -> float:
        return float(self._call('gravitational', q)[0, 0])

    def elastic_energy(self, q: ArrayLike) -> float:
        return float(evaluate(self._elastic_energy, q)[0, 0])

    def lagrange(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """d/dt dT/dqd - dT/dq + d(Vg + Ve)/dq + damping: inverse dynamics from the energies alone."""
        return evaluate(self._lagrange, q, qd, qdd)[:, 0] + self.damping(q, qd)

    @cached_property
    def _lagrange(self) -> Any:
        q, qd, qdd = (ca.MX.sym(name, self.nq) for name in ('q', 'qd', 'qdd'))
        T = self._total['kinetic'](q, qd, 0)
        V = self._total['gravitational'](q, 0, 0) + self._elastic_energy(q)
        p = ca.gradient(T, qd)
        tau = ca.jtimes(p, q, qd) + ca.jtimes(p, qd, qdd) - ca.gradient(T, q) + ca.gradient(V, q)
        return ca.Function('lagrange', [q, qd, qdd], [tau])


def _sum(name: str, members: list[dict[str, Any]], bodies: Sequence[Body], state: list[Any]) -> Any:
    terms = [
        functions[name](*state, ca.DM(node))
        for functions, body in zip(members, bodies, strict=True)
        for node in body.nodes.T
    ]
    return sum(terms[1:], terms[0])
