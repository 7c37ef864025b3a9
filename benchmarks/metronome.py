"""Probe of the machine's own stalls, measured in the same run as a latency.

One process per core, with the highest priority, wakes up every few milliseconds and records how late it was. Late
wake-ups are not caused by the measured code: the host of a virtual machine was busy, or an interrupt took long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np

from soft_dynamics.array import Array

PERIOD = 4e-3  # [s] a shorter period would disturb the measurement
BEATS = 100  # beats between two checks for the end
STALL = 5e-4  # [s] a wake-up this late counts as a stall
PRIORITY = 95
_NS = 1_000_000_000


class Metronomes:
    """Probes on all cores until `stop`; `lateness` [s] of all beats, `stalls` (n, 2) [ns] begin and end."""

    def __init__(self) -> None:
        cores = sorted(os.sched_getaffinity(0))
        command = [sys.executable, '-m', 'benchmarks.metronome']
        self._processes = [
            subprocess.Popen([*command, str(core)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for core in cores
        ]
        self.lateness: Array = np.zeros(0)
        self.stalls = np.zeros((0, 2), np.int64)

    def stop(self) -> None:
        """End the probes and read their results."""
        beats = [np.frombuffer(each.communicate()[0], np.int64).reshape(-1, 2) for each in self._processes]
        due, woke = np.concatenate(beats).T
        self.lateness = (woke - due) / _NS
        late = self.lateness > STALL
        self.stalls = np.stack([due[late], woke[late]], 1)

    def during(self, start_ns: Array, end_ns: Array) -> Array:
        """Return for each interval whether it contains a stall."""
        due, woke = self.stalls.T
        return np.array([np.any((due < b) & (woke > a)) for a, b in zip(start_ns, end_ns, strict=True)], bool)


def beat(core: int) -> None:
    """Write due and actual wake-up times [ns] to stdout when stdin closes."""
    os.sched_setaffinity(0, {core})
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    os.set_blocking(sys.stdin.fileno(), False)
    beats, due, period = [], time.time_ns(), round(PERIOD * _NS)
    while len(beats) % BEATS or sys.stdin.buffer.raw.read(1) is None:  # type: ignore[attr-defined]
        due += period
        time.sleep(max(due - time.time_ns(), 0) / _NS)
        woke = time.time_ns()
        beats.append((due, woke))
        due = max(due, woke - period)
    sys.stdout.buffer.write(np.array(beats, np.int64).tobytes())


if __name__ == '__main__':
    beat(int(sys.argv[1]))
