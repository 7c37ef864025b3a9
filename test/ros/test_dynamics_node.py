"""The dynamics node as a process, called by a client; its answers against Pinocchio."""

from __future__ import annotations

import math
import random
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from soft_robot_suite.msg import ChamberPressures, SoftState
from soft_robot_suite.srv import ForwardDynamics, InverseDynamics

from soft_dynamics.description.robot_files import robot_file, robot_names
from soft_dynamics.nodes.dynamics import warm_up
from soft_dynamics.robot import load
from soft_dynamics.ros.conversions import float64s, time_from_seconds, time_to_seconds
from soft_dynamics.ros.qos import SENSOR, STATE
from soft_dynamics.simulation.live_model import Twin

NODE = 'soft_dynamics.nodes.dynamics'
Q = np.zeros(8)  # of the honeycomb arm


@pytest.fixture(scope='module', autouse=True)
def _compiled() -> None:
    """Fill the compiler's cache, so that the tests do not wait a minute for the node to start."""
    robot = load('honeycomb_arm')
    warm_up(robot)
    Twin(robot)


@pytest.fixture
def ask(ros_process: Any, ros_client_node: Any) -> Any:
    """Start the node; return a function that calls either service and returns the response."""
    ros_process(NODE)

    def ask(srv_type: Any, **fields: Any) -> Any:
        request = srv_type.Request()
        for name, value in fields.items():
            setattr(request, name, array('d', np.ravel(value)) if isinstance(value, np.ndarray) else value)
        service = 'dynamics/inverse' if srv_type is InverseDynamics else 'dynamics/forward'
        return ros_client_node.call(srv_type, service, request, timeout=120.0)

    return ask


@pytest.fixture
def puj_file(tmp_path: Path) -> Path:
    """Return the honeycomb arm with free link lengths and half of each mass at its universal joint."""
    data = yaml.safe_load(robot_file('honeycomb_arm').read_text())
    data['segment_defaults'] |= {'lengths': 'free', 'joint_mass_fraction': 0.5}
    path = tmp_path / 'puj.yaml'
    path.write_text(yaml.safe_dump(data))
    return path


def pinocchio_model(description: dict[str, Any]) -> Any:
    """Return the chain with a quarter, a half and a quarter of each segment's mass at base, joint and end."""
    model, parent = pin.Model(), 0
    masses = [segment['mass'] for segment in description['segments']]
    for k, mass in enumerate(masses):
        following = masses[k + 1] / 4 if k + 1 < len(masses) else 0.0
        for joint, body in [
            (pin.JointModelPZ(), 0.0),
            (pin.JointModelRY(), 0.0),
            (pin.JointModelRX(), mass / 2),
            (pin.JointModelPZ(), mass / 4 + following),
        ]:
            parent = model.addJoint(parent, joint, pin.SE3.Identity(), f'joint {model.njoints}')
            inertia = pin.Inertia(body, np.zeros(3), np.zeros((3, 3)))
            model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    model.gravity.linear = np.array(description['gravity'])
    return model


def relative_error(got: Any, expected: Any) -> float:
    got, expected = np.asarray(got), np.ravel(expected)
    assert got.shape == expected.shape
    return float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))


@pytest.mark.parametrize('count', [1, 10_000])
def test_inverse_and_forward_dynamics_agree_with_pinocchio(ask: Any, puj_file: Path, count: int) -> None:
    model = pinocchio_model(yaml.safe_load(puj_file.read_text()))
    data, rng = model.createData(), np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-0.8, 0.8, (3, count, model.nq))
    q[:, [0, 3, 4, 7, 8, 11, 12, 15]] += 1.0  # lengths [m]
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, qd, qdd, strict=True)])
    common = {'robot': str(puj_file), 'count': count, 'q': q, 'qd': qd, 'elastic': False, 'damping': False}

    inverse = ask(InverseDynamics, qdd=qdd, **common)
    assert (inverse.success, inverse.message, len(inverse.names)) == (True, '', 16)
    assert relative_error(inverse.tau, tau) < 1e-10

    forward = ask(ForwardDynamics, tau=tau, **common)
    assert (forward.success, forward.message, forward.names) == (True, '', inverse.names)
    assert relative_error(forward.qdd, qdd) < 1e-10


def test_every_shipped_robot_is_served_with_the_terms_asked_for(ask: Any) -> None:
    rng = np.random.default_rng(2)
    for name in robot_names():
        robot = load(name)
        q, qd, x = rng.uniform(0.1, 0.3, (3, robot.nq))
        p = rng.uniform(0.0, 1e5, len(robot.chamber_names))
        force = robot.actuation(q) @ p
        for terms in [{}, {'gravity': False}, {'elastic': False}, {'damping': False, 'gravity': False}]:
            inverse = ask(InverseDynamics, robot=name, q=q, qd=qd, qdd=x, pressure=p, **terms)
            assert relative_error(inverse.tau, robot.inverse_dynamics(q, qd, x, **terms) - force) < 1e-12
            forward = ask(ForwardDynamics, robot=name, q=q, qd=qd, tau=x, pressure=p, **terms)
            assert relative_error(forward.qdd, robot.forward_dynamics(q, qd, x + force, **terms)) < 1e-12
        assert forward.names == inverse.names == list(robot.coordinate_names)


def test_what_is_left_out_is_zero(ask: Any) -> None:
    robot = load('honeycomb_arm')
    q = np.linspace(-0.3, 0.3, robot.nq)
    response = ask(InverseDynamics, q=q)
    assert relative_error(response.tau, robot.gravity(q) + robot.elastic(q)) < 1e-12


def test_a_bad_request_is_refused_with_the_reason(ask: Any) -> None:
    for fields, reason in [
        ({'q': np.zeros(7)}, 'q: expected 1 x 8 = 8 numbers, got 7'),
        ({'q': np.zeros(0)}, 'q: expected 1 x 8 = 8 numbers, got 0'),
        ({'q': Q, 'qd': np.zeros(9)}, 'qd: expected 1 x 8 = 8 numbers, got 9'),
        ({'q': Q, 'count': 3}, 'q: expected 3 x 8 = 24 numbers, got 8'),
        ({'q': Q, 'count': 0}, 'count: expected at least 1 state, got 0'),
        ({'q': Q, 'count': 2**32 - 1}, 'q: expected 4294967295 x 8 = 34359738360 numbers, got 8'),
        ({'q': Q, 'pressure': np.zeros(3)}, 'pressure: expected 1 x 16 = 16 numbers, got 3'),
        ({'q': np.full(8, math.nan)}, 'q: expected finite numbers, got nan at index [0]'),
        ({'q': Q, 'qd': np.full(8, -math.inf)}, 'qd: expected finite numbers, got -inf at index [0]'),
        ({'q': Q, 'qd': np.full(8, 1e200)}, 'qd: too large for the model, got 1e+200'),
        ({'q': Q, 'robot': 'hexapod'}, "no robot 'hexapod'; shipped are bending_actuator, fabric_arm, "),
        ({'q': Q, 'robot': 'x' * 5000}, 'File name too long'),
    ]:
        for srv_type in (InverseDynamics, ForwardDynamics):
            response = ask(srv_type, **fields)
            assert not response.success
            assert reason in response.message
            assert response.names == []


def test_a_wrong_robot_file_is_refused_with_every_mistake(ask: Any, puj_file: Path) -> None:
    puj_file.write_text(
        puj_file.read_text().replace('mass: 1.2', 'mass: -1.2').replace('name: segment2', 'nam: a')
    )
    response = ask(InverseDynamics, robot=str(puj_file), q=np.zeros(16))
    assert not response.success
    assert 'segments[0].mass' in response.message
    assert 'segments[1].nam' in response.message


def random_numbers(rng: random.Random) -> array:
    special = [math.nan, math.inf, -math.inf, 0.0, 1e308, -1e-308, 1.0]
    return array('d', [rng.choice(special) for _ in range(rng.choice([0, 1, 7, 8, 8, 8, 16, 16, 100]))])


def test_a_thousand_malformed_requests_do_not_hurt_the_node(ask: Any) -> None:
    rng = random.Random(3)
    robots = ['', '', '', *robot_names(), 'x', '/', '..', '\0', 'honeycomb_arm.yaml', 'ä\n\t', '{}' * 300]
    refused = 0
    for k in range(1000):
        srv_type, third = rng.choice([(InverseDynamics, 'qdd'), (ForwardDynamics, 'tau')])
        fields = {name: random_numbers(rng) for name in ('q', 'qd', third, 'pressure')}
        response = ask(
            srv_type, robot=rng.choice(robots), count=rng.choice([0, 1, 1, 1, 2, 7, 2**32 - 1]), **fields
        )
        assert response.success != bool(response.message), k
        refused += not response.success
    assert refused > 900
    assert ask(InverseDynamics, q=np.zeros(8)).success


def test_an_unknown_robot_stops_the_node_at_the_start(ros_process: Any) -> None:
    process = ros_process(NODE, {'robot': 'hexapod'})
    assert process.wait() == 1
    (line,) = process.stderr.splitlines()
    assert "cannot start: no robot 'hexapod'; shipped are " in line


def test_the_prediction_follows_a_robot_that_is_the_model(ros_process: Any, ros_client_node: Any) -> None:
    """The node returns the states of a simulated arm at constant pressure, with their stamps, from the model."""
    client, robot = ros_client_node, load('honeycomb_arm')
    p = np.linspace(0.0, 1e5, 16)
    truth = robot.simulate(np.zeros(8), np.zeros(8), lambda _: p, np.arange(40) * 0.05)
    predicted = client.collect(SoftState, 'state/predicted', STATE)
    diagnostics = client.collect(DiagnosticArray, '/diagnostics')
    ros_process(NODE, {'predict': True})
    pressures = client.announce(ChamberPressures, 'pressure/measured', SENSOR)
    states = client.announce(SoftState, 'state', STATE)
    names = list(robot.coordinate_names)
    for k, t in enumerate(truth.t):
        pressures.publish(ChamberPressures(names=list(robot.chamber_names[::-1]), pressure=float64s(p[::-1])))
        state = SoftState(names=names, q=float64s(truth.q[k]), qd=float64s(truth.qd[k]))
        state.header.stamp = time_from_seconds(100.0 + t)
        states.publish(state)
        client.spin_for(0.02)
    last = time_from_seconds(100.0 + truth.t[-1])
    client.spin_until(lambda: predicted and predicted[-1].header.stamp == last, 'the last prediction')
    assert len(predicted) > 20
    for msg in predicted:
        k = round((time_to_seconds(msg.header.stamp) - 100.0) / 0.05)
        assert (msg.names, msg.model, msg.sources) == (names, 'honeycomb_arm', ['pressure'])
        assert np.allclose(msg.q, truth.q[k], atol=1e-7)
        assert np.allclose(msg.qd, truth.qd[k], atol=1e-6)
    diagnostics.clear()
    client.spin_until(lambda: diagnostics, 'diagnostics')
    services, prediction = diagnostics[0].status
    assert (services.name, services.hardware_id) == ('/dynamics: services', 'honeycomb_arm')
    assert {v.key: v.value for v in prediction.values}['restarts'] == '0'


def test_states_of_another_robot_are_not_predicted(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process(NODE, {'predict': True, 'robot': 'bending_actuator'})
    states = ros_client_node.announce(SoftState, 'state', STATE)
    states.publish(SoftState(model='honeycomb_arm', names=['a'], q=[0.0], qd=[0.0]))
    reason = 'refused: state: expected the coordinates of bending_actuator, got a state of honeycomb_arm'
    ros_client_node.spin_until(lambda: reason in process.stderr, 'warning')
