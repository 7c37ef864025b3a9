"""One chain for all: prismatic, revolute, revolute, prismatic per segment, as our, Pinocchio's and MuJoCo's model.

The honeycomb arm with free link lengths and half of each mass at its universal joint, without springs and dampers,
which Pinocchio does not have. Longer chains repeat the four segments.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pinocchio as pin

from soft_dynamics.array import Array
from soft_dynamics.description.actuation import Actuation
from soft_dynamics.description.robot_description import Description, load_description
from soft_dynamics.robot import Robot
from soft_dynamics.segments import Material

HONEYCOMB, PNEUMATIC = load_description('honeycomb_arm'), load_description('pneumatic_arm')
GRAVITY = HONEYCOMB.gravity
AXES = 'zYXz'  # of one segment: capital letters rotate, small letters slide
POINT_INERTIA = 1e-9  # [kg m^2] MuJoCo rejects a point mass


class State(NamedTuple):
    """Motions (count, nq) of one robot: coordinates, rates, accelerations."""

    q: Array
    qd: Array
    qdd: Array


def puj_robot(segments: int) -> Robot:
    """Return the chain as our model."""
    return _bare_robot(HONEYCOMB, _universals(segments))


def arc_robot(joints: int, placement: str = 'lumped', points: int = 5) -> Robot:
    """Return the pneumatic arm with any number of joints and links and a mass placement."""
    segments: list[Any] = []
    for k in range(joints):
        arc, link = PNEUMATIC.segments[2 * k % 6 : 2 * k % 6 + 2]
        moved: dict[str, Any] = {'placement': placement, 'quadrature_points': points}
        segments += [replace(arc, name=f'joint{k}', **moved), replace(link, name=f'link{k}')]
    return _bare_robot(PNEUMATIC, segments)


def random_state(robot: Robot, count: int) -> State:
    """Return motions around the rest shape, away from poses in which a coordinate moves no mass."""
    state = State(*np.random.default_rng(1).uniform(-0.4, 0.4, (3, count, robot.nq)))
    for k, name in enumerate(robot.coordinate_names):
        if name.endswith(('_d1', '_d2')):  # a length: half of the segment's, with variation
            segment = robot.description.segments[k // 4]
            state.q[:, k] = 0.5 * segment.length * (1.0 + 0.5 * state.q[:, k])  # type: ignore[union-attr]
    return state


def pinocchio_model(segments: int) -> Any:
    """Return the chain as a pinocchio.Model."""
    joints = {'z': pin.JointModelPZ, 'Y': pin.JointModelRY, 'X': pin.JointModelRX}
    model, parent = pin.Model(), 0
    for k, (axis, mass) in enumerate(puj_joints(segments)):
        parent = model.addJoint(parent, joints[axis](), pin.SE3.Identity(), f'joint{k}')
        body = pin.Inertia(mass, np.zeros(3), np.zeros((3, 3)))
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    model.gravity.linear = np.array(GRAVITY)
    return model


def mujoco_model(segments: int, timestep: float) -> Any:
    """Return the chain as a mujoco.MjModel: two bodies per segment, no contacts, no limits."""
    joints = {'z': 'type="slide" axis="0 0 1"', 'Y': 'axis="0 1 0"', 'X': 'axis="1 0 0"'}
    bodies, waiting = [], ''
    for axis, mass in puj_joints(segments):
        waiting += f'<joint {joints[axis]}/>'
        if mass:  # a body may have several joints but needs a mass
            inertia = ' '.join([str(POINT_INERTIA)] * 3)
            bodies.append(f'<body>{waiting}<inertial pos="0 0 0" mass="{mass}" diaginertia="{inertia}"/>')
            waiting = ''
    gravity = ' '.join(map(str, GRAVITY))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{timestep}" gravity="{gravity}" integrator="RK4"/>'
        f'<worldbody>{"".join(bodies)}{"</body>" * len(bodies)}</worldbody></mujoco>'
    )


def puj_joints(segments: int) -> list[tuple[str, float]]:
    """Return axis and point mass [kg] behind each joint: half at the universal joint, a quarter at each end."""
    masses = [segment.mass for segment in _universals(segments)]
    joints: list[tuple[str, float]] = []
    for mass, following in zip(masses, [*masses[1:], 0.0], strict=True):
        joints += zip(AXES, (0.0, 0.0, mass / 2, mass / 4 + following / 4), strict=True)
    return joints


def _universals(segments: int) -> list[Any]:
    bare = {'material': Material(), 'link_stiffness': 0.0, 'link_damping': 0.0}
    free: dict[str, Any] = {'lengths': 'free', 'joint_mass_fraction': 0.5, **bare}
    return [replace(HONEYCOMB.segments[k % 4], name=f'segment{k}', **free) for k in range(segments)]


def _bare_robot(arm: Description, segments: list[Any]) -> Robot:
    return Robot(replace(arm, segments=tuple(segments), actuation=Actuation(), sensors=()))
