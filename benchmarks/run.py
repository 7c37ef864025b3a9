"""Time the suite against Pinocchio and MuJoCo on the same chain, in the same run, and print one table.

python -m benchmarks.run [--quick] [--only PATTERN] [--json PATH] [--write-docs]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba

from benchmarks import borrow, calls, control, filters, growth, rollouts, simulation, start
from benchmarks.measure import Settings, load
from benchmarks.table import Row, markdown, text

LIMITS = """
## Known limitations

- **Rollouts on two cores.** The rollouts are independent, but wall time includes what other processes do to either
  core. On a busy machine, OpenMP threads that wait for each other spin, and two threads become far slower than one.
  Set `OMP_WAIT_POLICY=PASSIVE` to avoid this.
- **First answer of the dynamics node.** The node is ready after one to two seconds. In some starts, DDS takes another
  two seconds to match client and service.
- **Shared machines.** Absolute times vary by up to a factor of two between hours. Compare ratios; MuJoCo's rollouts
  show in the same run how much of the second core is available.
"""
METHOD = """
Process-CPU time unless stated otherwise. Candidates run in turns, so that other load on the machine affects them
alike. Values are medians; ± is half the interquartile range; the ratio is the median of the ratios of the turns. A
missed target says by which factor. The chain of 16 joints is the honeycomb arm with free link lengths, half of each
mass at its universal joint, without springs and dampers. Compiled loops run on one core.
"""
HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / 'docs' / 'benchmarks' / 'speed.md'

BENCHMARKS: dict[str, Callable[[Settings], list[Row]]] = {
    'inverse.call': calls.inverse_call,
    'inverse.loop': calls.inverse_loop,
    'forward.call': calls.forward_call,
    'forward.loop': calls.forward_loop,
    'linearize': calls.linearize,
    'borrow': borrow.borrow,
    'arcs.lumped': calls.arcs('lumped', 5e-6),
    'arcs.distributed': calls.arcs('distributed', 15e-6),
    'growth.universal': growth.universal,
    'growth.arcs': growth.arcs,
    'simulate': simulation.simulation,
    'rollouts.steps': rollouts.steps,
    'rollouts.cores': rollouts.cores,
    'control.allocation': control.allocation,
    'control.laws': control.laws,
    'estimation.cycle': filters.cycle,
    'estimation.update': filters.update,
    'start.library': start.library,
    'start.node': start.node,
}
SLOW = 'start.', 'borrow'  # left out with --quick


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    begin = time.perf_counter()

    def say(message: str) -> None:
        print(f'bench {time.perf_counter() - begin:4.0f} s: {message}', file=sys.stderr, flush=True)

    machine, rows = _machine(), []
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    for name in options.names:
        say(name)
        rows += BENCHMARKS[name](Settings(options.quick, say))
    numba.set_num_threads(threads)
    print(f'{text(rows)}\n\n{_summary(machine, rows)}')
    record = {'machine': machine, 'quick': options.quick, 'rows': [row.record for row in rows]}
    options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    if options.write_docs:
        DOCS.write_text(_page(machine, rows), encoding='utf-8')
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.run',
        description=(__doc__ or '').partition('\n')[0],
        epilog=f'{METHOD} Benchmarks: {", ".join(BENCHMARKS)}.',
    )
    parser.add_argument(
        '--quick',
        action='store_true',
        help='take half a minute: fewer repetitions, no C++, no start-up times',
    )
    parser.add_argument(
        '--only', metavar='PATTERN', default='', help='run benchmarks whose name matches, e.g. inverse'
    )
    parser.add_argument(
        '--json',
        metavar='PATH',
        type=Path,
        default=HERE / 'latest.json',
        help='result file; default: %(default)s',
    )
    parser.add_argument('--write-docs', action='store_true', help=f'also write docs/benchmarks/{DOCS.name}')
    options = parser.parse_args(arguments)
    try:
        names = [name for name in BENCHMARKS if not (options.quick and name.startswith(SLOW))]
        options.names = [name for name in names if re.search(options.only, name)]
    except re.error as error:
        parser.error(f'--only: {options.only!r} is not a regular expression: {error}')
    if not options.names:
        parser.error(f'--only: {options.only!r} matches none of {", ".join(names)}')
    if not options.json.parent.is_dir():
        parser.error(f'--json: no folder {options.json.parent}')
    if options.write_docs and (options.quick or options.only):
        parser.error('--write-docs: takes the whole run, without --quick and --only')
    return options


def _machine() -> dict[str, Any]:
    names = [line for line in _lines('/proc/cpuinfo') if line.startswith('model name')]
    packages = 'numpy', 'numba', 'pin', 'mujoco'
    return {
        'processor': names[0].partition(':')[2].strip() if names else platform.processor(),
        'cores': os.cpu_count(),
        'load': load(),
        'python': platform.python_version(),
        **{package: version(package) for package in packages},
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding='utf-8').splitlines() if Path(path).exists() else []


def _summary(machine: dict[str, Any], rows: Sequence[Row]) -> str:
    judged = [row for row in rows if row.target]
    met = sum(row.excess <= 1.0 for row in judged)
    versions = ', '.join(f'{name} {machine[name]}' for name in ('python', 'numpy', 'numba', 'pin', 'mujoco'))
    return (
        f'{met} of {len(judged)} targets met. {machine["processor"]}, {machine["cores"]} cores, '
        f'load at the start {machine["load"]:.1f}; {versions}.'
    )


def _page(machine: dict[str, Any], rows: Sequence[Row]) -> str:
    made = 'CPU time of the library against Pinocchio and MuJoCo. Written by `make bench ARGS=--write-docs`.'
    return f'# Speed\n\n{made}\n{METHOD}\n{markdown(rows)}\n\n{_summary(machine, rows)}\n{LIMITS}'


if __name__ == '__main__':
    sys.exit(main())
