"""How many states of a live estimator come again when the bag of its run is played?

python -m benchmarks.replay [--seconds 8] [--streams poses pressure] [--for-now]

A made bag stands for the rig: it is played to an estimator with `at_samples`, and a recorder takes samples and states.
Then that bag is played to a second estimator, and its states are compared with the recorded ones, stamp by stamp.
With --for-now both estimators are ordinary ones, whose states are predicted to the moment at which they are published:
no two have the same stamp, so that the difference is taken on straight lines between states.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import rclpy
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState

from soft_dynamics.arguments import Array
from soft_dynamics.bags import open_bag
from soft_dynamics.robot import load
from tools.made_bag import RATES, Rig, driven, write_bag

ROBOT = 'honeycomb_arm'
CLOCK, FINE_CLOCK = (
    100.0,
    1000.0,
)  # [Hz] of a played bag; of one that stands for a rig with a clock of its own
START_NS = 1_000_000_000  # of the run, while the filter settles
SAME = 1e-9  # of its size: two numbers that differ by less are the same
PATIENCE, SETTLE, DELAY = (
    180.0,
    2.0,
    4.0,
)  # [s] for a node to compile, for the last messages, for listeners to connect


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


def wait_until_active(name: str) -> None:
    """Raises TimeoutError if a node does not publish within PATIENCE."""
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


def run(source: Path, output: Path, topics: list[str], clock: float, at_samples: bool) -> None:
    """Play `source` to an estimator that publishes on topics[0], and record the topics into `output`."""
    parameters: dict[str, object] = {
        'robot': ROBOT,
        'autostart': 'true',
        'at_samples': str(at_samples).lower(),
    }
    time_of: dict[str, object] = {'use_sim_time': 'true'} if clock else {}
    taken = f'[{", ".join(topics)}]'
    with (
        running('state_estimator', parameters | time_of, f'state:={topics[0]}'),
        running('bag_recorder', {'output': output, 'topics': taken} | time_of),
    ):
        wait_until_active('state_estimator')
        with running('bag_player', {'bag': source, 'clock': clock, 'delay': DELAY}) as player:
            player.wait()
        time.sleep(SETTLE)


def states(path: Path, topic: str) -> dict[int, Array]:
    """Numbers of the states by stamp [ns]."""
    found = {}
    with open_bag(path) as bag:
        for message in bag.messages([topic]):
            s = bag.decode(message)
            stamp_ns = s.header.stamp.sec * 1_000_000_000 + s.header.stamp.nanosec
            found[stamp_ns] = np.concatenate([s.q, s.qd, s.qdd, s.covariance_diagonal])
    return found


def same_stamps(live: dict[int, Array], again: dict[int, Array]) -> str:
    """How many states come again to rounding."""
    both = sorted(live.keys() & again.keys())
    same = [np.allclose(again[k], live[k], rtol=SAME, atol=1e-12) for k in both]
    return f'{len(both)} of the same stamp, {sum(same)} the same'


def between(live: dict[int, Array], again: dict[int, Array]) -> str:
    """How far q and qd of the live states are from those of the others at their stamps, once the filter has settled."""
    stamps = np.array(sorted(live.keys()))
    others = np.array(sorted(again.keys()))
    inside = stamps[(stamps > max(stamps[0], others[0]) + START_NS) & (stamps < others[-1])]
    then = np.stack([again[k] for k in others.tolist()])
    there = np.stack([np.interp(inside, others, column) for column in then.T], 1)
    q, qd, *_ = np.split(there - np.stack([live[k] for k in inside.tolist()]), 4, axis=1)
    parts = [
        f'{name} differs by {1e3 * np.sqrt(np.mean(d**2)):.3g} {unit} rms, {1e3 * np.abs(d).max():.3g} at most'
        for name, d, unit in (('q', q, 'mrad'), ('qd', qd, 'mrad/s'))
    ]
    return f'{inside.size} compared: {"; ".join(parts)}'


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--seconds', type=float, default=8.0, help='of motion')
    parser.add_argument('--streams', nargs='+', choices=RATES, default=['poses', 'pressure'])
    parser.add_argument('--for-now', action='store_true', help='ordinary estimators, without at_samples')
    options = parser.parse_args()
    rclpy.init()
    with tempfile.TemporaryDirectory() as folder:
        robot, where = load(ROBOT), Path(folder)
        motion = driven(robot, options.seconds, 200.0)
        rig = write_bag(where / 'rig', Rig(robot, motion, noise=1e-4), options.streams)
        with open_bag(rig) as bag:
            topics = list(bag.topics)
        at_samples = not options.for_now
        run(rig, where / 'live', ['/state', *topics], 0.0 if at_samples else FINE_CLOCK, at_samples)
        run(where / 'live', where / 'again', ['/state/again'], CLOCK, at_samples)
        live, again = states(where / 'live', '/state'), states(where / 'again', '/state/again')
    found = same_stamps(live, again) if at_samples else between(live, again)
    print(f'{len(live)} states live, {len(again)} again, {found}')
    rclpy.shutdown()


if __name__ == '__main__':
    main()
