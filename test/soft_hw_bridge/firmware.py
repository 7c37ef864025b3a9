"""The reference firmware, compiled for the host."""

from __future__ import annotations

import atexit
import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / 'soft_hw_bridge' / 'pressure' / 'firmware'
WARNINGS = ('-std=c99', '-pedantic', '-Wall', '-Wextra', '-Wconversion', '-Werror')
U32 = 1 << 32
LOWEST, HIGHEST = -60_000, 300_000  # [Pa] range of the valves


def compile_firmware(target: Path, *options: str) -> Path:
    """Compile the firmware and the test hardware; return the library."""
    sources = [str(SOURCES / 'pressure_node.c'), str(HERE / 'firmware_host.c')]
    bounds = f'-DNODE_LOWEST={LOWEST}', f'-DNODE_HIGHEST={HIGHEST}'
    command = ['cc', *WARNINGS, *bounds, *options, f'-I{SOURCES}', *sources, '-o', str(target)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return target


@functools.cache
def _library(channels: int) -> ctypes.CDLL:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = ('-O1', '-shared', '-fPIC', f'-DNODE_CHANNELS={channels}')
    return ctypes.CDLL(str(compile_firmware(Path(folder, 'pressure_node.so'), *options)))


class Firmware:
    """The running firmware for a number of channels. Each number of channels has a single instance."""

    def __init__(self, channels: int, seed: int = 0, t_us: int = 0) -> None:
        self._library = _library(channels)
        self._now, self._seed, self._in_size, self._out_size, self._times_set = (
            ctypes.c_uint32.in_dll(self._library, f'host_{name}')
            for name in ('now_us', 'random', 'in_size', 'out_size', 'times_set')
        )
        numbers = ctypes.c_int32 * channels
        self._sensors = numbers.in_dll(self._library, 'host_pressure')
        self._valves = numbers.in_dll(self._library, 'host_valves')
        letters = ctypes.c_char * 65536
        self._in, self._out = (letters.in_dll(self._library, name) for name in ('host_in', 'host_out'))
        self.start(seed, t_us)

    def start(self, seed: int, t_us: int = 0) -> None:
        """Reset the microcontroller."""
        self._seed.value, self._now.value = seed % U32, t_us % U32
        self._library.pressure_node_start()

    def feed(self, data: bytes, t_us: int) -> bytes:
        """Feed these bytes at a time of the device's clock; return its answer."""
        ctypes.memmove(self._in, data, len(data))
        self._in_size.value, self._now.value = len(data), t_us % U32
        self._library.host_feed()
        return ctypes.string_at(self._out, self._out_size.value)

    def fail(self, code: int) -> bytes:
        """Make the hardware fail; return the answer of the firmware."""
        self._out_size.value = 0
        self._library.pressure_node_fault(code)
        return ctypes.string_at(self._out, self._out_size.value)

    def measure(self, pressure: Sequence[int]) -> None:
        """Set the sensor readings [Pa]."""
        self._sensors[:] = pressure

    @property
    def valves(self) -> list[int]:
        """Set points of the valves [Pa]."""
        return list(self._valves)

    @property
    def times_set(self) -> int:
        """Number of writes to the valves."""
        return self._times_set.value
