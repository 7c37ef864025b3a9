"""Convert a table and its mapping to stamped samples, and these to a bag."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from soft_dynamics.array import Array
from soft_dynamics.bags import BagError, BagWriter, SampleWriter

from . import mapping as schema
from .errors import ImportTrouble
from .mapping import Mapping
from .tables import AXES, Table

UNIT_TOLERANCE = 1e-2  # [-] largest deviation of a quaternion from unit length
LAST_STAMP = 2**31  # [s] since 1970
REPORTS = 1000  # messages between two calls of the progress callback
MARKER_TOLERANCE = 0.05  # [-] largest relative change of the distances between markers of a rigid body


class Sample(NamedTuple):
    """A future message: `kind` is the method of SampleWriter, `fields` are its arguments after topic and time."""

    t_ns: int
    kind: str
    topic: str
    fields: tuple[Any, ...]


def convert(table: Table, mapping: Mapping) -> list[Sample]:
    """Return all samples in order of time. Raises ImportTrouble with file, line, column and the value found."""
    table, t = _times(table, mapping)
    samples = [
        sample for topic in mapping.topics for sample in _CONVERTERS[type(topic)](table, t, topic, mapping)
    ]
    return sorted(samples, key=lambda sample: sample.t_ns)


def write_bag(
    samples: list[Sample],
    path: str | Path,
    storage: str = 'mcap',
    frame_id: str = 'world',
    progress: Callable[[float], None] | None = None,
) -> int:
    """Write a complete new bag, or none, and return the number of messages. Raises BagError if it exists."""
    path = Path(path)
    if path.exists():
        raise BagError(path, 'exists already')
    if not path.absolute().parent.is_dir():
        raise BagError(path, f'folder {path.parent} does not exist')
    with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix='.import_') as folder:
        with BagWriter(Path(folder, path.name), storage) as bag:
            writer = SampleWriter(bag, frame_id)
            for k, sample in enumerate(samples):
                getattr(writer, sample.kind)(sample.topic, sample.t_ns, *sample.fields)
                if progress is not None and k % REPORTS == 0:
                    progress(k / len(samples))
        Path(folder, path.name).rename(path)
    return len(samples)


# ---- rows ------------------------------------------------------------------------------------------------------------


def _times(table: Table, mapping: Mapping) -> tuple[Table, Array]:
    """Return the selected rows and their times [s] from 0."""
    keep = np.ones(table.values.shape[0], bool)
    for only in mapping.only:
        keep &= table.columns([only.column], 'only')[:, 0] == only.value
        if not np.any(keep):
            raise ImportTrouble(table.path, f'only: no row has {only.column} = {only.value:g}')
    rows = np.flatnonzero(keep)
    if mapping.time.column:
        t = table.columns([mapping.time.column], 'time')[rows, 0] * schema.TIME_UNITS[mapping.time.unit]
        _check_rising(table, mapping.time.column, rows, t)
        t = t - t[0]
    else:
        rate = mapping.time.rate or table.rate
        if not rate > 0.0:
            raise ImportTrouble(table.path, 'time: the mapping needs a column of times or a rate')
        t = (rows - rows[0]) / rate
    if not t[-1] < LAST_STAMP - 1e-9 * mapping.start_ns:
        raise ImportTrouble(
            table.path, f'time: the recording would last {t[-1]:.3g} s, beyond 2038, where stamps end'
        )
    return replace(table, values=table.values[rows], rows=rows), t


def _check_rising(table: Table, column: str, rows: Any, t: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(t))
    if bad.size:
        where = f'{table.row(rows[bad[0]])}, column {column!r}'
        raise ImportTrouble(table.path, f'{where}: expected a time, got {t[bad[0]]}')
    back = np.flatnonzero(np.diff(t) <= 0.0)
    if back.size:
        k = int(back[0]) + 1
        raise ImportTrouble(
            table.path,
            f'{table.row(rows[k])}, column {column!r}: time must rise, but {t[k]:g} s follows {t[k - 1]:g} s',
        )


def _values(table: Table, t: Array, topic: Any, names: Any) -> tuple[Any, Array]:
    """Return (rows, values) of some columns, without repeats; drop missing values or raise an error about them."""
    values = table.columns(names, topic.topic)
    good = np.all(np.isfinite(values), 1)
    if not np.all(good) and topic.missing == 'refuse':
        k = int(np.argmin(good))
        name = names[int(np.argmin(np.isfinite(values[k])))]
        raise ImportTrouble(
            table.path,
            f'{table.row(k)}, column {name!r}: expected a number, got {values[k][np.argmin(np.isfinite(values[k]))]}; '
            '`missing: drop` drops such samples',
        )
    if not np.any(good):
        raise ImportTrouble(table.path, f'{topic.topic}: no row has all of {", ".join(names)}')
    rows = _fresh(np.flatnonzero(good), t, values, topic.drop_repeats)
    return rows, values[rows]


def _fresh(rows: Any, t: Array, values: Array, longest: float) -> Any:
    """Return rows that differ from the last kept one, or come later than `longest` [s] after it."""
    if longest == 0.0:
        return rows
    kept = [int(rows[0])]
    for k in rows[1:].tolist():
        if t[k] - t[kept[-1]] > longest or np.any(values[k] != values[kept[-1]]):
            kept.append(k)
    return np.array(kept)


def _stamped(mapping: Mapping, topic: Any, t: Array, fields: Iterable[tuple[Any, ...]]) -> Iterator[Sample]:
    stamps = mapping.start_ns + np.round(t * 1e9).astype(np.int64)
    name = f'/{topic.topic.lstrip("/")}'
    return (Sample(t_ns, topic.type, name, row) for t_ns, row in zip(stamps.tolist(), fields, strict=True))


# ---- topics ----------------------------------------------------------------------------------------------------------


def _pressures(table: Table, t: Array, topic: schema.Pressures, mapping: Mapping) -> Iterator[Sample]:
    if topic.constants:
        rows, values = np.arange(t.size), np.tile(topic.constants, (t.size, 1))
    else:
        rows, values = _values(table, t, topic, topic.columns)
    pressure = values * schema.PRESSURE_UNITS[topic.unit]
    return _stamped(mapping, topic, t[rows], ((topic.chambers, row) for row in pressure))


def _wrench(table: Table, t: Array, topic: schema.Wrench, mapping: Mapping) -> Iterator[Sample]:
    rows, values = _values(table, t, topic, (*topic.torque, *topic.force))
    units = schema.TORQUE_UNITS[topic.torque_unit], schema.FORCE_UNITS[topic.force_unit]
    return _stamped(mapping, topic, t[rows], ((row,) for row in values * np.repeat(units, 3)))


def _joints(table: Table, t: Array, topic: schema.Joints, mapping: Mapping) -> Iterator[Sample]:
    rows, values = _values(table, t, topic, topic.columns)
    angle = values * schema.ANGLE_UNITS[topic.unit]
    return _stamped(mapping, topic, t[rows], ((topic.names, row) for row in angle))


def _point(table: Table, t: Array, topic: schema.Point, mapping: Mapping) -> Iterator[Sample]:
    _check_unit(table, topic)
    names = topic.position or tuple(f'{topic.marker}.{axis}' for axis in AXES)
    rows, values = _values(table, t, topic, names)
    _, p_W = _to_world(mapping, values * schema.LENGTH_UNITS[topic.unit])
    return _stamped(mapping, topic, t[rows], ((row,) for row in p_W))


def _pose(table: Table, t: Array, topic: schema.Pose, mapping: Mapping) -> Iterator[Sample]:
    _check_unit(table, topic)
    if topic.markers:
        names = tuple(f'{marker}.{axis}' for marker in topic.markers for axis in AXES)
        rows, values = _values(table, t, topic, names)
        R, p = _rigid(table, t[rows], values.reshape(len(rows), -1, 3), topic)
    else:
        rows, values = _values(table, t, topic, (*topic.position, *topic.quaternion))
        R, p = _rotations(table, rows, values[:, 3:], topic), values[:, :3]
    R_WF, p_W = _to_world(mapping, p * schema.LENGTH_UNITS[topic.unit])
    R = R_WF * R
    if topic.trust == 'normal':
        R = _least_rotation(R.as_matrix()[:, :, 2])
    return _stamped(mapping, topic, t[rows], zip(R.as_quat(), p_W, strict=True))


def _check_unit(table: Table, topic: Any) -> None:
    if table.unit and table.unit in schema.LENGTH_UNITS and table.unit != topic.unit:
        raise ImportTrouble(
            table.path, f'{topic.topic}: the file is in {table.unit}, but the mapping says {topic.unit}'
        )


def _to_world(mapping: Mapping, p: Array) -> tuple[Rotation, Array]:
    R_WF = Rotation.from_euler('xyz', mapping.world.rpy)
    return R_WF, R_WF.apply(p) + np.array(mapping.world.position)


def _rotations(table: Table, rows: Any, quats: Array, topic: schema.Pose) -> Rotation:
    norms = np.linalg.norm(quats, axis=1)
    bad = np.flatnonzero(np.abs(norms - 1.0) > UNIT_TOLERANCE)
    if bad.size:
        raise ImportTrouble(
            table.path,
            f'{table.row(rows[bad[0]])}, columns {", ".join(topic.quaternion)}: expected a quaternion of length 1, '
            f'got length {norms[bad[0]]:.3g}',
        )
    return Rotation.from_quat(quats)


def _rigid(table: Table, t: Array, points: Array, topic: schema.Pose) -> tuple[Rotation, Array]:
    """Return rotation and centre of the markers; ImportTrouble if they are not a rigid body."""
    middle = points.mean(axis=1)
    arms = points - middle[:, None]
    reference = arms[min(int(np.searchsorted(t, topic.reference)), t.size - 1)]
    sizes, size = np.linalg.norm(arms, axis=2), np.linalg.norm(reference, axis=1)
    moved = np.median(np.abs(sizes - size) / size.max(), axis=0)
    if np.max(moved) > MARKER_TOLERANCE:
        name = topic.markers[int(np.argmax(moved))]
        raise ImportTrouble(
            table.path,
            f'{topic.topic}: marker {name!r} is not fixed to the others; it moves by {100.0 * moved.max():.0f} %',
        )
    U, singular, Vt = np.linalg.svd(np.einsum('kmi,mj->kij', arms, reference))
    if np.any(singular[:, 1] < 1e-6 * singular[:, 0]):
        raise ImportTrouble(
            table.path, f'{topic.topic}: the markers {", ".join(topic.markers)} lie on a line'
        )
    handed = np.linalg.det(U @ Vt)
    U[:, :, 2] *= handed[:, None]
    return Rotation.from_matrix(U @ Vt), middle


def _least_rotation(normals: Array) -> Rotation:
    """Return the rotation from e_z to each normal, turned to point up, about the axis perpendicular to both."""
    n = normals * np.where(normals[:, 2:] < 0.0, -1.0, 1.0)
    quats = np.stack([-n[:, 1], n[:, 0], np.zeros(len(n)), 1.0 + n[:, 2]], 1)
    return Rotation.from_quat(quats)


_CONVERTERS: dict[type, Callable[..., Iterator[Sample]]] = {
    schema.Pressures: _pressures,
    schema.Wrench: _wrench,
    schema.Joints: _joints,
    schema.Point: _point,
    schema.Pose: _pose,
}
