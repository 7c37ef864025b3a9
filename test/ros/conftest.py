"""Fixtures for tests with real ROS processes and real clients; all tests in this folder get the marker `ros`.

    def test_echo(ros_process, ros_client_node):
        ros_process('soft_dynamics.nodes.dynamics', params={'robot': 'honeycomb_arm'})
        response = ros_client_node.call(GetState, 'dynamics/get_state', GetState.Request())

ros_process(module, params={}, remap={}, env={}, args=()) -> RosProcess
    Runs `main()` of a module of this work tree as a child process, ended with the test, whatever happens.
    `.stop(SIGTERM)` sends a signal and returns the exit code, `.wait()` only waits for it; `.refusal()` is the
    line of a node that does not start; `.stdout` and `.stderr` are the text so far.

ros_client_node -> ClientNode
    A node in the test process: `.call(type, service, request)` -> response, `.set_parameter(node, name,
    value)` -> result, `.collect(type, topic, qos)` -> a list that grows while spinning, `.announce(type,
    topic, qos)` -> a publisher that has a listener, `.spin_until(condition, what)`. All waits are bounded.

module_ros_process, module_ros_client_node: the same, shared by all tests of a module.

Every run has a ROS domain of its own, keeps discovery on this machine and its logs in a temporary folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rclpy
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.client import Client
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile

from tools.launcher.process import end_with_parent
from tools.run import own_domain

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TIMEOUT = 30.0  # [s] far beyond what an idle machine needs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.ros)


class RosProcess:
    """A node as a child process."""

    def __init__(self, module: str, args: list[str], env: dict[str, str], folder: Path) -> None:
        self._out, self._err = folder / 'stdout', folder / 'stderr'
        name = module.rpartition('.')[2]
        code = f'import sys; sys.argv[0] = {name!r}; from {module} import main; sys.exit(main())'
        with self._out.open('w') as out, self._err.open('w') as err:
            self.process = subprocess.Popen(
                [sys.executable, '-c', code, *args],
                stdout=out,
                stderr=err,
                env=os.environ | env,
                start_new_session=True,
                preexec_fn=end_with_parent,  # one that outlives a killed run speaks in the domain of a later one
            )

    @property
    def stdout(self) -> str:
        return self._out.read_text()

    @property
    def stderr(self) -> str:
        return self._err.read_text()

    def wait(self, timeout: float = TIMEOUT) -> int:
        """Return the exit code."""
        return self.process.wait(timeout)

    def refusal(self) -> str:
        """Return the single error line of a node that does not start."""
        assert self.wait() == 1
        (only,) = self.stderr.splitlines()
        return only

    def stop(self, number: int = signal.SIGINT, timeout: float = TIMEOUT) -> int:
        """Send a signal; return the exit code, negative if SIGKILL was needed."""
        self.process.send_signal(number)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait()

    def kill(self) -> None:
        """End the process and its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


class ClientNode(Node):
    """A node whose waits are all bounded."""

    def __init__(self, executor: SingleThreadedExecutor, context: rclpy.Context) -> None:
        super().__init__(f'test_client_{os.getpid()}', context=context)
        self._spinner = executor
        self._clients_by_name: dict[str, Client] = {}
        executor.add_node(self)

    def spin_until(
        self, condition: Callable[[], Any], what: str = 'condition', timeout: float = TIMEOUT
    ) -> None:
        """Run callbacks until the condition holds. Raises TimeoutError."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f'no {what} within {timeout} s')
            self._spinner.spin_once(timeout_sec=0.05)

    def spin_for(self, duration: float) -> None:
        """Run callbacks for `duration` [s]."""
        deadline = time.monotonic() + duration
        while time.monotonic() < deadline:
            self._spinner.spin_once(timeout_sec=0.05)

    def call(self, srv_type: Any, name: str, request: Any, timeout: float = TIMEOUT) -> Any:
        """Call a service once it is available; return the response."""
        if name not in self._clients_by_name:
            self._clients_by_name[name] = client = self.create_client(srv_type, name)
            self.spin_until(client.service_is_ready, f'service {name}', timeout)
            self.spin_for(0.2)  # servers drop answers to clients known for less than 100 ms
        future = self._clients_by_name[name].call_async(request)
        self.spin_until(future.done, f'answer of {name}', timeout)
        return future.result()

    def set_parameter(self, node: str, name: str, value: Any) -> SetParametersResult:
        """Set a parameter like `ros2 param set`."""
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        return self.call(SetParameters, f'{node}/set_parameters', request).results[0]

    def collect(self, msg_type: Any, topic: str, qos: QoSProfile | int = 10) -> list[Any]:
        """Return a list that collects every message of the topic."""
        messages: list[Any] = []
        self.create_subscription(msg_type, topic, messages.append, qos)
        return messages

    def announce(
        self, msg_type: Any, topic: str, qos: QoSProfile | int = 10, timeout: float = TIMEOUT
    ) -> Publisher:
        """Return a publisher that has a subscriber."""
        publisher = self.create_publisher(msg_type, topic, qos)
        self.spin_until(publisher.get_subscription_count, f'subscription to {topic}', timeout)
        return publisher


@pytest.fixture(scope='session', autouse=True)
def _ros_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Reserve a ROS domain that no other run on the machine uses."""
    search_path = [str(ROOT), str(ROOT / 'test'), os.environ.get('PYTHONPATH', '')]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_DOMAIN_ID', own_domain())
        patch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        patch.setenv('ROS_LOG_DIR', str(tmp_path_factory.mktemp('ros_log')))
        patch.setenv('RCUTILS_COLORIZED_OUTPUT', '0')
        patch.setenv('ROS_PYTHON_CHECK_FIELDS', '1')  # without it rclpy serializes a wrong type as garbage
        patch.setenv('PYTHONPATH', os.pathsep.join(filter(None, search_path)))
        yield


@contextmanager
def _processes(folders: pytest.TempPathFactory) -> Iterator[Callable[..., RosProcess]]:
    started: list[RosProcess] = []

    def start(
        module: str,
        params: dict[str, Any] | None = None,
        remap: dict[str, str] | None = None,
        env: dict[str, str] | None = None,
        args: Sequence[str] = (),
    ) -> RosProcess:
        ros_args = [*args, '--ros-args']
        for name, value in (params or {}).items():
            ros_args += ['-p', f'{name}:={json.dumps(value)}']
        for name, target in (remap or {}).items():
            ros_args += ['-r', f'{name}:={target}']
        started.append(RosProcess(module, ros_args, env or {}, folders.mktemp('process')))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def _client_node() -> Iterator[ClientNode]:
    context = rclpy.Context()
    rclpy.init(context=context)
    with SingleThreadedExecutor(context=context) as executor:
        node = ClientNode(executor, context)
        try:
            yield node
        finally:
            node.destroy_node()
            rclpy.shutdown(context=context)


@pytest.fixture
def ros_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RosProcess]]:
    """Start nodes as child processes."""
    with _processes(tmp_path_factory) as start:
        yield start


@pytest.fixture
def ros_client_node() -> Iterator[ClientNode]:
    """Give the test its own node."""
    with _client_node() as node:
        yield node


@pytest.fixture(scope='module')
def module_ros_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RosProcess]]:
    """Start nodes that all tests of a module share."""
    with _processes(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope='module')
def module_ros_client_node() -> Iterator[ClientNode]:
    """Give all tests of a module one node."""
    with _client_node() as node:
        yield node
