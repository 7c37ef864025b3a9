"""What arrays without reference counts save: compiled loops against the same loops with counted arrays."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numba import njit

from benchmarks.calls import LOOP, puj
from benchmarks.measure import Case, Settings, take_turns
from benchmarks.table import Row, Target
from soft_dynamics.kernels import batch_calls, forward_dynamics, inverse_dynamics
from soft_dynamics.kernels.vec3 import inline


@inline
def _itself(array: Any) -> Any:
    return array


def _counted(kernel: Any, **callees: Any) -> Any:
    """Return the function of a kernel with `borrowed` replaced by the identity, and with other callees."""
    function = kernel.py_func
    return FunctionType(function.__code__, {**function.__globals__, 'borrowed': _itself, **callees})


def borrow(settings: Settings) -> list[Row]:
    settings.say('compiling the kernels with counted arrays')
    recursion = njit(error_model='numpy')(_counted(inverse_dynamics.inverse_dynamics_in))
    passes = inline(_counted(forward_dynamics._passes))
    one = njit(error_model='numpy')(_counted(forward_dynamics.forward_dynamics, _passes=passes))
    kernels = {
        'inverse': _counted(batch_calls.inverse_many, inverse_dynamics_in=recursion),
        'forward': _counted(batch_calls.forward_many, forward_dynamics=one),
    }
    rows = []
    for algorithm, kernel in kernels.items():
        ours = puj().loop(algorithm)
        counted = Case(njit(parallel=True, error_model='numpy')(kernel), ours.args, ours.units)
        samples = take_turns([ours, counted], settings.repetitions)
        what = f'{algorithm}, 16 joints, {LOOP}'
        rows.append(Row.against('borrow', what, *samples, 'the same, arrays counted', Target(0.7)))
    return rows
