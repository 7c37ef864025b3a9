"""Inverse and forward dynamics of one state by the shortest way from Python into compiled code.

numba's own way in takes longer than inverse dynamics itself: it finds out the types of five arrays and wraps each one.
Here Python calls compiled code directly (METH_FASTCALL) with its objects; that looks at the few words by which it knows
a C-ordered vector of doubles of the right length, and takes nothing else. Where these words are is fixed in CPython and
numpy, and looked up before it is relied on: elsewhere numba's own way is taken.
"""

from __future__ import annotations

import ctypes
import pickle
import struct
import sys
import sysconfig
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import cfunc, extending, types
from numba.np.numpy_support import carray

from .announce import Announced, announcing
from .arguments import Array
from .batch import derivatives_one, forward_one, inverse_one, linearize_one
from .frames import frames_and_jacobian
from .tracking import tracking_forces
from .vec3 import inline

intrinsic: Any = extending.intrinsic
pointer_to: Any = types.CPointer

METH_FASTCALL = 0x80
WANTED_FLAGS = 0x101  # C order and aligned
# Words of a table: what an array of doubles looks like, how long it has to be, what to answer, and the chain.
_TYPE, _DTYPE, _LENGTH, _YES, _NO, _COUNTED, _SIZE, HEADER = 0, 1, 2, 3, 4, 5, 6, 7
# Words of an array object: its type, its numbers, how many axes (half a word), their lengths, type of numbers, flags.
_OB_TYPE, _DATA, _NDIM, _DIMS, _DESCR, _FLAGS, WORDS = 1, 2, 3, 4, 7, 8, 9
_KIND = 3  # word of a type of numbers that holds kind, byte order and number: copies, as pickles bring them, share it


@intrinsic
def _words(typing_context: Any, address: Any) -> Any:
    """The words at an address."""
    pointer = pointer_to(types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.intp), generate


@intrinsic
def _numbers(typing_context: Any, address: Any) -> Any:
    """The doubles at an address."""
    pointer = pointer_to(types.float64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.intp), generate


@inline
def _vector(table: Any, address: Any) -> Any:
    """Where the numbers of an object are, or 0 if it is no vector as wanted."""
    if carray(_words(address), 2)[_OB_TYPE] != table[_TYPE]:
        return 0
    words = carray(_words(address), WORDS)
    if words[_NDIM] & 0xFFFFFFFF != 1 or carray(_words(words[_DESCR]), _KIND + 1)[_KIND] != table[_DTYPE]:
        return 0
    if words[_FLAGS] & WANTED_FLAGS != WANTED_FLAGS or carray(_words(words[_DIMS]), 1)[0] != table[_LENGTH]:
        return 0
    return words[_DATA]


@inline
def _answer(table: Any, good: bool) -> Any:
    """None if it went well, else True, with a reference for the caller."""
    answer = table[_YES] if good else table[_NO]
    carray(_words(answer), 1)[0] += table[_COUNTED]
    return answer


@inline
def _call(kernel: Any, me: int, given: int, count: int) -> Any:
    """What Python calls: `me` is the array with the table, `given` points to `count` objects."""
    start = carray(_words(me), WORDS)[_DATA]
    table = carray(_words(start), HEADER)
    if count != 4:
        return _answer(table, False)
    objects, n = carray(_words(given), 4), table[_LENGTH]
    a, b, c = _vector(table, objects[0]), _vector(table, objects[1]), _vector(table, objects[2])
    d = _vector(table, objects[3])
    if a == 0 or b == 0 or c == 0 or d == 0:
        return _answer(table, False)
    raw = carray(_numbers(start + 8 * HEADER), table[_SIZE])
    q, qd, third = carray(_numbers(a), n), carray(_numbers(b), n), carray(_numbers(c), n)
    return _answer(table, kernel(raw, q, qd, third, carray(_numbers(d), n)) == 0)


def _inverse(me: int, given: int, count: int) -> Any:
    return _call(inverse_one, me, given, count)


def _forward(me: int, given: int, count: int) -> Any:
    return _call(forward_one, me, given, count)


class _MethodDef(ctypes.Structure):
    """PyMethodDef"""

    _fields_ = (
        ('name', ctypes.c_char_p),
        ('function', ctypes.c_void_p),
        ('flags', ctypes.c_int),
        ('doc', ctypes.c_char_p),
    )


@cache
def _definition(function: Callable[..., Any]) -> tuple[_MethodDef, Any]:
    """The definition of a compiled function for Python; the second keeps the code alive."""
    name = function.__name__.removeprefix('_')
    with announcing(f'{name}_dynamics'):
        signature = types.intp(types.intp, types.intp, types.intp)
        compiled: Any = cfunc(signature, cache=True, error_model='numpy')(function)
    return _MethodDef(name.encode(), compiled.address, METH_FASTCALL, None), compiled


@cache
def layout_is_known() -> bool:
    """Whether objects and arrays lie in memory as said above."""
    if sys.implementation.name != 'cpython' or sysconfig.get_config_var('Py_GIL_DISABLED'):
        return False
    if (struct.calcsize('P'), sys.byteorder) != (8, 'little'):
        return False
    sample = np.arange(3.0)
    words = (ctypes.c_int64 * WORDS).from_address(id(sample))
    found = (
        words[_OB_TYPE],
        words[_DATA],
        words[_NDIM] & 0xFFFFFFFF,
        words[_DESCR],
        words[_FLAGS] & WANTED_FLAGS,
    )
    if found != (id(np.ndarray), sample.ctypes.data, 1, id(np.dtype(np.float64)), WANTED_FLAGS):
        return False
    if _kind(pickle.loads(pickle.dumps(sample.dtype))) != _kind(sample.dtype):
        return False
    others = (np.dtype(kind) for kind in ('f4', '>f8', 'f2', 'i8', 'u8', 'c16', 'M8[s]', 'V8', 'O'))
    if any(_kind(other) == _kind(sample.dtype) for other in others):
        return False
    return ctypes.c_int64.from_address(words[_DIMS]).value == sample.size


def _kind(dtype: np.dtype[Any]) -> int:
    return ctypes.c_int64.from_address(id(dtype) + 8 * _KIND).value


def _python_function(function: Callable[..., Any], table: Any) -> Any:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p],
    )
    return new(ctypes.byref(_definition(function)[0]), table, None)


def _compile(kernel: Any, *arguments: Any) -> None:
    """Compile (or load) a kernel for plain states, then let it refuse everything else."""
    if not kernel.overloads:
        Announced(kernel)(*arguments)
    kernel.disable_compile()


class FastCalls:
    """inverse(q, qd, qdd, tau), forward(q, qd, tau, qdd), linearize(q, qd, tau, fixed, A, B) of a chain.

    They write into the last arguments and return nothing or 0; something else, or TypeError, if an argument is not a
    plain state, or the result not a finite one: then the long way says why. qdd comes in as zeros. So do
    track(q, qd, q_r, qd_r, qdd_r, tau), see `tracking_forces`, with the chain without springs and dampers (weighed) and
    without gravity (bare); derivatives(q, qd, qdd, dq, dv, M) of the weighed one; and kinematics(q, X, J), see
    `frames_and_jacobian`, of the frames behind `elements`.
    """

    inverse: Callable[..., Any]
    forward: Callable[..., Any]
    linearize: Callable[..., Any]
    track: Callable[..., Any]
    derivatives: Callable[..., Any]
    kinematics: Callable[..., Any]

    def __init__(
        self, raw: Array, n: int, weighed: Array, bare: Array, elements: npt.NDArray[np.intp]
    ) -> None:
        self._raw, self._n, self._parts, self._elements = raw, n, (weighed, bare), elements
        self.linearize, self.track = self._first_linearize, self._first_track
        self.derivatives, self.kinematics = self._first_derivatives, self._first_kinematics
        if layout_is_known():
            # None and True are counted until 3.12, where they live for ever.
            words = (
                id(np.ndarray),
                _kind(np.dtype(np.float64)),
                n,
                id(None),
                id(True),
                sys.version_info < (3, 12),
                raw.size,
            )
            table = np.concatenate([np.array(words, np.int64), raw.view(np.int64)])
            self.inverse, self.forward = _python_function(_inverse, table), _python_function(_forward, table)
            return
        zero = np.zeros(n)
        for kernel in (inverse_one, forward_one):
            _compile(kernel, raw, zero, zero, zero, zero.copy())
        self.inverse, self.forward = partial(inverse_one, raw), partial(forward_one, raw)

    def _first_linearize(self, *arguments: Any) -> Any:
        n = self._n
        A, B = np.empty((2 * n, 2 * n)), np.empty((2 * n, n))
        _compile(linearize_one, self._raw, *np.zeros((3, n)), np.zeros(0, np.int64), A, B)
        self.linearize = partial(linearize_one, self._raw)
        return self.linearize(*arguments)

    def _first_track(self, *arguments: Any) -> Any:
        _compile(tracking_forces, self._raw, *self._parts, *np.zeros((6, self._n)))
        self.track = partial(tracking_forces, self._raw, *self._parts)
        return self.track(*arguments)

    def _first_derivatives(self, *arguments: Any) -> Any:
        _compile(derivatives_one, self._parts[0], *np.zeros((3, self._n)), *np.empty((3, self._n, self._n)))
        self.derivatives = partial(derivatives_one, self._parts[0])
        return self.derivatives(*arguments)

    def _first_kinematics(self, *arguments: Any) -> Any:
        X, J = np.empty((self._elements.size, 4, 4)), np.empty((6, self._n))
        _compile(frames_and_jacobian, self._raw, self._elements, np.zeros(self._n), X, J)
        self.kinematics = partial(frames_and_jacobian, self._raw, self._elements)
        return self.kinematics(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return FastCalls, (self._raw, self._n, *self._parts, self._elements)
