"""Kernel representation of a robot: elements from base to tip, one record each.

An element is a fixed placement, then a joint, then a rigid body on the frame behind the joint. The joint is
one of the primitives below; an arc also has its own mass. Lengths in m, masses in kg, angles in rad.

kind        coordinates                     rates
FIXED       none                            none
REVOLUTE    angle about x, y or z           its rate
PRISMATIC   length along x, y or z          its rate
SWING       unit quaternion (x, y, z, w)    body rates about x and y, no spin about z
BALL        unit quaternion (x, y, z, w)    body rates about x, y, z
ARC         bend u, v [and length h]        their rates
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FIXED, REVOLUTE, PRISMATIC, SWING, BALL, ARC = range(6)
NO_MASS, LUMPED, POINT, DISTRIBUTED = range(4)
NO_BODY, POINT_BODY, RIGID_BODY = range(3)

COORDINATES = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, SWING: 4, BALL: 4}
RATES = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, SWING: 2, BALL: 3}

ELEMENT = np.dtype(
    [
        ('kind', np.int64),
        ('axis', np.int64),  # 0, 1, 2 for x, y, z of a one-axis joint
        ('iq', np.int64),  # first coordinate
        ('iv', np.int64),  # first rate
        ('n', np.int64),  # number of rates
        ('prescribed', np.int64),  # 1: the acceleration is given, the force is computed
        ('shifted', np.int64),  # 1: the joint sits at p in the previous frame
        ('turned', np.int64),  # 1: the joint is turned by R relative to the previous frame
        ('px', np.float64),
        ('py', np.float64),
        ('pz', np.float64),
        ('R', np.float64, (9,)),
        # Body on the frame behind the joint: mass, first moment and rotary inertia about the frame's origin.
        ('body', np.int64),
        ('m', np.float64),
        ('hx', np.float64),
        ('hy', np.float64),
        ('hz', np.float64),
        ('I', np.float64, (6,)),
        # Arc: rest length, own mass, radius, and placement of that mass.
        ('length', np.float64),
        ('arc_mass', np.float64),
        ('radius', np.float64),
        ('placement', np.int64),
        ('points', np.int64),
        # Material of each coordinate: k (q - rest) + k3 (q - rest)^3 + d qd.
        ('material', np.int64),  # 1 if any of the following is nonzero
        ('k', np.float64, (3,)),
        ('k3', np.float64, (3,)),
        ('d', np.float64, (3,)),
        ('rest', np.float64, (3,)),
        # Used in the first element only: number of coordinates and rates of the chain, gravity in the world frame.
        ('nx', np.int64),
        ('nv', np.int64),
        ('one_axis', np.int64),  # 1 if the chain has no swing, ball or arc
        ('gx', np.float64),
        ('gy', np.float64),
        ('gz', np.float64),
    ],
    align=True,
)

# A spring between the rims of two discs, see `disc_springs`.
SPRING = np.dtype(
    [
        ('iq', np.int64),  # first of the five joint angles
        ('length', np.float64),  # of the thread
        ('inner', np.float64, (3,)),  # rim point of the previous disc, in its frame
        ('outer', np.float64, (3,)),  # rim point of this disc, in its frame
        ('k', np.float64),
        ('rest', np.float64),
    ],
    align=True,
)

Elements = npt.NDArray[np.void]

MAX_POINTS = 16


def _gauss_legendre() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Nodes and weights on [0, 1]; row k has the rule with k points."""
    nodes, weights = np.zeros((2, MAX_POINTS + 1, MAX_POINTS))
    for count in range(1, MAX_POINTS + 1):
        x, w = np.polynomial.legendre.leggauss(count)
        nodes[count, :count], weights[count, :count] = 0.5 * (x + 1.0), 0.5 * w
    return nodes, weights


GAUSS_NODES, GAUSS_WEIGHTS = _gauss_legendre()
