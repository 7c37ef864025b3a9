"""Pinocchio and MuJoCo in compiled loops: the cost of their algorithms without Python calls."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from numba import njit

from benchmarks.chains import GRAVITY, State, mujoco_model, puj_joints
from benchmarks.measure import Case
from soft_dynamics.array import Array

SOURCE = Path(__file__).with_name('pinocchio_loop.cpp')
CACHE = Path(__file__).resolve().parents[1] / '.cache' / 'benchmarks'
DEFINITIONS = (  # as in Pinocchio's own build
    'PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION',
    'BOOST_MPL_LIMIT_LIST_SIZE=30',
    'BOOST_MPL_LIMIT_VECTOR_SIZE=30',
    'BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS',
    'BOOST_FUSION_INVOKE_MAX_ARITY=12',
)


class PinocchioLoop:
    """The chain in C++; `inverse` and `forward` fill the last of four arrays (count, joints)."""

    def __init__(self, library: Path, segments: int) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.make_chain.restype = ctypes.c_void_p
        axes, masses = zip(*puj_joints(segments), strict=True)
        arrays = np.array(masses), np.array(GRAVITY)
        names = ''.join(axes).encode()
        chain = self._library.make_chain(len(axes), names, *(array.ctypes for array in arrays))
        self._chain = ctypes.c_void_p(chain)

    def case(self, algorithm: str, *arrays: Array) -> Case:
        """Return the loop over states as a case; the arrays must outlive it."""
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        args = (self._chain, len(arrays[0]), *pointers)
        return Case(getattr(self._library, algorithm), args, len(arrays[0]))


def pinocchio_library(say: Callable[[str], None], build: bool) -> Path | None:
    """Return the compiled loop, built now if `build`; None if it is missing or cannot be built."""
    root = next(folder for folder in Path(pin.__file__).parents if (folder / 'include/pinocchio').is_dir())
    key = hashlib.sha256(SOURCE.read_bytes() + f'{root}{pin.__version__}'.encode()).hexdigest()[:12]
    library = CACHE / f'pinocchio_loop_{key}.so'
    if library.exists() or not build:
        return library if library.exists() else None
    compiler = os.environ.get('CXX') or shutil.which('c++') or shutil.which('g++')
    eigen = _eigen()
    if compiler is None or eigen is None:
        say(
            f'no {"C++ compiler" if compiler is None else "Eigen headers"}: the C++ cost of Pinocchio is estimated'
        )
        return None
    say('compiling the C++ loop around Pinocchio, once, about 20 s')
    CACHE.mkdir(parents=True, exist_ok=True)
    options = ['-std=c++17', '-O2', '-w', '-DNDEBUG', '-fPIC', '-shared', f'-I{root}/include', f'-I{eigen}']
    options += [f'-D{definition}' for definition in DEFINITIONS]
    link = [f'-L{root}/lib', '-lpinocchio_default', f'-Wl,-rpath,{root}/lib', '-o', str(library)]
    done = subprocess.run([compiler, *options, str(SOURCE), *link], capture_output=True, text=True)
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if 'error' in line), done.stderr)[:300]
        say(f'the C++ loop does not compile, the C++ cost of Pinocchio is estimated: {reason}')
        return None
    return library


def _eigen() -> Path | None:
    """Return the folder of Eigen's headers, such as those in CasADi's wheel."""
    places = Path(sysconfig.get_path('purelib'), 'casadi/include/eigen3'), Path('/usr/include/eigen3')
    return next((place for place in places if (place / 'Eigen/Core').exists()), None)


@lru_cache
def _mujoco_loop(name: str) -> Any:
    """Return a compiled loop over a function of MuJoCo's C library."""
    path = next(Path(mujoco.__file__).parent.glob('libmujoco.*'))
    function = getattr(ctypes.CDLL(str(path)), name)
    function.argtypes, function.restype = [ctypes.c_size_t, ctypes.c_size_t], None

    @njit
    def loop(model: int, data: int, count: int) -> None:
        for _ in range(count):
            function(model, data)

    return loop


def mujoco_case(name: str, segments: int, state: State, count: int = 1000) -> Case:
    """Return the loop over mj_forward or mj_inverse at the first of the states."""
    model = mujoco_model(segments, 1e-3)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.qacc = state.q[0], state.qd[0], state.qdd[0]
    loop = _mujoco_loop(name)

    def run(count: int) -> tuple[Any, Any]:
        loop(model._address, data._address, count)
        return model, data

    return Case(run, (count,), count)
