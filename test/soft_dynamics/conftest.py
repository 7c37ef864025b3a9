"""Puts this folder on the import path, for `reference` and `states`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
