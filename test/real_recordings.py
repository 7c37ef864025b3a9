"""Locate recordings of real robots; docs/real_data.md says how to get them.

The folder is $SOFT_ROBOT_DATA, or `shared/data` beside the project, with one subfolder per robot. Without it pytest
skips the tests.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from source_tree import ROOT

RECORDINGS = Path(os.environ.get('SOFT_ROBOT_DATA') or ROOT.parent / 'shared' / 'data')
needs_recordings = pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason='no recordings of real robots: set SOFT_ROBOT_DATA'
)
