"""Tuples in the rows of a workspace: what one pass of a recursion leaves for the next."""

from __future__ import annotations

from .vec3 import inline

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
