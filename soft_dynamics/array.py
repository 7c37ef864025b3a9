"""Checks of array arguments, with messages that name the argument."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)


def as_array(name: str, value: Any) -> Array:
    """Return the value as float64 in C order, without a copy if possible. Raises ValueError that names the argument."""
    if (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.flags.carray
        and np.isfinite(value).all()
    ):
        return value
    try:
        given = np.asarray(value)
        if given.dtype.kind not in 'biufO':  # numpy would convert text, dates and complex numbers
            raise TypeError
        if given.dtype.kind == 'O' and any(
            entry is None for entry in given.flat
        ):  # None, which numpy would convert to NaN
            raise TypeError
        array = np.asarray(given, dtype=np.float64, order='C')
        if not array.flags.writeable:  # a different type for numba, which would compile every kernel again
            array = array.copy()
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f'{name}: expected numbers, got {type(value).__name__} {_brief(value)}') from None
    if not np.all(np.isfinite(array)):
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f'{name}: expected finite numbers, got {array[tuple(where)]} at index {where}')
    return array


def are_vectors(n: int, *values: Any) -> bool:
    """Return whether all are arrays (n,) that compiled code accepts: float64, C order, aligned and writeable."""
    shape = (n,)
    for a in values:
        if type(a) is not np.ndarray or a.shape != shape or a.dtype != FLOAT64 or not a.flags.carray:
            return False
    return True


def as_states(n: int, **values: Any) -> tuple[dict[str, Array], bool]:
    """Return arrays (count, n) from single states (n,) or batches, and True if all were single.

    Single states are repeated to the length of the batch. Raises ValueError with the expected and the actual shape.
    """
    arrays = {name: as_array(name, value) for name, value in values.items()}
    if all(a.shape == (n,) for a in arrays.values()):
        return {name: a[None] for name, a in arrays.items()}, True
    counts = {a.shape[0] for a in arrays.values() if a.ndim == 2}
    for name, a in arrays.items():
        if a.ndim not in (1, 2) or a.shape[-1] != n:
            raise ValueError(f'{name}: expected shape ({n},) or (count, {n}), got {a.shape}')
    if len(counts) > 1:
        shapes = ', '.join(f'{name} {a.shape}' for name, a in arrays.items())
        raise ValueError(f'batches of different lengths: {shapes}')
    count = counts.pop() if counts else 1
    single = all(a.ndim == 1 for a in arrays.values())
    rows = {name: a.reshape(-1, n) for name, a in arrays.items()}
    return {name: a if len(a) == count else np.repeat(a, count, axis=0) for name, a in rows.items()}, single


def finite(what: str, result: Array, given: Mapping[str, Array]) -> Array:
    """Return the result. Raises ValueError that names the largest of the given states if the result is not finite."""
    if math.isfinite(result.sum()) or np.isfinite(result).all():
        return result
    sizes = {name: float(np.abs(a).max(initial=0.0)) for name, a in given.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    raise ValueError(f'{largest}: too large for the model, got {sizes[largest]:.3g}; {what}: not finite')


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + '...'
