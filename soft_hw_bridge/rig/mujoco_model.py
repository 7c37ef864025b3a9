"""Build a MuJoCo model from a robot file, with many more joints than the robot's model has coordinates.

Each segment consists of three pieces, small copies of the segment with its joint [Wang, sec. IV-A.4]:

    arc, universal  half a piece, two crossed hinges (and a slide if it can stretch), half a piece
    hinge           one hinge, then the piece
    disc            one piece: two crossed hinges for the thread, a ball joint for the disc, tendons for the springs

Springs in series: each of the k cuts has k times the stiffness and damping of the segment, so a couple at the tip bends
the segment as the file says. The mass is spread evenly over the pieces, as cylinders; the plant ignores how a model
lumps the mass (placement, joint_mass_fraction, com_distance).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.segments import Segment
from soft_dynamics.segments.rig_parts import CutJoint, DiscOnThread, Hinges, Pieces, RigidBody

CUTS = 3  # per segment
SLENDERNESS = 0.25  # radius over length, for segments without a radius in the file
THREAD_MASS = 1e-3  # of a thread, relative to its disc
STEEL = 7850.0  # [kg/m^3]
TIP_LOAD = 'tip_load'  # name of the body

_HINGE, _SLIDE, _BALL = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_BALL
_CYLINDER, _CAPSULE, _SPHERE = (
    mujoco.mjtGeom.mjGEOM_CYLINDER,
    mujoco.mjtGeom.mjGEOM_CAPSULE,
    mujoco.mjtGeom.mjGEOM_SPHERE,
)
_ROBOT, _OBSTACLE = 1, 2  # contact bits: the robot collides with obstacles, not with itself
X, Y, Z = np.eye(3)
Z_TO_Y = Rotation.from_euler('x', -90, degrees=True)
NO_TURN = Rotation.identity()
_KINDS = {'revolute': _HINGE, 'prismatic': _SLIDE}
_AXES = {'x': X, 'y': Y, 'z': Z}


class Law(NamedTuple):
    """Resistance of a joint of the plant: k x + k3 x^3 + d xd, with x measured from rest."""

    k: float = 0.0
    k3: float = 0.0
    d: tuple[float, ...] = (0.0,)  # of each degree of freedom
    rest: float = 0.0


class Share(NamedTuple):
    """Joints that together rotate or stretch by scale * (q - straight), for a coordinate q of the robot's model."""

    scale: float
    straight: float
    joints: list[str]


class Span(NamedTuple):
    """A stretch of the centerline between two sites whose z axes are its tangents."""

    start: str
    end: str
    s_start: float  # [m] along the body at rest
    s_end: float
    is_tail: bool = False  # from the middle of the last piece of a hinge segment to its end


@dataclass
class Cursor:
    """Start of the next piece: a point of a body, and its arc length."""

    body: Any
    p: Array
    s: float = 0.0


@dataclass
class Blueprint:
    """A model under construction, and its data for the plant."""

    spec: Any
    obstacles: bool
    laws: dict[str, Law] = field(default_factory=dict)  # by joint name
    tendons: dict[str, tuple[float, float]] = field(default_factory=dict)  # stiffness, rest length
    spans: list[Span] = field(default_factory=list)
    frames: dict[str, Cursor] = field(default_factory=dict)  # of the file; a site has the name
    disc_radius: float = 0.0  # of the last disc
    cuts: dict[str, list[Share]] = field(default_factory=dict)  # by segment, in the order of its coordinates

    def compile(self) -> Any:
        """Return the MuJoCo model."""
        model = self.spec.compile()
        for name, law in self.laws.items():
            joint = model.joint(name)
            first = int(joint.dofadr[0])
            model.jnt_stiffness[joint.id] = law.k
            model.dof_damping[first : first + len(law.d)] = law.d
            if law.rest:
                model.qpos_spring[joint.qposadr[0]] = law.rest
        for name, (stiffness, rest_length) in self.tendons.items():
            tendon = model.tendon(name).id
            model.tendon_stiffness[tendon] = stiffness
            model.tendon_lengthspring[tendon] = rest_length
        return model


def blueprint(robot: Description, tip_load: float = 0.0, obstacle: tuple[float, ...] = ()) -> Blueprint:
    """Build the robot in the world of ROS.

    tip_load [kg]: a steel ball at the tip, in addition to the file. obstacle: fixed in the world, a sphere
    (x, y, z, radius) or a capsule (x, y, z of both ends, radius) [m].
    """
    spec = mujoco.MjSpec()
    R_WD = Rotation.from_euler('xyz', robot.mount.rpy)
    spec.option.gravity = R_WD.apply(robot.gravity)
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    plan = Blueprint(spec, bool(obstacle))
    p_WB = robot.mount.position + R_WD.apply(robot.base.position)
    R_WB = R_WD * Rotation.from_euler('xyz', robot.base.rpy)
    base = spec.worldbody.add_body(name='base', pos=p_WB, quat=_quat(R_WB))
    if robot.base.type == 'free':
        base.add_freejoint()
    if robot.base.mass:
        _rigid(base, np.zeros(3), robot.base.mass, robot.base.inertia)
    cursor = Cursor(base, np.zeros(3))
    _frame(plan, cursor, 'base')
    for kind, name in ((mujoco.mjtSensor.mjSENS_FORCE, 'force'), (mujoco.mjtSensor.mjSENS_TORQUE, 'torque')):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname='base')
    for segment in robot.segments:
        parts = segment.rig_parts()
        cursor = _BUILDERS[type(parts)](plan, cursor, segment, parts)
        _frame(plan, cursor, segment.name)
    plan.frames['tip'] = cursor
    for sensor in robot.sensors:
        at, R_FS = plan.frames[sensor.frame], Rotation.from_euler('xyz', sensor.rpy)
        at.body.add_site(name=sensor_site(sensor), pos=at.p + sensor.position, quat=_quat(R_FS))
    mass = robot.tip_load + tip_load
    load = cursor.body.add_body(name=TIP_LOAD, pos=cursor.p, mass=mass, explicitinertial=True)
    load.ipos, load.inertia = np.zeros(3), (ball_inertia(mass),) * 3
    if obstacle:
        _obstacle(spec, obstacle)
    return plan


def sensor_site(sensor: Sensor) -> str:
    """Return the name of the site of a sensor."""
    return f'{sensor.kind} {sensor.name}'


def ball_inertia(mass: float) -> float:
    """Return the moment of inertia of a steel ball about its centre [kg m^2]."""
    radius = (0.75 * mass / (np.pi * STEEL)) ** (1 / 3)
    return float(0.4 * mass * radius**2)


def _quat(R: Rotation) -> Array:
    return np.roll(R.as_quat(), 1)  # MuJoCo has w first


def _frame(plan: Blueprint, at: Cursor, name: str) -> None:
    at.body.add_site(name=name, pos=at.p)
    plan.frames[name] = at


def _site(plan: Blueprint, body: Any, p: Array, R: Rotation = NO_TURN) -> str:
    name = f'site {len(plan.spec.sites)}'
    body.add_site(name=name, pos=p, quat=_quat(R))
    return name


def _cylinder(
    plan: Blueprint, body: Any, p: Array, size: list[float], mass: float, R: Rotation = NO_TURN
) -> None:
    """Add a cylinder along z of R, its centre at p; `size` is radius and half length."""
    geom = body.add_geom(type=_CYLINDER, pos=p, quat=_quat(R), size=[*size, 0.0], mass=mass)
    geom.contype, geom.conaffinity = (_ROBOT, _OBSTACLE) if plan.obstacles else (0, 0)


def _rigid(parent: Any, p: Array, mass: float, inertia: Any = ()) -> None:
    """Fix a body with inertia (xx, yy, zz[, xy, xz, yz]) about its centre to another; by default a ball of steel."""
    if not any(inertia):
        inertia = (ball_inertia(mass),) * 3
    body = parent.add_body(pos=p, mass=mass, ipos=np.zeros(3), explicitinertial=True)
    body.fullinertia = (*inertia, 0.0, 0.0, 0.0)[:6]


def _joint(plan: Blueprint, body: Any, name: str, kind: Any, axis: Array, law: Law) -> None:
    joint = body.add_joint(name=name, type=kind, axis=axis)
    if law.k3 < 0.0:  # beyond its maximum force the spring would be unstable
        top = np.sqrt(law.k / (-3.0 * law.k3))
        joint.limited, joint.range = True, [law.rest - top, law.rest + top]
    plan.laws[name] = law


def _law(joint: CutJoint) -> Law:
    """Return the law of one cut of a joint; all cuts together rotate by scale * (q - straight)."""
    c = joint.scale
    rest = c * (joint.rest - joint.straight)
    return Law(CUTS * joint.k / c**2, CUTS**3 * joint.k3 / c**4, (CUTS * joint.d / c**2,), rest / CUTS)


def _shares(segment: Segment, joints: Sequence[CutJoint]) -> list[Share]:
    """Return what moves each listed coordinate, in the order of the lists in the file."""
    listed = sorted((joint.entry, joint) for joint in joints if joint.entry is not None)
    return [
        Share(joint.scale, joint.straight, [f'{segment.name}_{joint.name}{cut}' for cut in range(CUTS)])
        for _, joint in listed
    ]


def _pieces(plan: Blueprint, cursor: Cursor, segment: Segment, parts: Pieces) -> Cursor:
    """Append the pieces of a segment along z, with its joints in the middle of each."""
    half, mass = segment.length / (2 * CUTS), segment.mass / (2 * CUTS)
    size = [parts.radius or SLENDERNESS * segment.length, half / 2]
    plan.cuts[segment.name] = _shares(segment, parts.joints)
    for cut in range(CUTS):
        _cylinder(plan, cursor.body, cursor.p + 0.5 * half * Z, size, mass)
        body = cursor.body.add_body(pos=cursor.p + half * Z)
        for joint in parts.joints:
            name = f'{segment.name}_{joint.name}{cut}'
            _joint(plan, body, name, _KINDS[joint.kind], _AXES[joint.axis], _law(joint))
        _cylinder(plan, body, 0.5 * half * Z, size, mass)
        end = Cursor(body, half * Z, cursor.s + 2 * half)
        plan.spans.append(Span(_site(plan, cursor.body, cursor.p), _site(plan, body, end.p), cursor.s, end.s))
        cursor = end
    return cursor


def _hinges(plan: Blueprint, cursor: Cursor, s: Segment, parts: Hinges) -> Cursor:
    """Append pieces along y; the centerline runs through their middles."""
    law = _law(parts.joint)
    length = s.length / CUTS
    size = [SLENDERNESS * s.length, length / 2]
    if plan.spans and plan.spans[-1].is_tail:
        start, _, s_start, _, _ = plan.spans.pop()
    else:
        start, s_start = _site(plan, cursor.body, cursor.p, Z_TO_Y), cursor.s
    for cut in range(CUTS):
        turned = Rotation.from_euler('z', parts.offset / CUTS)
        body = cursor.body.add_body(pos=cursor.p, quat=_quat(turned))
        _joint(plan, body, f'{s.name}_{parts.joint.name}{cut}', _HINGE, Z, law)
        _cylinder(plan, body, 0.5 * length * Y, size, s.mass / CUTS, Z_TO_Y)
        middle, s_middle = _site(plan, body, 0.5 * length * Y, Z_TO_Y), cursor.s + 0.5 * length
        plan.spans.append(Span(start, middle, s_start, s_middle))
        cursor = Cursor(body, length * Y, cursor.s + length)
        start, s_start = middle, s_middle
    end = _site(plan, cursor.body, cursor.p, Z_TO_Y)
    plan.spans.append(Span(start, end, s_start, cursor.s, is_tail=True))
    plan.cuts[s.name] = _shares(s, [parts.joint])
    return cursor


def _rigid_body(plan: Blueprint, cursor: Cursor, s: Segment, parts: RigidBody) -> Cursor:
    end = Cursor(cursor.body, cursor.p + s.length * Z, cursor.s + s.length)
    if s.mass:
        _rigid(cursor.body, cursor.p + parts.com, s.mass, parts.inertia)
    if s.length:
        size = [SLENDERNESS * s.length, s.length / 2]
        _cylinder(plan, cursor.body, cursor.p + 0.5 * s.length * Z, size, 0.0)
        sites = _site(plan, cursor.body, cursor.p), _site(plan, cursor.body, end.p)
        plan.spans.append(Span(*sites, cursor.s, end.s))
    return end


def _disc(plan: Blueprint, cursor: Cursor, s: Segment, parts: DiscOnThread) -> Cursor:
    """Append an almost massless thread and a disc; dampers act on their rates as in `simulate`."""
    (_alpha, beta, gamma, psi, phi), radius = parts.damping, parts.radius
    thread = cursor.body.add_body(pos=cursor.p)
    for name, axis in (('x', X), ('y', Y)):
        _joint(plan, thread, f'{s.name}_thread_{name}', _HINGE, axis, Law(d=(beta,)))
    middle, thickness = 0.5 * s.length * Z, 0.02 * radius
    _cylinder(plan, thread, middle, [thickness, s.length / 2], THREAD_MASS * s.mass)
    disc = thread.add_body(pos=s.length * Z, mass=s.mass, ipos=radius * Y, explicitinertial=True)
    disc.inertia = parts.inertia
    _joint(plan, disc, f'{s.name}_disc', _BALL, Z, Law(d=(psi, phi, gamma)))
    _cylinder(plan, disc, radius * Y, [radius, thickness], 0.0)
    end = Cursor(disc, np.zeros(3), cursor.s + s.length)
    inner = parts.inner_radius or plan.disc_radius or radius
    plan.disc_radius = radius
    for k, spring in enumerate(parts.springs):
        rim = np.array([np.sin(spring.angle), 1.0 - np.cos(spring.angle), 0.0])
        tendon = plan.spec.add_tendon(name=f'{s.name}_spring{k}')
        for body, p in ((cursor.body, cursor.p + inner * rim), (disc, radius * rim)):
            tendon.wrap_site(_site(plan, body, p))
        plan.tendons[tendon.name] = (spring.stiffness, spring.rest_length)
    sites = _site(plan, thread, np.zeros(3)), _site(plan, thread, s.length * Z)
    plan.spans.append(Span(*sites, cursor.s, end.s))
    return end


def _obstacle(spec: Any, obstacle: tuple[float, ...]) -> None:
    if len(obstacle) not in (4, 7) or not obstacle[-1] > 0.0:
        raise ValueError(f'obstacle: expected 4 or 7 numbers, the radius last and > 0, got {list(obstacle)}')
    geom = spec.worldbody.add_geom(contype=_OBSTACLE, conaffinity=_ROBOT)
    geom.size = [obstacle[-1], 0.0, 0.0]
    if len(obstacle) == 4:
        geom.type, geom.pos = _SPHERE, obstacle[:3]
    else:
        geom.type, geom.fromto = _CAPSULE, obstacle[:6]


_BUILDERS: dict[type, Any] = {
    Pieces: _pieces,
    Hinges: _hinges,
    RigidBody: _rigid_body,
    DiscOnThread: _disc,
}
