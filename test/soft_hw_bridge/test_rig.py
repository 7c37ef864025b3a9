"""The rig as its clients see it: every device reports the true state of the plant, in its own protocol."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pymodbus.client import ModbusTcpClient
from scipy.spatial.transform import Rotation

from soft_dynamics.description.robot_files import robot_file, robot_names
from soft_hw_bridge.emulators.openvr_module import OpenVrModule
from soft_hw_bridge.fiber.config import CoresConfig, FbgsConfig, OdisiConfig
from soft_hw_bridge.fiber.config import FiberConfig as FiberClientConfig
from soft_hw_bridge.fiber.stream import FiberStream
from soft_hw_bridge.ft.client import FtConfig as FtClientConfig
from soft_hw_bridge.ft.client import NetFtClient
from soft_hw_bridge.natnet.stream import MocapConfig as MocapClientConfig
from soft_hw_bridge.natnet.stream import MocapStream
from soft_hw_bridge.rig.config import (
    FiberConfig,
    FtConfig,
    MocapConfig,
    PressureConfig,
    RigConfig,
    ViveConfig,
)
from soft_hw_bridge.rig.remote_control import RigClient
from soft_hw_bridge.rig.virtual_rig import LATE, Rig
from soft_hw_bridge.vive.openvr_backend import OpenVrBackend
from soft_hw_bridge.vive.trackers import Trackers

TIMEOUT = 30.0  # [s] far longer than an idle machine needs
EXACT = RigConfig(
    mocap=MocapConfig(noise_position=0.0, noise_rotation=0.0),
    vive=ViveConfig(noise_position=0.0, noise_rotation=0.0),
    fiber=FiberConfig(noise_position=0.0, noise_strain=0.0),
    ft=FtConfig(noise_force=0.0, noise_torque=0.0),
    pressure=PressureConfig(noise=0.0, terminal='generic'),
)


@pytest.fixture
def full_robot(tmp_path: Path) -> str:
    """The honeycomb arm with a sensor of every kind, each mounted away from its frame."""
    data = yaml.safe_load(robot_file('honeycomb_arm').read_text())
    data['sensors'] = [
        {
            'name': 'hand',
            'kind': 'mocap',
            'frame': 'tip',
            'position': [0.01, 0.02, 0.03],
            'rpy': [0.1, 0.2, 0.3],
        },
        {
            'name': 'elbow',
            'kind': 'vive',
            'frame': 'segment2',
            'position': [0.0, 0.05, 0.0],
            'rpy': [0.0, 0.5, 0.0],
        },
        {
            'name': 'fiber',
            'kind': 'fiber',
            'frame': 'base',
            'position': [0.01, 0.0, 0.0],
            'rpy': [0.0, 0.0, 0.4],
        },
        {'name': 'ft', 'kind': 'ft', 'frame': 'base', 'position': [0.0, 0.0, -0.03], 'rpy': [0.0, 0.0, 1.0]},
    ]
    path = tmp_path / 'full.yaml'
    path.write_text(yaml.safe_dump(data))
    return str(path)


@contextmanager
def running(rig: Rig) -> Iterator[RigClient]:
    """Run the rig in a thread; its exceptions are raised here."""
    errors: list[BaseException] = []
    stop = threading.Event()

    def run() -> None:
        try:
            rig.run(stop.is_set)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    with rig:
        thread.start()
        try:
            with RigClient(rig.ports['control'], TIMEOUT) as client:
                yield client
        finally:
            stop.set()
            thread.join()
    assert errors == []


@pytest.fixture
def bent(full_robot: str) -> Iterator[Rig]:
    """A rig whose arm is bent and, being overdamped, hardly moves."""
    rig = Rig(replace(EXACT, robot=full_robot))
    rig.plant.place([0.3, -0.2, 0.1, 0.4, -0.3, 0.2, 0.1, 0.3])
    rig.plant.model.dof_damping[:] *= 1e6
    with running(rig):
        yield rig


def until(poll: Callable[[], Any]) -> Any:
    """Poll until a sample arrives."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        found = poll()
        if found:
            return found
        time.sleep(0.001)
    raise TimeoutError


def pose(X: Any, position: list[float], rpy: list[float]) -> tuple[Any, Any]:
    """R_WS, p_WS of a sensor on a frame."""
    return X[:3, :3] @ Rotation.from_euler('xyz', rpy).as_matrix(), X[:3, 3] + X[:3, :3] @ position


def test_mocap_sees_the_body_in_the_world_of_ros(bent: Rig) -> None:
    config = MocapClientConfig(
        server='127.0.0.1', interface='127.0.0.1', command_port=bent.ports['mocap']['port']
    )
    stream = MocapStream(config)
    try:
        frame = until(lambda: stream.poll(0.1))[-1]
    finally:
        stream.close()
    R_WS, p_WS = pose(bent.plant.poses()[-1], [0.01, 0.02, 0.03], [0.1, 0.2, 0.3])
    assert frame.names == ('hand',)
    assert frame.p_WB[0] == pytest.approx(p_WS, abs=1e-5)
    assert Rotation.from_quat(frame.quat_WB[0]).as_matrix() == pytest.approx(R_WS, abs=1e-5)


def test_vive_sees_the_tracker_in_the_world_of_ros(bent: Rig) -> None:
    trackers = Trackers(OpenVrBackend('standing', OpenVrModule(bent.ports['vive']['port'])))
    try:
        frame = until(trackers.poll)[-1]
    finally:
        trackers.close()
    R_WS, p_WS = pose(bent.plant.poses()[2], [0.0, 0.05, 0.0], [0.0, 0.5, 0.0])
    assert frame.names == ('elbow',)
    assert frame.p_WB[0] == pytest.approx(p_WS, abs=1e-5)
    assert Rotation.from_quat(frame.quat_WB[0]).as_matrix() == pytest.approx(R_WS, abs=1e-5)


CORES = CoresConfig(EXACT.fiber.core_radius, EXACT.fiber.core_angle)
SPACING = EXACT.fiber.grating_spacing
GRATINGS = tuple(SPACING * k for k in range(67))  # of 0.66 m


@pytest.mark.parametrize(
    ('client', 'tolerance'),
    [
        (FiberClientConfig('shp1'), 1e-5),
        (FiberClientConfig('odisi', cores=CORES, odisi=OdisiConfig((1, 2, 3))), 5e-3),
        (FiberClientConfig('fbgs_strain', cores=CORES, fbgs=FbgsConfig(GRATINGS)), 5e-3),
        (FiberClientConfig('fbgs_shape', fbgs=FbgsConfig((), 0.8e-3)), 1e-5),
    ],
    ids=lambda value: getattr(value, 'protocol', ''),
)
def test_fiber_ends_at_the_tip_whatever_it_speaks(
    full_robot: str, client: FiberClientConfig, tolerance: float
) -> None:
    """The client integrates strain: kinks of the plant become arcs, which costs a few millimetres over 66 cm."""
    fiber = replace(EXACT.fiber, protocol=client.protocol, rate=20.0)
    rig = Rig(replace(EXACT, robot=full_robot, fiber=fiber))
    rig.plant.place([0.3, -0.2, 0.1, 0.4, -0.3, 0.2, 0.1, 0.3])
    rig.plant.model.dof_damping[:] *= 1e6
    with running(rig):
        stream = FiberStream(replace(client, port=rig.ports['fiber']['port']))
        try:
            frame = until(lambda: stream.poll(0.1))[-1].frame
        finally:
            stream.close()
        base, tip = rig.plant.poses()[[0, -1]]
    R_WF, p_WF = pose(base, [0.01, 0.0, 0.0], [0.0, 0.0, 0.4])
    start, end = (R_WF.T @ (X[:3, 3] - p_WF) for X in (base, tip))
    beyond = 0.66 - frame.s[-1]
    assert -1e-6 < beyond < SPACING
    assert frame.p_FC_F[-1] - frame.p_FC_F[0] == pytest.approx(end - start, abs=tolerance + beyond)
    if frame.strain is None:
        assert frame.p_FC_F[0] == pytest.approx(start, abs=1e-5)


def test_ft_reads_what_the_base_carries(bent: Rig) -> None:
    ports = bent.ports['ft']
    client = NetFtClient(FtClientConfig('127.0.0.1', ports['port'], ports['http_port']))
    R_SB = Rotation.from_euler('z', -1.0).as_matrix()

    def agreed() -> bool:
        """Return whether a record is the load on the base, excluding one sent during the plant's next step."""
        sample = until(lambda: client.poll(0.1))[-1]
        torque, force = bent.plant.base_wrench().reshape(2, 3)
        return (
            sample.force == pytest.approx(R_SB @ force, abs=1e-4)
            and sample.force[2]
            == pytest.approx(-3.0 * 9.81, abs=1e-3)  # hanging: z points down, the base pulls up
            and sample.torque == pytest.approx(R_SB @ (torque - np.cross([0.0, 0.0, -0.03], force)), abs=1e-4)
        )

    try:
        until(agreed)
    finally:
        client.close()


def test_valves_follow_registers_and_show_what_is_in_the_chambers(full_robot: str) -> None:
    with running(rig := Rig(replace(EXACT, robot=full_robot))) as control:
        modbus = ModbusTcpClient('127.0.0.1', port=rig.ports['pressure']['port'])
        try:
            modbus.connect()

            def is_filled() -> bool:
                modbus.write_registers(0, [5000] + [0] * 15)  # 50 kPa
                measured = modbus.read_holding_registers(100, count=16).registers
                state = control.state()
                return (
                    state['command'] == [50_000.0] + [0.0] * 15
                    and state['pressure'][0] == pytest.approx(50_000.0, rel=1e-3)
                    and measured == [pytest.approx(5000, abs=50)] + [0] * 15
                )

            assert control.state()['writes'] == 0
            assert until(is_filled)
            assert (control.state()['writes'] > 0, control.state()['largest_rise']) == (True, 50e3)
        finally:
            modbus.close()
        assert until(lambda: control.state()['pressure'][0] < 100.0)  # no client requests data any more


def test_noise_is_as_asked_for(full_robot: str) -> None:
    config = RigConfig(robot=full_robot, pace='stepped')
    with Rig(config) as rig:
        force, torque = (
            np.array(x) for x in zip(*(rig.devices['ft'].measure() for _ in range(3000)), strict=True)
        )
        assert force.std(axis=0) == pytest.approx(np.full(3, config.ft.noise_force), rel=0.1)
        assert torque.std(axis=0) == pytest.approx(np.full(3, config.ft.noise_torque), rel=0.1)
        bodies = [rig.devices['mocap'].measure()['hand'] for _ in range(3000)]
        assert np.std([body.p_WB for body in bodies], axis=0) == pytest.approx(np.full(3, 1e-4), rel=0.1)


def test_stepped_time_is_exact_and_repeatable(full_robot: str) -> None:
    def history() -> list[Any]:
        sent: list[Any] = []
        with Rig(RigConfig(robot=full_robot, pace='stepped')) as rig:
            rig.plant.place([0.2, 0.1] * 4)
            motive = rig.devices['mocap'].emulator
            motive.send = lambda poses, exposure_ns: sent.append((rig.plant.t, exposure_ns, poses['hand']))
            rig.advance(0.5)
            assert rig.plant.t == pytest.approx(0.5)
        return sent

    first = history()
    assert first == history()
    assert len(first) == pytest.approx(0.5 * 120, abs=2)
    delays = np.array([t - exposure_ns * 1e-9 for t, exposure_ns, _ in first])
    assert delays == pytest.approx(np.full(len(first), RigConfig().mocap.delay), abs=1e-6)


def test_stepped_rig_waits_for_its_client() -> None:
    with running(Rig(RigConfig(pace='stepped'))) as client:
        assert client.advance(0.25) == pytest.approx(0.25)
        time.sleep(0.05)
        assert client.state()['t'] == pytest.approx(0.25)
        with pytest.raises(ValueError, match=r'seconds must be a number of 0\.001 to 600, got -1'):
            client.advance(-1)


def test_faults_come_and_go_by_the_control_port(full_robot: str) -> None:
    config = RigConfig(robot=full_robot, mocap=MocapConfig(drop=0.01))
    with running(rig := Rig(config)) as client:
        client.fault('mocap', silent=True, untracked=['hand'], clock_jump_s=-5)
        faults = rig.devices['mocap'].faults
        assert (faults.silent, faults.untracked, faults.clock_jump_s) == (True, frozenset({'hand'}), -5)
        assert not rig.devices['ft'].faults.silent
        client.fault('ft', restart=True)
        until(lambda: not rig.devices['ft'].faults.restart)
        client.clear()
        assert (faults.silent, faults.untracked, faults.drop) == (False, frozenset(), 0.01)


@pytest.mark.parametrize(
    ('request_', 'refusal'),
    [
        ({'command': 'explode'}, "command must be fault, clear, load, state or advance, got 'explode'"),
        ({'command': 'load', 'mass': -0.1}, r'mass must be a number of 0 to 100, got -0\.1'),
        ({'command': 'load'}, 'mass must be a number of 0 to 100, got None'),
        ({'command': 'fault', 'device': 'radar'}, "device must be one of mocap, ft, pressure, got 'radar'"),
        ({'command': 'fault', 'device': 'ft'}, 'set must name at least one of silent, frozen'),
        ({'command': 'fault', 'device': 'ft', 'set': {'silnt': True}}, "fault must be one of .* got 'silnt'"),
        ({'command': 'fault', 'device': 'ft', 'set': {'silent': 1}}, 'silent must be true or false, got 1'),
        (
            {'command': 'fault', 'device': 'ft', 'set': {'drop': 'x'}},
            "drop must be a number of 0 to 1, got 'x'",
        ),
        ({'command': 'fault', 'device': 'ft', 'set': {'drop': 2}}, r'drop must be a number of 0 to 1, got 2'),
        (
            {'command': 'fault', 'device': 'ft', 'set': {'untracked': 'tip'}},
            'untracked must be a list of names',
        ),
        ({'command': 'advance', 'seconds': 1}, 'time advances by itself'),
    ],
)
def test_control_refuses_in_one_line(request_: dict[str, Any], refusal: str) -> None:
    with running(Rig(RigConfig())) as client:
        with pytest.raises(ValueError, match=refusal):
            client.request(**request_)
        client._socket.send(b'\xff{')
        assert b'error' in client._socket.recv(1000)
        assert until(lambda: client.state()['t'] > 0.0)


def test_plant_stands_still_rather_than_run_after_a_busy_computer() -> None:
    pauses = [3 * LATE]
    rig = Rig(RigConfig(), on_tick=lambda _: time.sleep(pauses.pop()) if pauses else None)
    with running(rig) as client:
        until(lambda: client.state()['slips'] >= 1)
        assert 'too busy' in rig.status().message
        before, t = client.state()['t'], time.monotonic()
        time.sleep(0.5)
        assert client.state()['t'] - before <= time.monotonic() - t + LATE


def test_force_sensor_goes_on_counting_while_the_plant_stands_still() -> None:
    pauses = [10 * LATE]
    rig = Rig(RigConfig(), on_tick=lambda _: time.sleep(pauses.pop()) if pauses else None)
    with running(rig) as client:
        until(lambda: client.state()['slips'] >= 1)
        rate, t = rig.config.ft.rate, client.state()['t']
        assert rig.devices['ft'].emulator.taken > rate * (t + 8 * LATE)


@pytest.mark.parametrize('name', robot_names())
def test_every_shipped_robot_has_a_rig_that_lives(name: str) -> None:
    with Rig(RigConfig(robot=name, pace='stepped')) as rig:
        rig.advance(0.2)
        kinds = {sensor.kind for sensor in rig.plant.description.sensors}
        assert set(rig.devices) == kinds | {'pressure'}
        assert all(port > 0 for ports in list(rig.ports.values())[1:] for port in ports.values())


@pytest.mark.parametrize(
    ('make', 'refusal'),
    [
        (lambda: RigConfig(pace='fast'), "pace must be one of real, stepped, got 'fast'"),
        (lambda: RigConfig(step=3e-4), r'step must be 0\.001 s divided by an integer, got 0\.0003'),
        (lambda: Rig(RigConfig(obstacle=(1.0, 2.0))), 'obstacle: expected 4 or 7 numbers'),
        (lambda: RigConfig(tip_load=-1.0), 'tip_load must be >= 0'),
        (lambda: MocapConfig(rate=2000.0), r'rate must be in \(0, 1000\] Hz'),
        (lambda: MocapConfig(natnet='2.9'), 'natnet must be 3.0'),
        (lambda: ViveConfig(noise_position=-1.0), 'noise_position must be >= 0'),
        (lambda: FiberConfig(protocol='luna'), 'protocol must be one of shp1'),
        (lambda: FtConfig(drop=1.5), r'drop must be in 0\.\.1'),
        (lambda: PressureConfig(terminal='smc'), 'terminal must be one of generic'),
        (lambda: Rig(RigConfig(robot='nobody')), "no robot 'nobody'"),
    ],
)
def test_nonsense_is_refused(make: Callable[[], Any], refusal: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=refusal):
        make()


def test_taken_port_is_told_and_nothing_is_left_open() -> None:
    with Rig(RigConfig()) as first:
        port = first.ports['mocap']['port']
        with pytest.raises(OSError, match=f'cannot bind to 127.0.0.1:{port}'):
            Rig(RigConfig(mocap=MocapConfig(port=port)))
