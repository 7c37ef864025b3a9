"""Folder of the compiled kernels; it changes whenever a file in a kernel folder changes.

numba checks only the file of the kernel itself. If a kernel uses functions or constants of another file and that file
changes, numba would keep using the old code. This module imports only the standard library, because tools/run.py uses
it before set-up.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

# Every kernel and every module that a kernel imports is in one of these folders; subfolders are not included.
KERNEL_FOLDERS = (
    'soft_control',
    'soft_control/allocation',
    'soft_control/laws',
    'soft_control/safety',
    'soft_dynamics',
    'soft_dynamics/description',
    'soft_dynamics/geometry',
    'soft_dynamics/kernels',
    'soft_dynamics/messages',
    'soft_estimation/inverse_kinematics',
    'soft_estimation/kalman',
)
VARIABLE = 'NUMBA_CACHE_DIR'
HERE = Path(__file__).absolute().parent.parent


def kernel_cache(packages: Path = HERE) -> Path:
    """Return the folder for the kernels of the suite with its packages in `packages`.

    This is in the source tree, where set-up fills it, or otherwise in the cache of the user.
    """
    if (packages / 'package.xml').is_file():
        base = packages / '.cache'
    else:
        base = Path(os.environ.get('XDG_CACHE_HOME') or '~/.cache').expanduser() / 'soft_robot_suite'
    return base / 'numba' / _fingerprint(packages)


def use_kernel_cache() -> None:
    """Make numba, whether loaded or not, use this folder from now on, unless the user chose another one."""
    if os.environ.get(VARIABLE):
        return
    try:
        os.environ[VARIABLE] = str(kernel_cache())
    except RuntimeError:  # the user has no home: numba chooses a folder itself
        return
    if 'numba' in sys.modules:
        sys.modules['numba'].config.reload_config()


def _fingerprint(packages: Path) -> str:
    fingerprint = hashlib.sha256()
    for folder in KERNEL_FOLDERS:
        for path in sorted((packages / folder).glob('*.py')):
            fingerprint.update(f'{folder}/{path.name}\0'.encode() + path.read_bytes())
    return fingerprint.hexdigest()[:16]
