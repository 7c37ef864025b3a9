"""Lets the tests of this folder import what lies beside them, and keeps them on one core."""

import sys
from pathlib import Path

import numba

sys.path.insert(0, str(Path(__file__).parent))
numba.set_num_threads(1)  # a single state gains nothing from more
