"""One check of every array that comes in: what, wanted, got."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def as_array(name: str, value: Any) -> Array:
    """A float64 copy in C order, or a ValueError that names the argument."""
    try:
        array = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f'{name}: expected numbers, got {type(value).__name__} {_brief(value)}') from None
    if not np.all(np.isfinite(array)):
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f'{name}: expected finite numbers, got {array[tuple(where)]} at index {where}')
    return array


def as_states(n: int, **values: Any) -> tuple[dict[str, Array], bool]:
    """Arrays of shape (count, n) from single states (n,) or batches; True if all were single.

    Single states are repeated to the length of the batch. Raises ValueError with expected and actual shape.
    """
    arrays = {name: as_array(name, value) for name, value in values.items()}
    counts = {a.shape[0] for a in arrays.values() if a.ndim == 2}
    for name, a in arrays.items():
        if a.ndim not in (1, 2) or a.shape[-1] != n:
            raise ValueError(f'{name}: expected shape ({n},) or (count, {n}), got {a.shape}')
    if len(counts) > 1:
        shapes = ', '.join(f'{name} {a.shape}' for name, a in arrays.items())
        raise ValueError(f'batches of different lengths: {shapes}')
    count = counts.pop() if counts else 1
    single = all(a.ndim == 1 for a in arrays.values())
    return {name: np.ascontiguousarray(np.broadcast_to(a, (count, n))) for name, a in arrays.items()}, single


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + '...'
