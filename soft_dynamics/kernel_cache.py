"""Where numba keeps the compiled kernels: another folder whenever a file in a folder with kernels changes.

numba looks at the file of a kernel only. It would go on using what it compiled from the old text of another file, whose
functions or constants the kernel takes. Nothing but the standard library is imported here, because tools/run.py asks
before set-up.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

# Every kernel and every module that a kernel imports lies in one of these; folders inside them are not meant.
KERNEL_FOLDERS = (
    'soft_control',
    'soft_control/allocation',
    'soft_control/laws',
    'soft_control/safety',
    'soft_dynamics',
    'soft_dynamics/description',
    'soft_dynamics/geometry',
    'soft_dynamics/kernels',
    'soft_estimation/inverse_kinematics',
    'soft_estimation/kalman',
)
VARIABLE = 'NUMBA_CACHE_DIR'
HERE = Path(__file__).absolute().parent.parent


def kernel_cache(packages: Path = HERE) -> Path:
    """Return the folder for the kernels of the suite whose packages lie in `packages`.

    It is in the source tree, where set-up fills it, or else in the user's own cache.
    """
    if (packages / 'package.xml').is_file():
        base = packages / '.cache'
    else:
        base = Path(os.environ.get('XDG_CACHE_HOME') or '~/.cache').expanduser() / 'soft_robot_suite'
    return base / 'numba' / _fingerprint(packages)


def use_kernel_cache() -> None:
    """Let numba, loaded already or not, keep what it compiles from now on there, unless the user named a folder."""
    if os.environ.get(VARIABLE):
        return
    try:
        os.environ[VARIABLE] = str(kernel_cache())
    except RuntimeError:  # the user has no home: numba finds a place by itself
        return
    if 'numba' in sys.modules:
        sys.modules['numba'].config.reload_config()


def _fingerprint(packages: Path) -> str:
    fingerprint = hashlib.sha256()
    for folder in KERNEL_FOLDERS:
        for path in sorted((packages / folder).glob('*.py')):
            fingerprint.update(f'{folder}/{path.name}\0'.encode() + path.read_bytes())
    return fingerprint.hexdigest()[:16]
