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
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ..array import Array
from ..description.robot_description import Arc, Description, Disc, Hinge, Link, Universal
from ..robot import Robot
from . import so3
from .tube import display_radius, mount_pose

SLICES = 16  # per arc: 1 mm error for three arcs of 0.2 m, each bent by 180 degrees

AXES = {'x': (1, 0, 0), 'y': (0, 1, 0), 'z': (0, 0, 1)}
BODY, RIGID, PLATE = 'soft', 'rigid', 'plate'
COLORS = {BODY: '0.16 0.56 0.55 1', RIGID: '0.76 0.78 0.81 1', PLATE: '0.36 0.38 0.43 1'}
STRAIGHT = 1e-9  # [rad] below this bend, the plane of bending is undefined


class Joint(NamedTuple):
    """A joint and its child link; child = parent * origin * motion(multiplier * value of the leader)."""

    name: str
    kind: str  # fixed, revolute or prismatic
    child: str
    axis: str = 'z'
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    leader: str = ''  # for mimic joints
    multiplier: float = 1.0
    visuals: tuple[Visual, ...] = ()


class Visual(NamedTuple):
    """A cylinder along z, centred at xyz in the link's frame."""

    radius: float  # [m]
    length: float  # [m]
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    color: str = BODY


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
        names, values = list(self.robot.coordinate_names), {}
        for segment in self.robot.description.segments:
            if isinstance(segment, Arc):
                first = next(k for k, name in enumerate(names) if name.startswith(f'{segment.name}_'))
                values.update(_arc_positions(segment, x[first : first + 3], self.slices))
        own = dict(zip(names, x.tolist(), strict=True))
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
        joints += _BUILDERS[type(segment)](segment, slices)
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


# ---- the segments --------------------------------------------------------------------------------------------------


def _base(description: Description) -> list[Joint]:
    """world -> base_link: the mount and the base's own pose, then its six coordinates if it moves."""
    X_RB = mount_pose(description)
    X_RB[:3, 3] += X_RB[:3, :3] @ description.base.position
    X_RB[:3, :3] = X_RB[:3, :3] @ so3.from_rpy(description.base.rpy)
    x, y, z = X_RB[:3, 3].round(15).tolist()
    roll, pitch, yaw = Rotation.from_matrix(X_RB[:3, :3]).as_euler('xyz').tolist()
    radius = 1.25 * display_radius(description.segments[0])
    arm = description.segments[0].radius if isinstance(description.segments[0], Disc) else 0.0
    turn = (np.pi / 2, 0.0, 0.0) if isinstance(description.segments[0], Hinge) else (0.0, 0.0, 0.0)
    stand = Visual(radius, 0.1 * radius, (0.0, arm, 0.0), turn, PLATE)
    if description.base.type == 'fixed':
        return [Joint('mount', 'fixed', 'base_link', 'z', (x, y, z), (roll, pitch, yaw), visuals=(stand,))]
    joints = [Joint('mount', 'fixed', 'base_mount', 'z', (x, y, z), (roll, pitch, yaw))]
    for name, kind, axis in zip(
        ('x', 'y', 'z', 'alpha', 'beta', 'gamma'), ['prismatic'] * 3 + ['revolute'] * 3, 'xyzxyz', strict=True
    ):
        joints.append(Joint(f'base_{name}', kind, f'base_{name}_link', axis))
    joints[-1] = joints[-1]._replace(child='base_link', visuals=(stand,))
    return joints


def _arc_positions(s: Arc, x: Array, slices: int) -> dict[str, float]:
    u, v = float(x[0]), float(x[1])
    phi = float(np.hypot(u, v))
    cut = phi / (2.0 * slices)
    values = {
        f'{s.name}_direction': float(np.arctan2(v, u)) if phi > STRAIGHT else 0.0,
        f'{s.name}_bend': cut,
    }
    if s.extensible:
        values[f'{s.name}_slide'] = float(x[2]) / slices * float(np.sinc(cut / np.pi))
    return values


def _arc(s: Arc, slices: int) -> list[Joint]:
    step, radius = s.length / slices, display_radius(s)
    body = Visual(radius, step, (0.0, 0.0, 0.5 * step))
    if s.extensible:  # drawn behind the slide, towards the base
        body = Visual(radius, step, (0.0, 0.0, -0.5 * step))
    joints = [
        Joint(f'{s.name}_direction', 'revolute', f'{s.name}_plane'),
        Joint(f'{s.name}_bend', 'revolute', f'{s.name}_cut0', 'x', visuals=() if s.extensible else (body,)),
    ]
    for k in range(1, slices + 1):
        last = k == slices
        if s.extensible:
            leader = f'{s.name}_slide' if k > 1 else ''
            name = f'{s.name}_slide{k}' if k > 1 else f'{s.name}_slide'
            joints.append(Joint(name, 'prismatic', f'{s.name}_slice{k}', leader=leader, visuals=(body,)))
        joints.append(
            Joint(
                f'{s.name}_bend{k}',
                'revolute',
                f'{s.name}_cut{k}',
                'x',
                xyz=(0.0, 0.0, 0.0 if s.extensible else step),
                leader=f'{s.name}_bend',
                multiplier=1.0 if last else 2.0,
                visuals=() if last or s.extensible else (body,),
            )
        )
    back = Joint(f'{s.name}_back', 'revolute', s.name, leader=f'{s.name}_direction', multiplier=-1.0)
    return [*joints, back._replace(visuals=(Visual(1.03 * radius, 0.1 * radius, color=PLATE),))]


def _link(s: Link, _slices: int) -> list[Joint]:
    look = Visual(display_radius(s), s.length, (0.0, 0.0, -0.5 * s.length), color=RIGID)
    visuals = (look,) if s.length > 0.0 else ()
    return [Joint(f'{s.name}_fixed', 'fixed', s.name, xyz=(0.0, 0.0, s.length), visuals=visuals)]


def _universal(s: Universal, _slices: int) -> list[Joint]:
    half, radius, free = 0.5 * s.length, display_radius(s), s.lengths == 'free'
    before, after = (Visual(radius, half, (0.0, 0.0, z)) for z in (-0.5 * half, 0.5 * half))
    joints = [Joint(f'{s.name}_d1', 'prismatic', f'{s.name}_slide', visuals=(before,))] if free else []
    start = (0.0, 0.0, 0.0 if free else half)
    joints += [
        Joint(f'{s.name}_theta1', 'revolute', f'{s.name}_cross', 'y', start),
        Joint(f'{s.name}_theta2', 'revolute', f'{s.name}_middle', 'x', visuals=(after,)),
    ]
    end = Joint(f'{s.name}_d2', 'prismatic', s.name) if free else Joint(f'{s.name}_fixed', 'fixed', s.name)
    plate = Visual(1.06 * radius, 0.1 * radius, color=PLATE)
    return [*joints, end._replace(xyz=(0.0, 0.0, 0.0 if free else half), visuals=(plate,))]


def _hinge(s: Hinge, _slices: int) -> list[Joint]:
    look = Visual(display_radius(s), s.length, (0.0, 0.5 * s.length, 0.0), (np.pi / 2, 0.0, 0.0))
    turn = (0.0, 0.0, s.offset)
    return [
        Joint(f'{s.name}_theta', 'revolute', f'{s.name}_hinge', rpy=turn, visuals=(look,)),
        Joint(f'{s.name}_fixed', 'fixed', s.name, xyz=(0.0, s.length, 0.0)),
    ]


def _disc(s: Disc, _slices: int) -> list[Joint]:
    names = ('alpha', 'beta', 'gamma', 'psi', 'phi')
    thread = Visual(0.03 * s.radius, s.thread_length, (0.0, 0.0, 0.5 * s.thread_length), color=RIGID)
    disc = Visual(s.radius, 0.08 * s.radius, (0.0, s.radius, 0.0))
    joints = [
        Joint(f'{s.name}_{name}', 'revolute', f'{s.name}_{name}_link', axis)
        for name, axis in zip(names, 'zxzxy', strict=True)
    ]
    joints[1] = joints[1]._replace(visuals=(thread,))
    joints[2] = joints[2]._replace(xyz=(0.0, 0.0, s.thread_length))
    joints[4] = joints[4]._replace(child=s.name, visuals=(disc,))
    return joints


_BUILDERS: dict[type, Any] = {Arc: _arc, Link: _link, Universal: _universal, Hinge: _hinge, Disc: _disc}
