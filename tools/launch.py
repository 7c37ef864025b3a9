#!/usr/bin/env python3
"""Run the XML launch files of the suite without `ros2 launch`; see --help."""

import signal
import sys
from pathlib import Path

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there are nodes to stop
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.launcher.command_line import main  # noqa: E402

if __name__ == '__main__':
    sys.exit(main())
