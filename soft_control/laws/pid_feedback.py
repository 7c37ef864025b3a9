"""The feedback of a PID controller, coordinate by coordinate, in one call."""

from __future__ import annotations

from numba import njit

from soft_dynamics.array import Array


@njit(cache=True, error_model='numpy')
def add_feedback(
    gains: Array,
    dt: float,
    now: tuple[Array, Array],
    wanted: tuple[Array, Array],
    integral: Array,
    tau: Array,
) -> None:
    """Advance the integral Ki int e by dt seconds, and add Kp e + Kd e' + Ki int e to the forces tau.

    gains (3, nq): Kp, Kd, Ki; now and wanted: coordinates and rates (nq,); e = wanted - now.
    """
    (q, qd), (q_r, qd_r) = now, wanted
    for i in range(tau.size):
        e = q_r[i] - q[i]
        integral[i] += dt * gains[2, i] * e
        tau[i] += gains[0, i] * e + gains[1, i] * (qd_r[i] - qd[i]) + integral[i]
