"""What a search may spend, and how it tells how far it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soft_dynamics.files import write_whole
from soft_dynamics.reader import quantity

Report = Callable[[float, str], None]  # part done (0 to 1), and the best so far in words


@dataclass(frozen=True)
class Options:
    """The budget of a search."""

    starts: int = quantity(4, doc='of least_squares: the file, then random ones')
    trials: int = quantity(
        400, doc='runs of the model that jensen and godage may take; steps of particles of mehl'
    )
    seed: int = quantity(0, doc='of everything random')
    storage: str = quantity(
        '',
        doc="jensen: URL of Optuna's storage, sqlite or PostgreSQL; default: a sqlite file beside the output, "
        'or none when called from Python',
    )

    def __post_init__(self) -> None:
        for name, least in (('starts', 1), ('trials', 1), ('seed', 0)):
            if getattr(self, name) < least:
                raise ValueError(f'{name} must be >= {least}, got {getattr(self, name)}')


class Checkpoint:
    """What a search has found so far, in a file that survives a kill; of another problem, it counts as none."""

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        self._path, self._fingerprint = path, fingerprint

    def load(self) -> dict[str, Any]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            saved = json.loads(self._path.read_text(encoding='utf-8'))
        except ValueError:
            return {}
        right = isinstance(saved, dict) and saved.get('problem') == self._fingerprint
        return saved['state'] if right else {}

    def save(self, state: dict[str, Any]) -> None:
        if self._path is None:
            return
        write_whole(self._path, json.dumps({'problem': self._fingerprint, 'state': state}))
