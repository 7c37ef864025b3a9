"""One check of every array that comes in: what, wanted, got."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)


def as_array(name: str, value: Any) -> Array:
    """The value as float64 in C order, itself if it is so already; or a ValueError that names the argument."""
    if (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.flags.carray
        and np.isfinite(value).all()
    ):
        return value
    try:
        given = np.asarray(value)
        if given.dtype.kind not in 'biufO':  # text, dates and complex numbers, which numpy would convert
            raise TypeError
        if given.dtype.kind == 'O' and any(
            entry is None for entry in given.flat
        ):  # not a number to be, but none
            raise TypeError
        array = np.asarray(given, dtype=np.float64, order='C')
        if not array.flags.writeable:  # another type to numba, which would compile every kernel once more
            array = array.copy()
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f'{name}: expected numbers, got {type(value).__name__} {_brief(value)}') from None
    if not np.all(np.isfinite(array)):
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f'{name}: expected finite numbers, got {array[tuple(where)]} at index {where}')
    return array


def are_vectors(n: int, *values: Any) -> bool:
    """True if all are arrays (n,) as compiled code takes them: float64, in C order, aligned and writeable."""
    shape = (n,)
    for a in values:
        if type(a) is not np.ndarray or a.shape != shape or a.dtype != FLOAT64 or not a.flags.carray:
            return False
    return True


def as_states(n: int, **values: Any) -> tuple[dict[str, Array], bool]:
    """Arrays of shape (count, n) from single states (n,) or batches; True if all were single.

    Single states are repeated to the length of the batch. Raises ValueError with expected and actual shape.
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
    """The result, or a ValueError that names the largest of the given states if it is not finite."""
    if math.isfinite(result.sum()) or np.isfinite(result).all():
        return result
    sizes = {name: float(np.abs(a).max(initial=0.0)) for name, a in given.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    raise ValueError(
        f'{largest}: expected numbers that the model can take, got {sizes[largest]:.3g}; {what}: not finite'
    )


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + '...'
