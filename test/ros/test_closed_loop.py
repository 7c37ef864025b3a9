"""The launched loop as processes: whatever it receives and whichever node is killed, the arm ends vented.

A minute of garbage: `ABUSE_SECONDS=60 make test ARGS='test/ros/test_closed_loop.py -k garbage'`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseArray
from ros.abuse import Abuse
from ros.test_controllers import ACTUATION, CONFIGURATION, ROBOT, TASK, change, trajectory
from soft_robot_suite.msg import ChamberPressures, SoftState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.description.safety import Safety
from soft_dynamics.ros.conversions import pose_from_matrix
from soft_dynamics.ros.qos import COMMAND, SENSOR, STATE
from tools.simulation import Ended, Simulation, patient

BRIDGE, ESTIMATOR, MOCAP = 'pressure_bridge', 'state_estimator', 'mocap_bridge'
PATIENCE = 90.0  # [s] for half a dozen processes to start, or one node to restart, on a busy machine
VENTED = 0.02 * ACTUATION.pressure_max  # [Pa]
INFLATED = 0.15 * ACTUATION.pressure_max  # [Pa]
SCHEDULING = 2.0  # [s] by which a busy computer may delay a process
BLACKOUT = 0.3  # [s] default time without sensors after which the estimator falls silent
HELD = trajectory((1.0, [0.25] * 8))  # for ever
ABUSE = float(os.environ.get('ABUSE_SECONDS', '4'))  # [s]
BURST = 1.0  # [s] per burst
LOOK = 0.02  # [s] between two readings of the plant


def held_pose() -> PoseArray:
    """A tip pose that needs pressure, held forever."""
    X_BT = ROBOT.pose(np.full(8, 0.2), 'tip')
    message = PoseArray(poses=[pose_from_matrix(X_BT)])
    message.header.frame_id = 'base_link'
    return message


class Loop:
    """The launch, a publisher of references, and all commands so far."""

    def __init__(self, node: Any, simulation: Simulation, safety: Safety) -> None:
        self.node, self.simulation, self.safety = node, simulation, safety
        self.states: list[SoftState] = node.collect(SoftState, 'state', STATE)
        self.commands: list[ChamberPressures] = node.collect(ChamberPressures, 'pressure/command', COMMAND)
        self.measured: list[ChamberPressures] = node.collect(ChamberPressures, 'pressure/measured', SENSOR)
        self.references = node.create_publisher(JointTrajectory, 'reference/configuration', COMMAND)
        self.poses = node.create_publisher(PoseArray, 'reference/poses', COMMAND)
        self.killed: set[str] = set()  # nodes killed by the tests
        self.not_ours: set[tuple[int, int]] = set()  # stamps of commands that came from no controller

    def until(self, condition: Any, what: str) -> None:
        end = time.monotonic() + PATIENCE
        try:
            while not condition():
                self.simulation.check()
                if time.monotonic() > end:
                    raise TimeoutError(f'no {what} within {PATIENCE} s')
                self.node.spin_for(LOOK)
        except (TimeoutError, Ended) as error:
            raise AssertionError(f'{error}\n{"".join(self.simulation.lines[-30:])}') from None

    def pressure(self) -> float:
        """Return the highest chamber pressure of the plant [Pa], read from the plant instead of a bridge."""
        with self.simulation.rig as rig:
            state = rig.state()
        for name in ('pressure', 'command'):
            values = np.array(state[name])
            assert np.all((values >= -1.0) & (values <= 1.001 * ACTUATION.pressure_max)), (name, values)
        return max(state['pressure'])

    def until_ready(self) -> None:
        """Wait until every node is active."""
        streams = (self.states, self.commands, self.measured)
        for stream in streams:
            stream.clear()
        listens = self.references.get_subscription_count
        self.until(lambda: min(map(len, streams)) > 10 and listens(), 'loop')

    def stays_vented(self, commands: int = 50) -> bool:
        """Watch the plant during this many commands, with every node active."""
        self.until_ready()
        last = len(self.commands) + commands
        highest = 0.0

        def seen() -> bool:
            nonlocal highest
            highest = max(highest, self.pressure())
            return highest > VENTED or len(self.commands) > last

        self.until(seen, f'{commands} commands')
        return highest <= VENTED

    def inflate(self) -> None:
        """Publish a reference until the arm is inflated; a busy machine may need several tries."""
        told = -np.inf

        def inflated() -> bool:
            nonlocal told
            if time.monotonic() - told > 5.0:
                told = time.monotonic()
                self.references.publish(HELD)
                self.poses.publish(held_pose())  # for whichever controller is active
            return self.pressure() > INFLATED

        self.until(inflated, 'pressure')

    def kill(self, node: str) -> None:
        self.killed.add(node)
        self.simulation.kill(node)

    def kill_inflated(self, node: str) -> float:
        """Kill a node while the arm is inflated under further commands; return the time.

        On a busy computer the arm may vent before the kill, which is safe but tests nothing: then try again.
        """
        for _ in range(5):
            self.inflate()
            self.node.spin_for(0.05)  # the newest command
            if self.pressure() > INFLATED and max(self.commands[-1].pressure) > INFLATED:
                self.kill(node)
                return time.monotonic()
        raise AssertionError(f'the arm does not stay inflated\n{"".join(self.simulation.lines[-30:])}')

    def until_vented(self, killed: str, t: float) -> None:
        """Wait until the arm is vented, and check that this came in time after a node died at time t."""
        self.until(lambda: self.pressure() < VENTED, f'vented arm after the death of {killed}')
        noticed = max(self.safety.state_timeout + BLACKOUT * (killed == MOCAP), self.safety.command_timeout)
        allowed = noticed + self.safety.vent_time + 5.0 * ACTUATION.valve_lag + SCHEDULING
        assert time.monotonic() - t < allowed

    def check(self) -> None:
        """No command ever exceeded the limits, and only the tests killed nodes: other deaths would vent, too."""
        died = {death.split()[0] for death in self.simulation.deaths}
        assert died <= self.killed, ''.join(self.simulation.lines[-60:])
        stamps = [(command.header.stamp.sec, command.header.stamp.nanosec) for command in self.commands]
        ours = [
            c.pressure for c, stamp in zip(self.commands, stamps, strict=True) if stamp not in self.not_ours
        ]
        p = np.array(ours)
        assert p.size
        assert np.all(np.isfinite(p))
        assert np.all((p >= ACTUATION.pressure_min) & (p <= ACTUATION.pressure_max))


@pytest.fixture(scope='module')
def loop(module_ros_client_node: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    robot = patient(ROBOT.name, tmp_path_factory.mktemp('robot'))
    with Simulation(robot=robot, rate=50, shape='false', standby='task') as simulation:
        yield Loop(module_ros_client_node, simulation, load_description(str(robot)).safety)


def test_nothing_is_inflated_before_a_reference_and_the_arm_follows_one(loop: Loop) -> None:
    loop.until_ready()
    assert loop.pressure() < VENTED
    assert not any(any(command.pressure) for command in loop.commands)
    loop.inflate()
    loop.until(lambda: max(np.abs(loop.states[-1].q)) > 0.1, 'bend')
    loop.check()


@pytest.mark.parametrize(('controller', 'other'), [(CONFIGURATION, TASK), (TASK, CONFIGURATION)])
def test_garbage_never_makes_a_command_outside_the_limits(loop: Loop, controller: str, other: str) -> None:
    """Bursts of garbage on all topics, each with the arm inflated; then the other controller takes over."""
    loop.until_ready()
    first = len(loop.simulation.lines)
    for burst in range(max(round(0.5 * ABUSE / BURST), 1)):
        loop.inflate()
        abuse = Abuse(loop.node, burst)
        abuse.begin()
        end = time.monotonic() + BURST
        while time.monotonic() < end:
            abuse.once()
            loop.node.spin_for(0.02)
            loop.pressure()
        abuse.end()
        loop.not_ours |= abuse.pressures
        loop.check()
        activate_bridge_again(loop)  # it heard two publishers of commands, and stays vented until reactivated
        loop.until_ready()
    said = ''.join(loop.simulation.lines[first:])
    assert 'reference refused' in said
    assert any(f'state {fault}' in said for fault in ('has', 'is not finite', 'jumps'))
    assert 'Traceback' not in said
    change(loop.node, controller, 'deactivate')
    change(loop.node, other, *(['configure'] if other == TASK else []), 'activate')


def stop_and_activate_bridge_again(loop: Loop) -> None:
    """The controller must notice empty chambers by measurement: the bridge has forgotten its stop."""
    lines = loop.simulation.lines
    first = len(lines)
    assert loop.node.call(Trigger, 'pressure/emergency_stop', Trigger.Request()).success
    loop.until(lambda: any('chambers stay empty' in line for line in lines[first:]), 'controller to notice')
    activate_bridge_again(loop)


def activate_bridge_again(loop: Loop) -> None:
    change(loop.node, BRIDGE, 'deactivate', 'activate')


def restart_terminal(loop: Loop) -> None:
    with loop.simulation.rig as rig:
        rig.fault('pressure', restart=True)


@pytest.mark.parametrize('event', [activate_bridge_again, restart_terminal, stop_and_activate_bridge_again])
def test_after_trouble_with_the_valves_the_old_reference_is_dead(loop: Loop, event: Any) -> None:
    loop.until_ready()
    loop.inflate()
    event(loop)
    loop.until(lambda: loop.pressure() < VENTED, 'vented arm')
    assert loop.stays_vented()
    loop.check()
    loop.inflate()  # the controller follows a new one


def test_without_the_rig_everything_ends(loop: Loop) -> None:
    loop.kill('virtual_rig')
    assert loop.simulation.process.wait(PATIENCE) == 1
    loop.check()


@pytest.fixture(scope='module')
def shipped(module_ros_client_node: Any) -> Iterator[Loop]:
    """The loop with the limits of the robot file; it starts after the tests of the patient loop have ended."""
    with Simulation(robot=ROBOT.name, rate=50, shape='false', ft='none') as simulation:
        yield Loop(module_ros_client_node, simulation, ROBOT.description.safety)


@pytest.mark.parametrize('node', [ESTIMATOR, MOCAP, BRIDGE, CONFIGURATION])
def test_a_node_killed_in_motion_ends_vented(shipped: Loop, node: str) -> None:
    """The arm vents in time, and restarted nodes leave it vented until a new reference."""
    shipped.until_ready()
    shipped.until_vented(node, shipped.kill_inflated(node))
    shipped.until(lambda: any(death.startswith(node) for death in shipped.simulation.deaths), 'report')
    if node != CONFIGURATION:
        shipped.until(lambda: node not in shipped.simulation.dead, f'return of {node}')
        assert shipped.stays_vented()
    shipped.check()
