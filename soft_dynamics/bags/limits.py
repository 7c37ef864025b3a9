"""Limits of the unpacked size of bags, so that a file of 98 kB cannot take 3 GB of memory.

The library unpacks whole chunks and messages of any size. This module bounds the size first: a chunk or message may
have LARGEST bytes, and a file may unpack to ALLOWANCE bytes plus RATIO times its size.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from rosbags.rosbag2 import storage_mcap

zstd: Any = vars(storage_mcap)['zstd']  # from Python or a backport, as imported by the library
LARGEST = 256 * 2**20  # [bytes]
ALLOWANCE = 256 * 2**20  # [bytes]
_BLOCK = 2**20
RATIO = 100  # recorded sensor data pack to between a half and a tenth


class Budget:
    """Counts the unpacked bytes of files. Raises ValueError beyond the limit."""

    def __init__(self, *files: Path) -> None:
        self._size = sum(file.stat().st_size for file in files)
        self._most = self._left = ALLOWANCE + RATIO * self._size

    def take(self, count: int) -> None:
        """Count bytes that will be unpacked."""
        self._left -= count
        if count > LARGEST:
            raise ValueError(f'a part would unpack to {count} bytes, expected at most {LARGEST}')
        if self._left < 0:
            raise ValueError(f'{self._size} bytes would unpack to more than {self._most}')


def unpack_file(packed: Path, out: Path, budget: Budget) -> None:
    """Unpack a file packed with zstd."""
    with zstd.open(packed, 'rb') as source, out.open('xb') as target:
        while block := source.read(_BLOCK):
            budget.take(len(block))
            target.write(block)


def unpack_message(data: bytes) -> bytes:
    """Unpack a message packed with zstd. Raises ValueError if it is larger than LARGEST."""
    made = _zstd(data, LARGEST)
    if len(made) > LARGEST:
        raise ValueError(f'a message of {len(data)} bytes would unpack to more than {LARGEST}')
    return made


def _bounded(new: Callable[[], Any]) -> Callable[[bytes, int], bytes]:
    """Decompressor that stops one byte after the declared size; the library then reports an error."""

    def decompress(data: bytes, size: int) -> bytes:
        made: bytes = new().decompress(data, max_length=size + 1)
        return made

    return decompress


_zstd = _bounded(zstd.ZstdDecompressor)
_lz4 = _bounded(import_module('lz4.frame').LZ4FrameDecompressor)  # a dependency of the library
storage_mcap.DECOMPRESSORS.update(zstd=_zstd, lz4=_lz4)  # its own functions do not check the size
