"""Budget and progress of a search."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soft_dynamics.atomic_files import read_bounded, write_whole
from soft_dynamics.reader import quantity

CHECKPOINT_SIZE = 64 * 2**20  # [bytes] a thousand particles with a hundred unknowns take 8 MB
Report = Callable[[float, str], None]  # fraction done (0 to 1); text about the best result so far


@dataclass(frozen=True)
class Options:
    """The budget of a search."""

    starts: int = quantity(4, doc='number of starts of least_squares: the file, then random ones')
    trials: int = quantity(400, doc='limit of model runs of jensen and godage, and of particle steps of mehl')
    seed: int = quantity(0, doc='seed of all random numbers')
    storage: str = quantity(
        '',
        doc="jensen: URL of Optuna's storage, sqlite or PostgreSQL; default: a sqlite file beside the output, "
        'or none if called from Python',
    )

    def __post_init__(self) -> None:
        for name, least in (('starts', 1), ('trials', 1), ('seed', 0)):
            if getattr(self, name) < least:
                raise ValueError(f'{name} must be >= {least}, got {getattr(self, name)}')


class Checkpoint:
    """Progress of a search in a file that survives a kill. A damaged or foreign file is ignored."""

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        self._path, self._fingerprint = path, fingerprint

    def load(self) -> dict[str, Any]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            saved = json.loads(read_bounded(self._path, CHECKPOINT_SIZE))
            right = saved['problem'] == self._fingerprint and saved['digest'] == _digest(saved['state'])
        except (ValueError, LookupError, TypeError, RecursionError):
            return {}
        return saved['state'] if right else {}

    def save(self, state: dict[str, Any]) -> None:
        if self._path is None:
            return
        saved = {'problem': self._fingerprint, 'digest': _digest(state), 'state': state}
        write_whole(self._path, json.dumps(saved))


def _digest(state: dict[str, Any]) -> str:
    """Return the checksum that reveals a damaged or foreign file."""
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()
