"""A stand-in for a ROS node: reports how it was started as one JSON line, then waits for a signal.

Options (others are ignored): --exit CODE ends at once; --ignore NAMES (such as INT,TERM) ignores those
signals; --child starts a process of its own that ignores SIGINT; --say TEXT prints to stdout and stderr.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LIFETIME_SECONDS = 60.0  # a forgotten node ends after this time


def option(name: str) -> str | None:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def main() -> int:
    for name in (option('--ignore') or '').split(','):
        if name:
            signal.signal(signal.Signals['SIG' + name], signal.SIG_IGN)
    files = [path for flag, path in itertools.pairwise(sys.argv) if flag == '--params-file']
    report = {
        'pid': os.getpid(),
        'argv': sys.argv[1:],
        'parameters': [Path(path).read_text(encoding='utf-8') for path in files],
        'environment': {key: value for key, value in os.environ.items() if key.startswith(('FAKE_', 'ROS_'))},
    }
    if '--child' in sys.argv:
        usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
        report['child'] = subprocess.Popen([sys.executable, '-IS', '-c', 'import time; time.sleep(60)']).pid
        signal.signal(signal.SIGINT, usual)
    try:
        if text := option('--say'):
            print(f'{text} to stdout', flush=True)
            print(f'{text} to stderr', file=sys.stderr)
        print(json.dumps(report), file=sys.stderr)
        if code := option('--exit'):
            return int(code)
        time.sleep(LIFETIME_SECONDS)
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
    return 0


if __name__ == '__main__':
    sys.exit(main())
