"""Recordings as tables: CSV (also gzipped) and c3d."""

from __future__ import annotations

import gzip
import io
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from soft_dynamics.array import Array
from soft_dynamics.atomic_files import read_bounded

from .errors import ImportTrouble
from .mapping import Mapping

LARGEST = 512 * 2**20  # [bytes] of text: an hour of 200 columns at 100 Hz
AXES = ('x', 'y', 'z')


@dataclass(frozen=True)
class Table:
    """Named columns (n,) of a recording; `unit` is that of lengths, if the file states it."""

    path: Path
    names: tuple[str, ...]
    values: Array  # (n, columns)
    rate: float = 0.0  # [Hz] if the file states it
    unit: str = ''
    first_line: int = 1  # line of row 0 in the file; 0 if it has none
    rows: npt.NDArray[np.int64] | None = None  # indices of these rows in the file, if not all

    def columns(self, names: Sequence[str], where: str) -> Array:
        """Return columns (n, len(names)); ImportTrouble that lists the columns if one is missing."""
        missing = [name for name in names if name not in self.names]
        if missing:
            have = ', '.join(self.names) if len(self.names) <= 40 else f'{", ".join(self.names[:40])}, ...'
            raise ImportTrouble(self.path, f'{where}: no column {missing[0]!r}; it has {have}')
        return self.values[:, [self.names.index(name) for name in names]]

    def row(self, k: int) -> str:
        """Return the place of row k, for messages."""
        row = k if self.rows is None else int(self.rows[k])
        return f'line {row + self.first_line}' if self.first_line else f'frame {row}'


def read_table(path: str | Path, mapping: Mapping) -> Table:
    """Read a recording by its ending: .c3d, else text with `mapping.delimiter`, gzipped if it ends in .gz.

    Raises ImportTrouble with file, line and column of what cannot be read.
    """
    path = Path(path)
    if not path.is_file():
        raise ImportTrouble(path, 'no such file')
    return _c3d(path) if path.suffix.lower() == '.c3d' else _text(path, mapping)


def _text(path: Path, mapping: Mapping) -> Table:
    try:
        data = read_bounded(path, LARGEST)
        if path.suffix == '.gz':
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(LARGEST + 1)
            if len(data) > LARGEST:
                raise ValueError(f'it would unpack to more than {LARGEST} bytes')
        text = data.decode('utf-8-sig')
    except (ValueError, EOFError, OSError, zlib.error) as error:  # includes invalid UTF-8
        raise ImportTrouble(path, f'cannot be read as text: {error}') from None
    lines = text.splitlines()
    if not lines:
        raise ImportTrouble(path, 'is empty')
    header = not mapping.names
    names = (
        tuple(cell.strip().strip('"') for cell in lines[0].split(mapping.delimiter))
        if header
        else mapping.names
    )
    repeated = [name for k, name in enumerate(names) if name in names[:k]]
    if repeated:
        raise ImportTrouble(path, f'has two columns {repeated[0]!r}')
    first = 1 if header else 0
    rows = lines[first:]
    while rows and not rows[-1].strip():
        rows.pop()
    if not rows:
        raise ImportTrouble(path, 'has no rows')
    try:
        values = np.loadtxt(io.StringIO('\n'.join(rows)), delimiter=mapping.delimiter, ndmin=2, comments=None)
    except ValueError:
        raise _culprit(path, mapping.delimiter, names, rows, first + 1) from None
    if values.shape != (len(rows), len(names)):
        raise _culprit(path, mapping.delimiter, names, rows, first + 1)
    return Table(path, names, values, first_line=first + 1)


def _culprit(path: Path, delimiter: str, names: Sequence[str], rows: list[str], first: int) -> ImportTrouble:
    """Return an error for the first line that differs from the others in form."""
    for k, row in enumerate(rows):
        cells = row.split(delimiter)
        if len(cells) != len(names):
            return ImportTrouble(path, f'line {k + first}: expected {len(names)} columns, got {len(cells)}')
        for name, cell in zip(names, cells, strict=True):
            try:
                float(cell)
            except ValueError:
                return ImportTrouble(
                    path, f'line {k + first}, column {name!r}: expected a number, got {cell.strip()!r}'
                )
    return ImportTrouble(path, 'cannot be read as numbers')


def _c3d(path: Path) -> Table:
    """Return markers as columns '<marker>.x', '.y', '.z'; NaN where a marker was not seen (residual < 0)."""
    try:
        import c3d
    except ImportError:
        raise ImportTrouble(path, "needs the package c3d: pip install 'soft-robot-suite[bags]'") from None
    try:
        with path.open('rb') as file, warnings.catch_warnings():
            warnings.simplefilter('ignore')  # for files without analog data
            reader = c3d.Reader(file)
            labels = [str(label).strip() for label in reader.point_labels]
            frames = np.array([points for _, points, _ in reader.read_frames()], np.float64)
            units, rate = reader.get('POINT:UNITS'), float(reader.point_rate)
            unit = units.string_value.strip() if units is not None else ''
    except Exception as error:
        raise ImportTrouble(path, f'is damaged or not a c3d file: {error or type(error).__name__}') from None
    if not labels or frames.ndim != 3 or not frames.shape[0]:
        raise ImportTrouble(path, 'has no markers')
    points = np.where(frames[:, : len(labels), 3:4] < 0.0, np.nan, frames[:, : len(labels), :3])
    names = tuple(f'{label}.{axis}' for label in labels for axis in AXES)
    return Table(path, names, points.reshape(len(points), -1), rate, unit, first_line=0)
