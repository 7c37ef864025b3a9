"""Three-vectors as tuples of scalars, and the 3x3 blocks the recursions turn.

Tuples stay in registers inside compiled kernels: about fifty times faster there than `@` on small arrays.
A symmetric matrix is (xx, xy, xz, yy, yz, zz), a general one its nine entries by rows.
"""

from __future__ import annotations

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
    """The upper triangle of a matrix known to be symmetric."""
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
