"""tools.move sends the same messages as a user of `ros2`, and its exit code reports the result."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from soft_robot_suite.msg import SoftState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from soft_dynamics.diagnostics import OK, STALE, WARN, Status
from soft_dynamics.ros import diagnostics
from soft_dynamics.ros.conversions import float64s
from soft_dynamics.ros.qos import COMMAND, STATE
from tools import move

Run = Callable[..., tuple[int, str]]


class Arm:
    """A robot and a controller; `reach`, `mode` and `refuse` define its answer to the next reference."""

    def __init__(self, context: rclpy.Context, name: str = 'configuration_controller') -> None:
        self.node = rclpy.create_node(name, context=context)
        self.b, self.mode, self.reason, self.refused = 0.1, 'idle', 'no reference', 0
        self.reach, self.then, self.refuse = 1.0, 'following', False
        self.wanted: list[JointTrajectory] = []
        self.stops, self.stop_succeeds = 0, True
        states = self.node.create_publisher(SoftState, 'state', STATE)
        message = SoftState(names=['a', 'b'])
        self.node.create_timer(0.02, lambda: states.publish(self._filled(message)))
        self.node.create_subscription(JointTrajectory, 'reference/configuration', self._follow, COMMAND)
        self.node.create_service(Trigger, 'pressure/emergency_stop', self._stop)
        self.diagnostics = diagnostics.Diagnostics(self.node, 'arm', {'control': self._status})

    def _filled(self, message: SoftState) -> SoftState:
        message.q = float64s([0.0, self.b])
        return message

    def _follow(self, message: JointTrajectory) -> None:
        self.wanted.append(message)
        self.refused += self.refuse
        if not self.refuse:
            self.b += self.reach * (message.points[0].positions[0] - self.b)
            self.mode, self.reason = self.then, 'a reason'
        self.diagnostics.publish()

    def _status(self) -> Status:
        if self.mode == 'not active':
            return Status(STALE, 'not active')
        level = OK if self.mode == 'following' else WARN
        return Status(level, self.reason, {'mode': self.mode, 'references_refused': self.refused})

    def _stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.stops += 1
        response.success, response.message = self.stop_succeeds, 'vented'
        return response


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Arm]]:
    """Return a function that starts an Arm in a thread."""
    monkeypatch.setattr(diagnostics, '_PERIOD', 0.1)
    monkeypatch.setattr(move, 'REST', 0.2)
    context = rclpy.Context()
    rclpy.init(context=context)
    executor = SingleThreadedExecutor(context=context)

    def started(*args: str) -> Arm:
        arm = Arm(context, *args)
        executor.add_node(arm.node)
        thread.start()
        return arm

    thread = threading.Thread(target=executor.spin)
    try:
        yield started
    finally:
        executor.shutdown()
        thread.join()
        rclpy.shutdown(context=context)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs tools.move and returns its exit code and its output."""

    def run(*args: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, 'argv', ['move', *args])
        code = move.main()
        return code, ''.join(capsys.readouterr())

    return run


def test_a_motion_is_sent_and_its_end_told(start: Callable[..., Arm], run: Run) -> None:
    arm = start()
    assert run('b=0.3', '--time', '0.5') == (0, 'b: wanted 0.300, is 0.300\n')
    (trajectory,) = arm.wanted
    (point,) = trajectory.points
    assert (trajectory.joint_names, point.positions.tolist()) == (['b'], [0.3])
    assert point.time_from_start.nanosec == 500_000_000

    arm.reach = 0.5
    assert run('b=0.7', '--time', '0.5') == (1, 'tools.move: goal not reached\nb: wanted 0.700, is 0.500\n')
    controller = 'tools.move: /configuration_controller'
    arm.refuse = True
    assert run('b=0.7', '--time', '30')[1].startswith(f'{controller} refused the motion')
    arm.refuse, arm.then = False, 'venting'
    assert run('b=0.7', '--time', '30') == (1, f'{controller} does not follow: a reason\n')
    arm.mode = 'not active'
    assert run('b=0.7') == (1, f'{controller} takes no reference: not active\n')
    assert len(arm.wanted) == 4


def test_mistakes_are_one_line(start: Callable[..., Arm], run: Run) -> None:
    arm = start()
    assert run('c=0.3') == (1, 'tools.move: no coordinate c; the robot has a, b\n')
    assert not arm.wanted


def test_a_controller_of_another_kind_is_not_taken_for_the_one_that_is_needed(
    start: Callable[..., Arm], run: Run
) -> None:
    start('task_controller')
    assert run('b=0.3') == (
        1,
        'tools.move: /configuration_controller does not run; running: /task_controller\n',
    )


@pytest.mark.parametrize(
    'args',
    [
        ['b=nan'],
        ['b=inf'],
        ['b'],
        ['b=0.1', '--time', 'inf'],
        ['b=0.1', '--time', '1e10'],
        ['b=0.1', '--stop'],
        [],
    ],
)
def test_what_makes_no_sense_is_not_sent(run: Run, args: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        run(*args)
    assert refused.value.code == 2


def test_the_emergency_stop_is_called(start: Callable[..., Arm], run: Run) -> None:
    arm = start()
    assert run('--stop') == (0, 'vented\n')
    arm.stop_succeeds = False
    assert run('--stop') == (1, 'tools.move: the pressure bridge did not stop: vented\n')
    assert arm.stops >= 2
