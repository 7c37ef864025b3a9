"""How far a bag may unpack: who sends 98 kB must not make a reader take 3 GB.

The library unpacks whole chunks and messages of whatever size. Here the size is bounded before, by two rules: a chunk
or message may have LARGEST bytes, and a file may unpack to ALLOWANCE bytes plus RATIO times its size.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from rosbags.rosbag2 import storage_mcap

zstd: Any = vars(storage_mcap)['zstd']  # of Python itself or a backport, as the library found it
LARGEST = 256 * 2**20  # [bytes]
ALLOWANCE = 256 * 2**20  # [bytes]
_BLOCK = 2**20
RATIO = 100  # recorded sensors pack to a half or a tenth


class Budget:
    """Counts what files have unpacked to. Raises ValueError beyond what they may."""

    def __init__(self, *files: Path) -> None:
        self._size = sum(file.stat().st_size for file in files)
        self._most = self._left = ALLOWANCE + RATIO * self._size

    def take(self, count: int) -> None:
        """Note that so many bytes [bytes] will come out of it."""
        self._left -= count
        if count > LARGEST:
            raise ValueError(f'a part would unpack to {count} bytes, expected at most {LARGEST}')
        if self._left < 0:
            raise ValueError(f'{self._size} bytes would unpack to more than {self._most}')


def unpack_file(packed: Path, out: Path, budget: Budget) -> None:
    """A file packed with zstd."""
    with zstd.open(packed, 'rb') as source, out.open('xb') as target:
        while block := source.read(_BLOCK):
            budget.take(len(block))
            target.write(block)


def unpack_message(data: bytes) -> bytes:
    """A message packed with zstd. Raises ValueError if it is larger than LARGEST."""
    made = _zstd(data, LARGEST)
    if len(made) > LARGEST:
        raise ValueError(f'a message of {len(data)} bytes would unpack to more than {LARGEST}')
    return made


def _bounded(new: Callable[[], Any]) -> Callable[[bytes, int], bytes]:
    """A decompressor that ends one byte behind the size that is declared; the library then finds it wrong."""

    def decompress(data: bytes, size: int) -> bytes:
        made: bytes = new().decompress(data, max_length=size + 1)
        return made

    return decompress


_zstd = _bounded(zstd.ZstdDecompressor)
_lz4 = _bounded(import_module('lz4.frame').LZ4FrameDecompressor)  # the library depends on it
storage_mcap.DECOMPRESSORS.update(zstd=_zstd, lz4=_lz4)  # its own do not look at the size
