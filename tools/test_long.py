"""Run all tests in their long forms and write the result to docs/benchmarks/test_long.md.

python -m tools.test_long [--seed 1] [PYTEST ARGUMENT ...]

The long forms use more random inputs, all mutations of the air path, and all kills and stops of processes: up to two
hours on two cores. With pytest arguments (`-k air_path`) the page is not written.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs' / 'benchmarks' / 'test_long.md'
PYTEST = ['-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder', '--durations=25']


def run(command: list[str], env: dict[str, str]) -> Iterator[str]:
    """Run a command; yield its lines as they arrive, then its exit code."""
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        yield from process.stdout
        yield str(process.wait())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog='test_long', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--seed', type=int, default=1, help='seed of the random inputs; default 1')
    options, rest = parser.parse_known_args(arguments)
    env = dict(os.environ, SOFT_ROBOT_LONG='1')
    lines = []
    for line in run(
        [sys.executable, '-m', 'pytest', *PYTEST, f'--hypothesis-seed={options.seed}', *rest], env
    ):
        lines.append(line)
        print(line, end='', flush=True)
    code = int(lines.pop())
    if not rest:
        commit = subprocess.check_output(
            ['git', 'describe', '--always', '--dirty'], cwd=ROOT, text=True
        ).strip()
        head = (
            f'# Long tests\n\n`make test-long`, seed {options.seed}, commit {commit}, {datetime.date.today()}, '
            f'Python {platform.python_version()}, {os.cpu_count()} cores.\n\n'
        )
        # The end of the output: slowest tests, second tries, failures and the count.
        slowest = max((k for k, line in enumerate(lines) if 'slowest' in line), default=0)
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(f'{head}```text\n{"".join(lines[slowest:])}```\n', encoding='utf-8')
    return code


if __name__ == '__main__':
    raise SystemExit(main())
