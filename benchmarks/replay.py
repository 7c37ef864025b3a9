"""Compare the states of a live estimator with those from the played bag of its run.

python -m benchmarks.replay [--seconds 8] [--streams poses pressure] [--for-now] [--busy 8]

A made bag stands for the rig. It is played to an estimator with `at_samples` while a recorder records samples and
states. That bag is played to a second estimator, and its states are compared with the recorded ones, stamp by stamp.
With --for-now both estimators are ordinary ones, which predict each state to its time of publication. Their stamps
differ, so the states are interpolated linearly. The motion in the bag is known, so the errors of both estimators are
printed too. --busy N runs N compute-bound processes while a bag is played.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import rclpy
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState

from soft_dynamics.array import Array
from soft_dynamics.bags import open_bag
from soft_dynamics.robot import load
from soft_dynamics.simulation.simulate import Trajectory
from tools.made_bag import RATES, START_NS, Rig, driven, write_bag

ROBOT = 'honeycomb_arm'
CLOCK, FINE_CLOCK = (
    100.0,
    1000.0,
)  # [Hz] /clock of a played bag; of one that stands for a rig with its own clock
SETTLED_NS = 1_000_000_000  # at the start, while the filter settles
CLOSE_NS = 20_000_000  # largest gap between two states for interpolation
SAME = 1e-9  # relative difference below which two numbers are equal
PATIENCE, SETTLE, DELAY = (
    180.0,
    2.0,
    4.0,
)  # [s] for a node to compile, for the last messages, for subscribers to connect


@contextmanager
def running(
    executable: str, parameters: dict[str, object], *remaps: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A node of the suite, stopped at the end."""
    options = [x for name, value in parameters.items() for x in ('-p', f'{name}:={value}')]
    options += [x for remap in remaps for x in ('-r', remap)]
    process = subprocess.Popen([executable, '--ros-args', *options])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


@contextmanager
def busy() -> Iterator[None]:
    """A process that only computes."""
    process = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def wait_until_active(name: str) -> None:
    """Wait for a node. Raises TimeoutError if it does not publish within PATIENCE."""
    node, end = rclpy.create_node('replay'), time.monotonic() + PATIENCE
    client = node.create_client(GetState, f'{name}/get_state')
    while time.monotonic() < end:
        if client.wait_for_service(1.0):
            answer = client.call_async(GetState.Request())
            rclpy.spin_until_future_complete(node, answer, timeout_sec=5.0)
            found = answer.result()
            if found and found.current_state.id == State.PRIMARY_STATE_ACTIVE:
                node.destroy_node()
                return
    raise TimeoutError(f'{name} was not active within {PATIENCE:g} s')


def run(source: Path, output: Path, topics: list[str], clock: float, options: argparse.Namespace) -> None:
    """Play `source` to an estimator that publishes on topics[0], and record the topics into `output`."""
    at_samples = str(not options.for_now).lower()
    parameters: dict[str, object] = {'robot': ROBOT, 'autostart': 'true', 'at_samples': at_samples}
    time_of: dict[str, object] = {'use_sim_time': 'true'} if clock else {}
    taken = f'[{", ".join(topics)}]'
    with (
        running('state_estimator', parameters | time_of, f'state:={topics[0]}'),
        running('bag_recorder', {'output': output, 'topics': taken} | time_of),
    ):
        wait_until_active('state_estimator')
        with ExitStack() as stack:
            for _ in range(options.busy):
                stack.enter_context(busy())
            with running('bag_player', {'bag': source, 'clock': clock, 'delay': DELAY}) as player:
                player.wait()
            time.sleep(SETTLE)


class States(NamedTuple):
    """The states of an estimator, in the order of their stamps [ns] (n,)."""

    stamps: npt.NDArray[np.int64]
    q: Array
    qd: Array
    qdd: Array
    variance: Array  # of q, then of qd


def states(path: Path, topic: str) -> States:
    """Read the states of a bag."""
    found = {}
    with open_bag(path) as bag:
        for message in bag.messages([topic]):
            s = bag.decode(message)
            stamp_ns = s.header.stamp.sec * 1_000_000_000 + s.header.stamp.nanosec
            found[stamp_ns] = s.q, s.qd, s.qdd, s.covariance_diagonal
    stamps = sorted(found)
    return States(np.array(stamps), *(np.stack(part) for part in zip(*map(found.get, stamps), strict=True)))


def same_stamps(live: States, again: States) -> str:
    """Return how many states are equal up to rounding."""
    both, here, there = np.intersect1d(live.stamps, again.stamps, return_indices=True)
    same = np.ones(both.size, bool)
    for ours, theirs in zip(live[1:], again[1:], strict=True):
        same &= np.all(np.isclose(theirs[there], ours[here], rtol=SAME, atol=1e-12), axis=1)
    return f'{both.size} of the same stamp, {same.sum()} the same'


def between(live: States, again: States) -> str:
    """Return the difference between the live states and the others at the same stamps, after settling."""
    settled = max(live.stamps[0], again.stamps[0]) + SETTLED_NS
    next_one = np.searchsorted(again.stamps, live.stamps).clip(1, again.stamps.size - 1)
    gap = again.stamps[next_one] - again.stamps[next_one - 1]
    rows = (live.stamps > settled) & (live.stamps < again.stamps[-1]) & (gap < CLOSE_NS)
    there = [_at(live.stamps[rows], again.stamps, part) for part in (again.q, again.qd)]
    return f'{rows.sum()} compared: {_apart(there[0] - live.q[rows], there[1] - live.qd[rows])}'


def from_truth(motion: Trajectory, found: States) -> str:
    """Return the error of states against the motion in the bag, after settling."""
    stamps = START_NS + np.round(motion.t * 1e9).astype(np.int64)
    rows = (found.stamps > found.stamps[0] + SETTLED_NS) & (found.stamps < stamps[-1])
    q, qd = (_at(found.stamps[rows], stamps, part) for part in (motion.q, motion.qd))
    q, qd = found.q[rows] - q, found.qd[rows] - qd
    sigma = np.sqrt(found.variance[rows, : q.shape[1]])
    return (
        f'{_apart(q, qd)}; q at most {np.abs(q / sigma).max(initial=0.0):.2g} of its own standard deviations'
    )


def _at(stamps: npt.NDArray[np.int64], given: npt.NDArray[np.int64], values: Array) -> Array:
    """Interpolate columns of values linearly at other stamps."""
    return np.stack([np.interp(stamps - given[0], given - given[0], column) for column in values.T], 1)


def _apart(q: Array, qd: Array) -> str:
    if not q.size:
        return 'nothing to compare'
    parts = [
        f'{name} differs by {1e3 * np.sqrt(np.mean(d**2)):.3g} {unit} rms, {1e3 * np.abs(d).max():.3g} at most'
        for name, d, unit in (('q', q, 'mrad'), ('qd', qd, 'mrad/s'))
    ]
    return '; '.join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--seconds', type=float, default=8.0, help='length of the motion [s]')
    parser.add_argument('--streams', nargs='+', choices=RATES, default=['poses', 'pressure'])
    parser.add_argument('--for-now', action='store_true', help='use estimators without at_samples')
    parser.add_argument(
        '--busy', type=int, default=0, help='number of compute-bound processes to run meanwhile'
    )
    options = parser.parse_args()
    rclpy.init()
    with tempfile.TemporaryDirectory() as folder:
        robot, where = load(ROBOT), Path(folder)
        motion = driven(robot, options.seconds, 200.0)
        rig = write_bag(where / 'rig', Rig(robot, motion, noise=1e-4), options.streams)
        with open_bag(rig) as bag:
            topics = list(bag.topics)
        run(rig, where / 'live', ['/state', *topics], FINE_CLOCK if options.for_now else 0.0, options)
        run(where / 'live', where / 'again', ['/state/again'], CLOCK, options)
        live, again = states(where / 'live', '/state'), states(where / 'again', '/state/again')
    found = between(live, again) if options.for_now else same_stamps(live, again)
    print(f'{live.stamps.size} states live, {again.stamps.size} again, {found}')
    for name, each in (('live', live), ('again', again)):
        print(f'{name} against the motion in the bag: {from_truth(motion, each)}')
    rclpy.shutdown()


if __name__ == '__main__':
    main()
