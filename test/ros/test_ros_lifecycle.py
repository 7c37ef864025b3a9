"""ManagedNode in a real process: autostart, transitions by service, failures, safe shutdown."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState

MANAGED = 'ros.nodes_for_test.managed'
UP = ['on_configure', 'on_activate']
DOWN = ['on_deactivate', 'on_cleanup', 'on_shutdown']


def state(client: Any) -> str:
    return str(client.call(GetState, 'managed/get_state', GetState.Request()).current_state.label)


def change(client: Any, transition: int) -> bool:
    request = ChangeState.Request(transition=Transition(id=transition))
    return bool(client.call(ChangeState, 'managed/change_state', request).success)


def test_autostart_brings_the_node_up(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process(MANAGED)
    ros_client_node.spin_until(lambda: state(ros_client_node) == 'active', 'state active')
    assert process.stdout.split() == UP


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_takes_the_safe_way_down(ros_process: Any, ros_client_node: Any, number: int) -> None:
    process = ros_process(MANAGED)
    ros_client_node.spin_until(lambda: state(ros_client_node) == 'active', 'state active')
    assert process.stop(number) == 0
    assert process.stdout.split() == UP + DOWN
    assert process.stderr == ''


def test_transitions_by_service(ros_process: Any, ros_client_node: Any) -> None:
    """Every valid transition works, and an invalid one is rejected without side effects."""
    process, client = ros_process(MANAGED, {'autostart': False}), ros_client_node
    assert state(client) == 'unconfigured'
    for transition, allowed, after in [
        (Transition.TRANSITION_ACTIVATE, False, 'unconfigured'),
        (Transition.TRANSITION_CONFIGURE, True, 'inactive'),
        (Transition.TRANSITION_CONFIGURE, False, 'inactive'),
        (99, False, 'inactive'),
        (Transition.TRANSITION_ACTIVATE, True, 'active'),
        (Transition.TRANSITION_DEACTIVATE, True, 'inactive'),
        (Transition.TRANSITION_CLEANUP, True, 'unconfigured'),
        (Transition.TRANSITION_CONFIGURE, True, 'inactive'),
        (Transition.TRANSITION_ACTIVATE, True, 'active'),
        (Transition.TRANSITION_ACTIVE_SHUTDOWN, True, 'finalized'),
    ]:
        assert change(client, transition) == allowed
        assert state(client) == after
    assert process.stdout.split() == [*UP, 'on_deactivate', 'on_cleanup', *UP, *DOWN]
    assert process.stop() == 0


@pytest.mark.parametrize(
    ('fail_in', 'steps', 'after', 'retry'),
    [
        ('on_configure', ['on_configure', 'on_cleanup'], 'unconfigured', Transition.TRANSITION_CONFIGURE),
        ('on_activate', [*UP, 'on_deactivate'], 'inactive', Transition.TRANSITION_ACTIVATE),
    ],
)
def test_a_failure_on_the_way_up_is_told_undone_and_can_be_retried(
    ros_process: Any, ros_client_node: Any, fail_in: str, steps: list[str], after: str, retry: int
) -> None:
    process, client = ros_process(MANAGED, {'fail_in': fail_in}), ros_client_node
    client.spin_until(lambda: process.stdout.split() == steps, f'failure in {fail_in}')
    assert state(client) == after
    (line,) = process.stderr.splitlines()
    assert line.startswith('[ERROR]')
    assert line.endswith(f'[managed]: {fail_in} failed: {fail_in}: the device does not answer')
    assert client.set_parameter('managed', 'fail_in', '').successful
    assert change(client, retry)
    assert process.stop() == 0


def test_a_failure_on_the_way_down_still_cleans_up(ros_process: Any, ros_client_node: Any) -> None:
    process, client = ros_process(MANAGED, {'fail_in': 'on_deactivate'}), ros_client_node
    client.spin_until(lambda: state(client) == 'active', 'state active')
    assert not change(client, Transition.TRANSITION_DEACTIVATE)
    assert state(client) == 'unconfigured'
    assert process.stdout.split() == [*UP, 'on_deactivate', 'on_cleanup']


def test_a_signal_cleans_up_even_if_deactivate_fails(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process(MANAGED, {'fail_in': 'on_deactivate'})
    ros_client_node.spin_until(lambda: state(ros_client_node) == 'active', 'state active')
    assert process.stop(signal.SIGTERM) == 0
    assert process.stdout.split() == UP + DOWN
    assert len(process.stderr.splitlines()) == 1


def test_a_context_closed_by_others_does_not_prevent_the_safe_way_down(ros_process: Any) -> None:
    process = ros_process(MANAGED, {'loses_context': True})
    assert process.wait() == 0
    assert process.stdout.split() == UP + DOWN


def test_a_wrong_autostart_is_one_line(ros_process: Any) -> None:
    process = ros_process(MANAGED, {'autostart': 'yes please'})
    assert process.wait() == 1
    (line,) = process.stderr.splitlines()
    assert "cannot start: Trying to set parameter 'autostart' to 'yes please'" in line


def test_diagnostics_are_published(ros_process: Any, ros_client_node: Any) -> None:
    arrays = ros_client_node.collect(DiagnosticArray, '/diagnostics')
    ros_process(MANAGED, remap={'__ns': '/lab'})
    ros_client_node.spin_until(lambda: arrays and arrays[-1].status[0].message == 'active', 'diagnostics')
    (status,) = arrays[-1].status
    assert status.level == DiagnosticStatus.OK
    assert status.name == '/lab/managed: lifecycle'
    assert status.hardware_id == 'rig 1'
    assert [(v.key, v.value) for v in status.values] == [('answer', '42')]
    assert arrays[-1].header.stamp.sec > 0
