"""Recordings of a model with known parameters, for the tests of `identify`."""

from __future__ import annotations

import numpy as np

from soft_dynamics.description.robot_description import Description
from soft_dynamics.robot import Robot
from soft_estimation.differentiate.smoothing_spline import smoothing_spline
from soft_estimation.identification.problem import follow_evenly
from soft_estimation.identification.unknowns import apply, select
from soft_estimation.recordings.recording import Recording


def recorded(robot, t, pressure, *, q0=None, noise=1e-3, bandwidth=8.0, shown=None, force_noise=None, seed=0):
    """A motion from rest with white noise on q; `shown` replaces the recorded pressures."""
    rng = np.random.default_rng(seed)
    motion = robot.simulate(robot.rest if q0 is None else q0, np.zeros(robot.nq), pressure, t, step=2e-3)
    q, wrench = motion.q + noise * rng.standard_normal(motion.q.shape), None
    if force_noise is not None:
        tau = np.einsum('kij,kj->ki', robot.actuation(motion.q), pressure)
        qdd = robot.forward_dynamics(motion.q, motion.qd, tau)
        wrench = robot.base_wrench(motion.q, motion.qd, qdd) + force_noise * rng.standard_normal((t.size, 6))
        q[:, :6] = motion.q[:, :6]
    smooth = smoothing_spline(t, q, bandwidth)
    return Recording(
        robot.name, t, q, smooth(t, 1), smooth(t, 2), pressure if shown is None else shown, wrench
    )


def rectangle(t, size, lag=0.02):
    """Pressures [Pa] of one chamber stepped to `size` and back."""
    return follow_evenly(np.where((t > 0.1) & (t < 0.6 * t[-1]), size, 0.0)[:, None], t[1] - t[0], lag)


def wrong(robot: Description, **factors: float) -> Description:
    """The robot with fields of all segments scaled by a factor: stiffness=1.8."""
    keys = [f'*.{field}' for field in factors]
    return apply(robot, select(robot, keys), np.log(list(factors.values())))


def deviations(found, truth: Description):
    """Relative error of every unknown."""
    true = select(truth, [parameter.key for parameter in found.parameters])
    return {
        p.key: value / t.shown - 1.0 for p, value, t in zip(found.parameters, found.values, true, strict=True)
    }


def bending_recording(description: Description, seconds=1.5, noise=1e-3):
    t = np.arange(0.0, seconds, 0.01)
    return recorded(Robot(description), t, rectangle(t, 119e3), noise=noise)
