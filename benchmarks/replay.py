"""How many states of a live estimator come again when the bag of its run is played?

python -m benchmarks.replay [--seconds 8] [--streams poses pressure]

A made bag stands for the rig: it is played to an estimator with `at_samples`, and a recorder takes samples and states.
Then that bag is played to a second estimator, and its states are compared with the recorded ones, stamp by stamp.
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


def run(source: Path, output: Path, topic: str, topics: list[str], clock: float) -> None:
    """Play `source` to an estimator that publishes on `topic`, and record that and `topics` into `output`."""
    parameters = {'robot': ROBOT, 'autostart': 'true', 'at_samples': 'true'}
    parameters |= {'use_sim_time': 'true'} if clock else {}
    taken = f'[{", ".join([topic, *topics])}]'
    with (
        running('state_estimator', parameters, f'state:={topic}'),
        running('bag_recorder', {'output': output, 'topics': taken}),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--seconds', type=float, default=8.0, help='of motion')
    parser.add_argument('--streams', nargs='+', choices=RATES, default=['poses', 'pressure'])
    options = parser.parse_args()
    rclpy.init()
    with tempfile.TemporaryDirectory() as folder:
        robot, where = load(ROBOT), Path(folder)
        motion = driven(robot, options.seconds, 200.0)
        rig = write_bag(where / 'rig', Rig(robot, motion, noise=1e-4), options.streams)
        with open_bag(rig) as bag:
            topics = list(bag.topics)
        run(rig, where / 'live', '/state', topics, 0.0)
        run(where / 'live', where / 'again', '/state/again', [], 100.0)
        live, again = states(where / 'live', '/state'), states(where / 'again', '/state/again')
    both = sorted(live.keys() & again.keys())
    same = [np.allclose(again[k], live[k], rtol=SAME, atol=1e-12) for k in both]
    print(f'{len(live)} states live, {len(again)} again, {len(both)} of the same stamp, {sum(same)} the same')
    rclpy.shutdown()


if __name__ == '__main__':
    main()
