"""Frames of a chain and how its end moves with the coordinates, in one call: a filter asks whenever it sees poses."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .chain import ELEMENT
from .kinematics import jacobian, poses


@njit(cache=True, error_model='numpy')
def frames_and_jacobian(raw, elements, q, X, J):
    """Write the poses X (k, 4, 4) of the frames behind some elements and the Jacobian J (6, nv) of the last element's.

    raw: the numbers of a chain. Returns False if the result is not finite.
    """
    chain = raw.view(ELEMENT)
    every = np.empty((chain.size, 4, 4))
    poses(chain, q, every)
    for k in range(elements.size):
        X[k] = every[elements[k]]
    jacobian(chain, q, chain.size - 1, J)
    return math.isfinite(X.sum() + J.sum())
