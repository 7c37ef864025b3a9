"""Compile every kernel of the suite into numba's cache, two at a time.

python -m tools.warm_up
"""

import subprocess
import sys

import numpy as np

import soft_dynamics as sd
from soft_control.allocation.pressure_allocation import Allocation
from soft_control.control_loop import ControlLoop, Law
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw
from soft_control.laws.predictive import PredictiveGains, PredictiveLaw
from soft_control.references import JointPath, JointSample, PosePath
from soft_control.safety.state_machine import State
from soft_dynamics.geometry.curve import integrate_curve
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.inverse_kinematics.fiber_shape import frames_along
from soft_estimation.inverse_kinematics.poses import poses_from_quaternions
from soft_estimation.kalman.model_filter import ModelFilter

T = [0.0, 0.01]


def states() -> None:
    robot, bent = sd.load('honeycomb_arm'), sd.load('fabric_arm')
    one, two = np.zeros(robot.nq), np.zeros((2, robot.nq))
    for q in (one, two):
        robot.inverse_dynamics(q, q, q, elastic=False)
        robot.forward_dynamics(q, q, q, elastic=False)
        robot.energy(q, q)
        robot.forward_kinematics(q)
        robot.jacobian(q, 'tip')
    robot.centerline(one, T)
    robot.forward_dynamics(one, one, robot.inverse_dynamics(one, one, one))
    robot.inverse_derivatives(one, one, one)
    robot.frames_and_jacobian(one)
    for q in np.full(bent.nq, 0.3), np.full((2, bent.nq), 0.3):
        bent.forward_dynamics(q, q, bent.inverse_dynamics(q, q, q))
        bent.elastic(q)
    robot.tracking_forces(one, one, one, one, one)
    Allocation(robot)(robot.actuation(one), one)
    for strain in (None, np.zeros(2)):
        integrate_curve(np.array(T), np.zeros((2, 3)), strain)


def estimates(robot: sd.Robot) -> None:
    plates = {f'plate{k}': X_BF for k, X_BF in enumerate(robot.forward_kinematics(robot.rest))}
    poses_from_quaternions(np.array([[0.0, 0.0, 0.0, 1.0]]), np.zeros((1, 3)))
    s = np.linspace(0.0, 1.0, 30)
    frames_along(s, np.stack([0.0 * s, 0.0 * s, s], 1), [1.0])
    estimator = ModelFilter(robot)
    for t in T:
        estimator.feed_pressure(t, np.zeros(len(robot.chamber_names)))
        estimator.feed_poses(t, plates)
        estimator.feed_wrench(t, 'base_ft', np.zeros(6))
    estimator.estimate(0.015)
    differentiator = PoseDifferentiator(robot)
    differentiator.feed_poses(0.0, plates)


def commands(robot: sd.Robot) -> None:
    laws: list[Law] = [PredictiveLaw(robot, PredictiveGains(), joints=joints) for joints in (True, False)]
    for law in (ConfigurationLaw(robot, ConfigurationGains()), *laws):
        loop = ControlLoop(robot, law)
        loop.feed(State(0.0, robot.rest, np.zeros(robot.nq)))
        here = loop.present(0.0)
        if isinstance(here, JointSample):
            path = JointPath(0.0, here, [1.0], [robot.rest])
            path.check(loop.limits)
            loop.follow(0.0, path)
        else:
            loop.follow(0.0, PosePath(0.0, here.X_WT, [here.X_WT], 0.1, 0.5))
        for t in T:
            loop.step(t)
            loop.feed_pressure(t, loop.memory.pressure)


def motions() -> None:
    robot, bent = sd.load('honeycomb_arm'), sd.load('fabric_arm')
    one, two = np.zeros(robot.nq), np.zeros((2, robot.nq))
    robot.linearize(one, one, one)
    estimates(robot)
    commands(robot)
    for method in ('implicit', 'rk4', 'LSODA'):
        for q in (one, two):
            robot.simulate(q, q, None, T, method)
    bent.simulate(np.zeros(bent.nq), np.zeros(bent.nq), None, T)


PARTS = {'states': states, 'motions': motions}


def main() -> int:
    if len(sys.argv) == 2:
        PARTS[sys.argv[1]]()
        return 0
    running = [subprocess.Popen([sys.executable, '-m', 'tools.warm_up', part]) for part in PARTS]
    return max(process.wait() for process in running)


if __name__ == '__main__':
    sys.exit(main())
