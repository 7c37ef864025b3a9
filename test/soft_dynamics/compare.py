"""Comparison of numbers and differentiation of functions of time, for these tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def assert_close(
    actual: ArrayLike, expected: ArrayLike, tolerance: float = 1e-10, scale: float = 0.0
) -> None:
    """Largest difference <= tolerance times the largest expected magnitude (or `scale`, if larger)."""
    wanted = np.asarray(expected, float)
    size = max(scale, float(np.abs(wanted).max()))
    np.testing.assert_allclose(np.asarray(actual, float), wanted, rtol=0, atol=tolerance * size)


def slope(function: Callable[[float], Any], step: float = 1e-3) -> Any:
    """d/dt at t = 0 by five points; the error is of order step^4."""
    near, far = (function(a) - function(-a) for a in (step, 2 * step))
    return (8 * near - far) / (12 * step)
