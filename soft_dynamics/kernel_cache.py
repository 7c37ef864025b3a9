"""Where numba keeps the compiled kernels: another folder whenever a file changes that kernels of others come from.

numba looks at the file of a kernel only: it notices a change there, and would go on using what it compiled from the old
text of another file that the kernel takes functions from. Nothing but the standard library is imported here, because
tools/run.py asks before set-up.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

PACKAGES = ('soft_control', 'soft_dynamics', 'soft_estimation', 'soft_hw_bridge')
KERNEL = re.compile(rb'@(njit|inline|intrinsic)\b|\bELEMENT\b')  # ELEMENT: the layout of what kernels work on
IMPORT = re.compile(rb'^(?:from|import)\s.*?(?:\([^)]*\)|$)', re.MULTILINE)
WORD = re.compile(rb'\w+')
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
    files = {path: path.read_bytes() for package in PACKAGES for path in (packages / package).rglob('*.py')}
    kernels = {path: text for path, text in sorted(files.items()) if KERNEL.search(text)}
    imported = {
        word for text in kernels.values() for line in IMPORT.findall(text) for word in WORD.findall(line)
    }
    fingerprint = hashlib.sha256()
    for path, text in kernels.items():
        if path.stem.encode() in imported:
            fingerprint.update(path.relative_to(packages).as_posix().encode() + b'\0' + text)
    return fingerprint.hexdigest()[:16]
