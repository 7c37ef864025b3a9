"""Schultz without coordinates: absolute orientations and quasi-velocities, regular in every pose.

State per thread k: P_k (third column e_k along the thread), R_k (its disc), nu_k = (w_1, w_2 of the thread in
P_k, Omega of the disc in R_k). Kane's equations, written by hand in numpy: nothing but the parameters is
shared with `schultz`.

    o_j = sum_{k<=j} l_k e_k,  c_j = o_j + rho_j R_j y
    e' = P (w_2, -w_1, 0),     e'' = P (w_2', -w_1', 0) - |w|^2 e
    sum_j V_j^T m_j (a_j - g) + [I Omega' + Omega x I Omega] = generalised forces
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from .mechanics import Array
from .schultz import Schultz, SchultzParameters


class Motion(NamedTuple):
    """Orientations (n x 3 x 3) of threads and discs, and quasi-velocities (n x 5)."""

    P: Array
    R: Array
    nu: Array


def skew(a: Array) -> Array:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


class SchultzRegular:
    """Forward dynamics and motion of the undamped chain under gravity, springs and inflation."""

    def __init__(self, parameters: SchultzParameters, pressure: float = 0.0) -> None:
        self.parameters, self.pressure = parameters, pressure
        self.gravity_W = np.asarray(parameters.gravity, float)
        self.base = np.asarray(parameters.R_WB, float), np.asarray(parameters.p_WB, float)

    def origins(self, motion: Motion) -> Array:
        """Frame origin of every disc, base first."""
        steps = self.parameters.threads[:, None] * motion.P[:, :, 2]
        return self.base[1] + np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])

    def centres(self, motion: Motion) -> Array:
        """Centre of every moving disc."""
        return self.origins(motion)[1:] + self.parameters.radii[1:, None] * motion.R[:, :, 1]

    def point_velocity(self, motion: Motion, disc: int, r_D: Array) -> Array:
        """V (3 x 5n) of a point fixed to a disc; disc 0 is the base."""
        V = np.zeros((3, 5 * self.parameters.n))
        for k in range(disc):
            V[:, 5 * k] = -self.parameters.threads[k] * motion.P[k, :, 1]
            V[:, 5 * k + 1] = self.parameters.threads[k] * motion.P[k, :, 0]
        if disc > 0:
            V[:, 5 * disc - 3 : 5 * disc] = -motion.R[disc - 1] @ skew(r_D)
        return V

    def mass_matrix(self, motion: Motion) -> Array:
        return self._inertial(motion)[0]

    def forward_dynamics(self, motion: Motion) -> Array:
        """Rates of nu, flat."""
        M, bias = self._inertial(motion)
        return np.asarray(np.linalg.solve(M, self._forces(motion) - bias), float)

    def _inertial(self, motion: Motion) -> tuple[Array, Array]:
        P = self.parameters
        M, bias = np.zeros((5 * P.n, 5 * P.n)), np.zeros(5 * P.n)
        centripetal = np.zeros(3)
        for j in range(P.n):
            w, omega = motion.nu[j, :2], motion.nu[j, 2:]
            centripetal = centripetal - P.threads[j] * (w @ w) * motion.P[j, :, 2]
            r = np.array([0, P.radii[j + 1], 0])
            V = self.point_velocity(motion, j + 1, r)
            a = centripetal + motion.R[j] @ np.cross(omega, np.cross(omega, r))
            spin = slice(5 * j + 2, 5 * j + 5)
            M += P.mass[j] * V.T @ V
            bias += P.mass[j] * V.T @ a
            M[spin, spin] += P.hoop(j + 1)
            bias[spin] += np.cross(omega, P.hoop(j + 1) @ omega)
        return M, bias

    def _forces(self, motion: Motion) -> Array:
        P, origins = self.parameters, self.origins(motion)
        R = [self.base[0], *motion.R]
        Q = np.zeros(5 * P.n)
        for j in range(1, P.n + 1):
            centre = np.array([0, P.radii[j], 0])
            force = P.mass[j - 1] * self.gravity_W
            if j == P.n:
                force = force + self.pressure * P.area * R[j][:, 2]
            Q += self.point_velocity(motion, j, centre).T @ force
            for angle, stiffness, rest in P.springs:
                r_near, r_far = P.rim(j - 1, angle), P.rim(j, angle)
                stretch = origins[j] + R[j] @ r_far - origins[j - 1] - R[j - 1] @ r_near
                length = np.linalg.norm(stretch)
                pull = stiffness * (length - rest) * stretch / length
                V_far, V_near = (
                    self.point_velocity(motion, j, r_far),
                    self.point_velocity(motion, j - 1, r_near),
                )
                Q -= (V_far - V_near).T @ pull
        return Q

    def simulate(self, start: Motion, t_eval: ArrayLike) -> list[Motion]:
        """Motion at the times t_eval, from t = 0, without damping."""
        n = self.parameters.n

        def unpack(y: Array) -> Motion:
            P, R = (Rotation.from_quat(part).as_matrix() for part in y[: 8 * n].reshape(2, n, 4))
            return Motion(P, R, y[8 * n :].reshape(n, 5))

        def rate(_t: float, y: Array) -> Array:
            motion = unpack(y)
            spins = np.concatenate([np.column_stack([motion.nu[:, :2], np.zeros(n)]), motion.nu[:, 2:]])
            vec, scalar = y[: 8 * n].reshape(-1, 4)[:, :3], y[: 8 * n].reshape(-1, 4)[:, 3:]
            quat_rate = np.column_stack(
                [scalar * spins + np.cross(vec, spins), -np.sum(vec * spins, axis=1, keepdims=True)]
            )
            return np.concatenate([quat_rate.ravel() / 2, self.forward_dynamics(motion)])

        quats = [Rotation.from_matrix(matrices).as_quat() for matrices in (start.P, start.R)]
        y0 = np.concatenate([np.ravel(quats), start.nu.ravel()])
        t = np.asarray(t_eval, float)
        solution = solve_ivp(rate, (0, t[-1]), y0, 'DOP853', t, rtol=1e-11, atol=1e-12)
        return [unpack(y) for y in solution.y.T]


def rates(model: Schultz, q: ArrayLike) -> tuple[Motion, Array]:
    """Pose q with nu = 0, and A (5n x 5n) with nu = A qd."""
    poses = model.frames(q)
    jacobians = [model.jacobian(q, k) for k in range(len(poses))]
    P, R, A = [], [], []
    for k in range(model.parameters.n):
        e = (poses[k + 1] - poses[k])[:3, 3] / model.parameters.threads[k]
        P.append(Rotation.align_vectors([e], [[0, 0, 1]])[0].as_matrix())
        R.append(poses[k + 1][:3, :3])
        de = (jacobians[k + 1] - jacobians[k])[3:] / model.parameters.threads[k]
        A += [-P[k][:, 1] @ de, P[k][:, 0] @ de, *(R[k].T @ jacobians[k + 1][:3])]
    return Motion(np.array(P), np.array(R), np.zeros((model.parameters.n, 5))), np.array(A)


def motion(model: Schultz, q: ArrayLike, qd: ArrayLike) -> Motion:
    """State (q, qd) in regular form."""
    pose, A = rates(model, q)
    return pose._replace(nu=(A @ np.asarray(qd, float)).reshape(-1, 5))
