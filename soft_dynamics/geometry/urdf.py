"""Convert a robot to URDF: kinematics and visuals for robot_state_publisher, RViz and planners, without masses.

universal, hinge, disc, link   their joints, exactly
arc                            a turn `direction` of the bending plane about z, n + 1 bends `bend` about x (the first
                               and the last with half the angle) with n straight slices between them, and the turn
                               back. If the arc is extensible, the slices slide and the tip is exact. Otherwise the tip
                               is off by at most h phi^2/(24 n^2), because the slices are straight.
base that moves                base_x, y, z, alpha, beta, gamma

Dependent joints are <mimic> joints, so joint states contain only the independent ones.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from ..array import Array
from ..description.robot_description import Description
from ..robot import Robot
from ..segments.look import BODY, PLATE, RIGID, Joint, Visual
from . import so3
from .tube import mount_pose

SLICES = 16  # per arc: 1 mm error for three arcs of 0.2 m, each bent by 180 degrees

AXES = {'x': (1, 0, 0), 'y': (0, 1, 0), 'z': (0, 0, 1)}
COLORS = {BODY: '0.16 0.56 0.55 1', RIGID: '0.76 0.78 0.81 1', PLATE: '0.36 0.38 0.43 1'}


@dataclass(frozen=True)
class Model:
    """Joints of a robot, parents first: `world`, `base_link`, the segments, `tip`."""

    robot: Robot
    joints: tuple[Joint, ...]
    slices: int

    @property
    def joint_names(self) -> list[str]:
        """The independent joints."""
        return [joint.name for joint in self.joints if joint.kind != 'fixed' and not joint.leader]

    def joint_positions(self, q: Array) -> dict[str, float]:
        """Positions [rad or m] of the independent joints for the coordinates q (nq,)."""
        x = self.robot._model.change.position(np.atleast_2d(np.asarray(q, float)))[0]
        values: dict[str, float] = {}
        for segment in self.robot.description.segments:
            where = self.robot._model.build.rates_of[segment.name]
            values.update(segment.urdf_positions(x[where], self.slices))
        own = dict(zip(self.robot.coordinate_names, x.tolist(), strict=True))
        return {name: values[name] if name in values else own[name] for name in self.joint_names}

    def transforms(self, q: Array) -> Array:
        """X_PC (joints, 4, 4): pose of each child link in its parent, as in tf."""
        positions = self.joint_positions(q)
        moves = np.array(
            [
                j.multiplier * positions.get(j.leader or j.name, 0.0) * np.array(AXES[j.axis])
                for j in self.joints
            ]
        )
        turns = np.array([joint.kind == 'revolute' for joint in self.joints])[:, None]
        X_PC = self._origins.copy()
        X_PC[:, :3, 3] += np.einsum('kij,kj->ki', X_PC[:, :3, :3], np.where(turns, 0.0, moves))
        X_PC[:, :3, :3] = X_PC[:, :3, :3] @ so3.exp(np.where(turns, moves, 0.0))
        return X_PC

    @cached_property
    def _origins(self) -> Array:
        """X_PC of all joints at zero."""
        X_PC = np.tile(np.eye(4), (len(self.joints), 1, 1))
        X_PC[:, :3, :3] = [so3.from_rpy(joint.rpy) for joint in self.joints]
        X_PC[:, :3, 3] = [joint.xyz for joint in self.joints]
        return X_PC


def model(robot: Robot, slices: int = SLICES) -> Model:
    """Create the joints of a robot; each arc has `slices` slices."""
    if slices < 1:
        raise ValueError(f'slices: expected at least 1, got {slices}')
    joints = _base(robot.description)
    for segment in robot.description.segments:
        joints += segment.urdf_joints(slices)
    joints.append(Joint('tip_fixed', 'fixed', 'tip'))
    return Model(robot, tuple(joints), slices)


def to_xml(made: Model, prefix: str = '', parent: str = 'world', macro: bool = False) -> str:
    """Return URDF text; with `macro`, a xacro macro named after the robot, to mount it on a link of another robot."""
    name = made.robot.name
    root = ET.Element('robot', {'name': name})
    target = root
    if macro:
        root.set('xmlns:xacro', 'http://www.ros.org/wiki/xacro')
        mount = made.joints[0]
        params = f"parent:=world prefix:='' xyz:='{_text(mount.xyz)}' rpy:='{_text(mount.rpy)}'"
        target = ET.SubElement(root, 'xacro:macro', {'name': name, 'params': params})
        prefix, parent = '${prefix}', '${parent}'
    for color, rgba in COLORS.items():
        ET.SubElement(
            ET.SubElement(target, 'material', {'name': f'{prefix}{color}'}), 'color', {'rgba': rgba}
        )
    if not macro:
        ET.SubElement(target, 'link', {'name': parent})
    safety = made.robot.description.safety
    for joint in made.joints:
        _joint_xml(target, joint, prefix, parent, (safety.coordinate_limit, safety.rate_limit))
        parent = prefix + joint.child
    if macro:
        origin = target.find('joint/origin')
        assert origin is not None
        origin.attrib.update(xyz='${xyz}', rpy='${rpy}')
    ET.indent(root)
    note = f'<!-- Made from robots/{name}.yaml by python -m tools.urdf: change that file, not this one. -->'
    return f'<?xml version="1.0"?>\n{note}\n{ET.tostring(root, encoding="unicode")}\n'


def _text(values: tuple[float, ...]) -> str:
    return ' '.join(f'{value:.15g}' for value in values)


def _joint_xml(
    target: ET.Element, joint: Joint, prefix: str, parent: str, limits: tuple[float, float]
) -> None:
    link = ET.SubElement(target, 'link', {'name': prefix + joint.child})
    for visual in joint.visuals:
        look = ET.SubElement(link, 'visual')
        ET.SubElement(look, 'origin', {'xyz': _text(visual.xyz), 'rpy': _text(visual.rpy)})
        size = {'radius': _text((visual.radius,)), 'length': _text((visual.length,))}
        ET.SubElement(ET.SubElement(look, 'geometry'), 'cylinder', size)
        ET.SubElement(look, 'material', {'name': prefix + visual.color})
    item = ET.SubElement(target, 'joint', {'name': prefix + joint.name, 'type': joint.kind})
    ET.SubElement(item, 'parent', {'link': parent})
    ET.SubElement(item, 'child', {'link': prefix + joint.child})
    ET.SubElement(item, 'origin', {'xyz': _text(joint.xyz), 'rpy': _text(joint.rpy)})
    if joint.kind == 'fixed':
        return
    ET.SubElement(item, 'axis', {'xyz': _text(AXES[joint.axis])})
    most, speed = (_text((value,)) for value in limits)
    ET.SubElement(item, 'limit', {'lower': f'-{most}', 'upper': most, 'velocity': speed, 'effort': '0'})
    if joint.leader:
        follows = {'joint': prefix + joint.leader, 'multiplier': _text((joint.multiplier,))}
        ET.SubElement(item, 'mimic', follows)


def _base(description: Description) -> list[Joint]:
    """world -> base_link: the mount and the base's own pose, then its six coordinates if it moves."""
    X_RB = mount_pose(description)
    X_RB[:3, 3] += X_RB[:3, :3] @ description.base.position
    X_RB[:3, :3] = X_RB[:3, :3] @ so3.from_rpy(description.base.rpy)
    rpy = Rotation.from_matrix(X_RB[:3, :3]).as_euler('xyz').tolist()
    radius = 1.25 * description.segments[0].display_radius
    stand = Visual(radius, 0.1 * radius, *description.segments[0].plate, PLATE)
    return description.base.urdf_joints(X_RB[:3, 3].round(15).tolist(), rpy, stand)
