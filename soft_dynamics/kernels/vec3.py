"""Three-vectors as tuples of scalars, 3x3 matrices, rows of a workspace, and sine with cosine.

Inside compiled kernels, tuples stay in registers and are about fifty times faster than `@` on small arrays.
A symmetric matrix is (xx, xy, xz, yy, yz, zz), a general one its nine entries by rows.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

Vec3 = tuple[float, float, float]
Sym3 = tuple[float, float, float, float, float, float]
Mat3 = tuple[float, float, float, float, float, float, float, float, float]

ZERO: Vec3 = (0.0, 0.0, 0.0)

inline: Any = njit(forceinline=True)


@inline
def add(a: Vec3, b: Vec3) -> Vec3:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inline
def sub(a: Vec3, b: Vec3) -> Vec3:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inline
def scale(s: float, a: Vec3) -> Vec3:
    return s * a[0], s * a[1], s * a[2]


@inline
def add_scaled(a: Vec3, s: float, b: Vec3) -> Vec3:
    """a + s b"""
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


@inline
def dot(a: Vec3, b: Vec3) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def cross(a: Vec3, b: Vec3) -> Vec3:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inline
def rotate(R: Mat3, a: Vec3) -> Vec3:
    """R a"""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@inline
def rotate_back(R: Mat3, a: Vec3) -> Vec3:
    """R^T a"""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@inline
def matmul(A: Mat3, B: Mat3) -> Mat3:
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6],
        A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6],
        A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6],
        A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )


@inline
def transpose(A: Mat3) -> Mat3:
    return A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8]


@inline
def sym_full(S: Sym3) -> Mat3:
    """The nine entries of a symmetric matrix."""
    return S[0], S[1], S[2], S[1], S[3], S[4], S[2], S[4], S[5]


@inline
def sym_part(A: Mat3) -> Sym3:
    """The upper triangle of a symmetric matrix."""
    return A[0], A[1], A[2], A[4], A[5], A[8]


@inline
def sym_dot(S: Sym3, a: Vec3) -> Vec3:
    """S a"""
    return (
        S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
        S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
        S[2] * a[0] + S[4] * a[1] + S[5] * a[2],
    )


@inline
def sym_add(S: Sym3, T: Sym3) -> Sym3:
    return S[0] + T[0], S[1] + T[1], S[2] + T[2], S[3] + T[3], S[4] + T[4], S[5] + T[5]


@inline
def sym_add_scaled(S: Sym3, k: float, T: Sym3) -> Sym3:
    """S + k T"""
    return (
        S[0] + k * T[0],
        S[1] + k * T[1],
        S[2] + k * T[2],
        S[3] + k * T[3],
        S[4] + k * T[4],
        S[5] + k * T[5],
    )


@inline
def sym_rotate(R: Mat3, S: Sym3) -> Sym3:
    """R S R^T"""
    return sym_part(matmul(matmul(R, sym_full(S)), transpose(R)))


@inline
def point_inertia(m: float, c: Vec3) -> Sym3:
    """Rotary inertia about the origin of a point mass m at c: m (|c|^2 1 - c c^T)"""
    x, y, z = c
    return m * (y * y + z * z), -m * x * y, -m * x * z, m * (x * x + z * z), -m * y * z, m * (x * x + y * y)


@inline
def add_rows(A: Mat3, s: float, B: Mat3) -> Mat3:
    """A + s B"""
    return (
        A[0] + s * B[0],
        A[1] + s * B[1],
        A[2] + s * B[2],
        A[3] + s * B[3],
        A[4] + s * B[4],
        A[5] + s * B[5],
        A[6] + s * B[6],
        A[7] + s * B[7],
        A[8] + s * B[8],
    )


# Read and write tuples in workspace rows, which pass data between the passes of a recursion.
# Columns of the row of a coordinate in `derivatives`: its twist and two rates of it; then y1, y2, y3 and z.
S, SD, SDD, Y1, Y2, Y3, ZZ, COORDINATE_ROW = 0, 6, 12, 18, 24, 30, 36, 39


@inline
def put3(row, k, a):
    row[k], row[k + 1], row[k + 2] = a


@inline
def get3(row, k):
    return row[k], row[k + 1], row[k + 2]


@inline
def put6(row, k, a):
    put3(row, k, a[0])
    put3(row, k + 3, a[1])


@inline
def get6(row, k):
    return get3(row, k), get3(row, k + 3)


@inline
def put9(row, k, R):
    row[k], row[k + 1], row[k + 2], row[k + 3], row[k + 4], row[k + 5], row[k + 6], row[k + 7], row[k + 8] = R


@inline
def get9(row, k):
    return (
        row[k],
        row[k + 1],
        row[k + 2],
        row[k + 3],
        row[k + 4],
        row[k + 5],
        row[k + 6],
        row[k + 7],
        row[k + 8],
    )


# Sine and cosine together, inline, take a third of the time of two calls into libm.
# Reduction by multiples of pi/2 in three parts, then the minimax polynomials of fdlibm on [-pi/4, pi/4]; the error is
# below 2 units in the last place. Angles beyond FAR go to libm.
FAR = 1.0e5  # [rad]
HALF_PI_1, HALF_PI_2, HALF_PI_3 = (
    1.57079632673412561417,
    6.07710050630396597660e-11,
    2.02226624879595063154e-21,
)


@inline
def sincos(x: float) -> tuple[float, float]:
    """(sin x, cos x)"""
    if not abs(x) < FAR:
        return math.sin(x), math.cos(x)
    turns = math.floor(x * 0.6366197723675814 + 0.5)
    r = ((x - turns * HALF_PI_1) - turns * HALF_PI_2) - turns * HALF_PI_3
    z = r * r
    s = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    s = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * s)
    s = r + r * z * (-1.66666666666666324348e-01 + z * s)
    c = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)
    c = -1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * c)
    c = 1.0 - (0.5 * z - z * z * (4.16666666666666019037e-02 + z * c))
    quarter = int(turns) & 3
    if quarter == 0:
        return s, c
    if quarter == 1:
        return c, -s
    if quarter == 2:
        return -s, -c
    return -c, s
