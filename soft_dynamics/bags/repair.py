"""Finish a bag after its recorder was killed, which leaves messages without index and metadata."""

from __future__ import annotations

import shutil
from pathlib import Path

from .errors import BagError
from .message_types import register_text, ros_types
from .sealing import seal
from .unindexed_reader import AnyReader
from .writing import STORAGES, NamedWriter, lock

METADATA, ASIDE = 'metadata.yaml', '.finishing'


def unfinished(path: Path) -> Path | None:
    """The storage file of a bag without metadata, or None."""
    if not path.is_dir() or (path / METADATA).exists():
        return None
    files = [file for file in path.iterdir() if file.suffix in ('.mcap', '.db3')]
    return files[0] if len(files) == 1 else None


def repair(path: Path, file: Path) -> int:
    """Finish an unfinished bag; return its number of messages.

    The new files replace the old ones when complete, metadata last. A kill in between leaves
    the bag unfinished as before.
    """
    try:
        held = lock(path)
    except BlockingIOError:
        raise BagError(path, 'is still being recorded') from None
    aside = path / ASIDE
    with held:
        shutil.rmtree(aside, ignore_errors=True)
        try:
            seal(file)
            count = _copy(file, aside)
            (aside / file.name).replace(file)
            (aside / METADATA).replace(path / METADATA)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return count


def _copy(file: Path, path: Path) -> int:
    types, count = ros_types(), 0
    storage = STORAGES['mcap' if file.suffix == '.mcap' else 'sqlite3']
    with AnyReader(file) as reader, NamedWriter(path, storage, file.stem) as writer:
        topics = {}
        for c in reader.connections:
            register_text(types, c.msgtype, c.msgdef.data)
            qos = getattr(c.ext, 'offered_qos_profiles', [])
            topics[c.id] = writer.add_connection(
                c.topic, c.msgtype, typestore=types, offered_qos_profiles=qos
            )
        for c, t_ns, data in reader.messages():
            writer.write(topics[c.id], t_ns, data)
            count += 1
    return count
