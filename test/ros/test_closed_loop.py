"""The launched loop, all of it processes: whatever is sent to it and whichever node is killed, it ends vented.

A minute of garbage: `ABUSE_SECONDS=60 make test ARGS='test/ros/test_closed_loop.py -k garbage'`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ros.test_controllers import ACTUATION, ROBOT, SAFETY, change, garbage, trajectory
from soft_robot_suite.msg import ChamberPressures, SoftState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from soft_dynamics.ros.qos import COMMAND, SENSOR, STATE
from tools.simulation import Ended, Simulation, patient

CONTROLLER, BRIDGE = 'configuration_controller', 'pressure_bridge'
PATIENCE = 90.0  # [s] for half a dozen processes to start, or a node to come back, on a busy machine
VENTED = 0.02 * ACTUATION.pressure_max  # [Pa]
INFLATED = 0.15 * ACTUATION.pressure_max  # [Pa]
SCHEDULING = 2.0  # [s] that processes may wait for a busy computer
HELD = trajectory((1.0, [0.25] * 8))  # for ever
ABUSE = float(os.environ.get('ABUSE_SECONDS', '8'))  # [s]


class Loop:
    """The launch, somebody who gives references, and what was ever commanded."""

    def __init__(self, node: Any, simulation: Simulation) -> None:
        self.node, self.simulation = node, simulation
        self.states: list[SoftState] = node.collect(SoftState, 'state', STATE)
        self.commands: list[ChamberPressures] = node.collect(ChamberPressures, 'pressure/command', COMMAND)
        self.measured: list[ChamberPressures] = node.collect(ChamberPressures, 'pressure/measured', SENSOR)
        self.references = node.create_publisher(JointTrajectory, 'reference/configuration', COMMAND)
        self.killed: set[str] = set()  # nodes, by the tests

    def until(self, condition: Any, what: str) -> None:
        def holds() -> bool:
            self.simulation.check()
            return bool(condition())

        try:
            self.node.spin_until(holds, what, PATIENCE)
        except (TimeoutError, Ended) as error:
            raise AssertionError(f'{error}\n{"".join(self.simulation.lines[-30:])}') from None

    def pressure(self) -> float:
        """The highest in the chambers of the plant [Pa]: the truth, not what a bridge says."""
        with self.simulation.rig as rig:
            state = rig.state()
        for name in ('pressure', 'command'):
            values = np.array(state[name])
            assert np.all((values >= -1.0) & (values <= 1.001 * ACTUATION.pressure_max)), (name, values)
        return max(state['pressure'])

    def until_ready(self) -> None:
        """Wait until every node does its work."""
        streams = (self.states, self.commands, self.measured)
        for stream in streams:
            stream.clear()
        listens = self.references.get_subscription_count
        self.until(lambda: min(map(len, streams)) > 10 and listens(), 'loop')

    def stays_vented(self, seconds: float = 3.0) -> bool:
        """Look at the plant for a while, with every node at work."""
        self.until_ready()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.node.spin_for(0.02)
            if self.pressure() > VENTED:
                return False
        return True

    def inflate(self) -> None:
        """Give a reference, again if the machine was too busy for the first, until there is air in the arm."""
        told = -np.inf

        def inflated() -> bool:
            nonlocal told
            if time.monotonic() - told > 5.0:
                told = time.monotonic()
                self.references.publish(HELD)
            return self.pressure() > INFLATED

        self.until(inflated, 'pressure')

    def kill(self, node: str) -> None:
        self.killed.add(node)
        self.simulation.kill(node)

    def check(self) -> None:
        """Nothing was ever commanded beyond the limits, and no node died that nobody killed: that would vent too."""
        died = {death.split()[0] for death in self.simulation.deaths}
        assert died <= self.killed, ''.join(self.simulation.lines[-60:])
        p = np.array([command.pressure for command in self.commands])
        assert np.all(np.isfinite(p))
        assert np.all((p >= ACTUATION.pressure_min) & (p <= ACTUATION.pressure_max))


@pytest.fixture(scope='module')
def loop(module_ros_client_node: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    robot = patient(ROBOT.name, tmp_path_factory.mktemp('robot'))
    with Simulation(robot=robot, rate=50, shape='false') as simulation:
        yield Loop(module_ros_client_node, simulation)


def test_nothing_is_inflated_before_a_reference_and_the_arm_follows_one(loop: Loop) -> None:
    loop.until_ready()
    assert loop.pressure() < VENTED
    assert not any(any(command.pressure) for command in loop.commands)
    loop.inflate()
    loop.until(lambda: max(np.abs(loop.states[-1].q)) > 0.1, 'bend')
    loop.check()


def test_garbage_never_makes_a_command_outside_the_limits(loop: Loop) -> None:
    loop.until_ready()
    states = loop.node.create_publisher(SoftState, 'state', STATE)
    pretended = loop.node.create_publisher(ChamberPressures, 'pressure/measured', 5)
    rng = np.random.default_rng(0)
    end = time.monotonic() + ABUSE
    while time.monotonic() < end:
        loop.references.publish(garbage(CONTROLLER))
        values = rng.choice([np.nan, np.inf, -1e300, 1e9, 0.0, 0.5], rng.choice([7, 8]))
        message = SoftState(names=list(ROBOT.coordinate_names), q=values.tolist(), qd=values.tolist())
        message.header.stamp = loop.node.get_clock().now().to_msg()
        if rng.random() < 0.2:
            states.publish(message)
            pretended.publish(ChamberPressures(names=['x'], pressure=[float(values[0])]))
        loop.node.spin_for(0.02)
        loop.pressure()
    for publisher in (states, pretended):
        loop.node.destroy_publisher(publisher)
    assert loop.commands
    loop.check()


def stop_and_kill_bridge(loop: Loop) -> None:
    """An emergency stop is forgotten with the process that had it; the reference must be dead all the same."""
    assert loop.node.call(Trigger, 'pressure/emergency_stop', Trigger.Request()).success
    loop.node.spin_for(2.0)
    loop.kill(BRIDGE)
    loop.until(lambda: BRIDGE in loop.simulation.dead, 'death of the bridge')
    loop.until(lambda: BRIDGE not in loop.simulation.dead, 'return of the bridge')


def activate_bridge_again(loop: Loop) -> None:
    change(loop.node, BRIDGE, 'deactivate', 'activate')


def restart_terminal(loop: Loop) -> None:
    with loop.simulation.rig as rig:
        rig.fault('pressure', restart=True)


@pytest.mark.parametrize('event', [activate_bridge_again, restart_terminal, stop_and_kill_bridge])
def test_after_trouble_with_the_valves_the_old_reference_is_dead(loop: Loop, event: Any) -> None:
    loop.until_ready()
    loop.inflate()
    event(loop)
    loop.until(lambda: loop.pressure() < VENTED, 'vented arm')
    assert loop.stays_vented()
    loop.check()
    loop.inflate()  # a new one is followed


@pytest.mark.parametrize('node', ['state_estimator', 'mocap_bridge', BRIDGE, CONTROLLER])
def test_a_node_killed_in_motion_ends_vented(loop: Loop, node: str) -> None:
    loop.until_ready()
    loop.inflate()
    loop.kill(node)
    loop.until(lambda: loop.pressure() < VENTED, f'vented arm after the death of {node}')
    loop.until(lambda: any(death.startswith(node) for death in loop.simulation.deaths), 'report')
    if node != CONTROLLER:  # the others are started again, and the arm stays vented until a new reference
        loop.until(lambda: node not in loop.simulation.dead, f'return of {node}')
        assert loop.stays_vented()
    loop.check()


def test_without_the_rig_everything_ends(loop: Loop) -> None:
    loop.kill('virtual_rig')
    assert loop.simulation.process.wait(PATIENCE) == 1
    loop.check()


@pytest.fixture(scope='module')
def shipped(module_ros_client_node: Any) -> Iterator[Loop]:
    """The loop with the limits of the robot file, behind the tests of the patient one, which has ended."""
    with Simulation(robot=ROBOT.name, rate=50, shape='false', ft='none') as simulation:
        yield Loop(module_ros_client_node, simulation)


@pytest.mark.parametrize('node', ['state_estimator', BRIDGE, CONTROLLER])
def test_with_the_shipped_limits_it_is_vented_in_time(shipped: Loop, node: str) -> None:
    """A busy computer may vent it before, which is safe too."""
    shipped.until_ready()
    shipped.inflate()
    killed = time.monotonic()
    shipped.kill(node)
    shipped.until(lambda: shipped.pressure() < VENTED, 'vented arm')
    noticed = max(SAFETY.state_timeout, SAFETY.command_timeout)
    allowed = noticed + SAFETY.vent_time + 5.0 * ACTUATION.valve_lag + SCHEDULING
    assert time.monotonic() - killed < allowed
    if node != CONTROLLER:
        shipped.until(lambda: any(death.startswith(node) for death in shipped.simulation.deaths), 'report')
        shipped.until(lambda: node not in shipped.simulation.dead, f'return of {node}')
        assert shipped.stays_vented()
    shipped.check()
