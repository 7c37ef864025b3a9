"""Our F/T client and an independent one against the emulated box."""

import socket
import threading
import time

import pynetft
import pytest

from soft_dynamics.diagnostics import ERROR, OK, WARN
from soft_hw_bridge.emulators.netft import NetFtEmulator
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.ft import client as netft_client
from soft_hw_bridge.ft.calibration import fetch_calibration
from soft_hw_bridge.ft.client import FtConfig, NetFtClient

FORCE, TORQUE = (1.5, -2.25, 30.0), (0.125, -0.5, 2.0)
PATIENCE_S = 30.0


class Pump:
    """Feeds the emulator a thousand samples a second."""

    def __init__(self, box):
        self.box = box
        self.running = True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.running:
            self.box.send(FORCE, TORQUE)
            time.sleep(1e-3)

    def stop(self):
        self.running = False
        self.thread.join()


@pytest.fixture(
    params=[('N', 1.0, 'Nmm', 1e-3), ('lbf', 4.4482216152605, 'lbf-in', 0.1129848290276167)], ids=str
)
def box(request):
    force_name, newton, torque_name, newton_metre = request.param
    box = NetFtEmulator(1000.0, (force_name, newton), (torque_name, newton_metre))
    pump = Pump(box)
    yield box
    pump.stop()
    box.close()


@pytest.fixture
def client(box):
    client = NetFtClient(FtConfig('127.0.0.1', box.rdt_port, box.http_port, stale_after=1.0))
    yield client
    client.close()


def read_until(client, condition):
    samples = []
    deadline = time.monotonic() + PATIENCE_S
    while not condition(samples):
        assert time.monotonic() < deadline, f'nothing after {PATIENCE_S} s: {client.status()}'
        samples += client.poll(0.02)
    return samples


def test_samples_are_in_newton_and_newton_metre(client):
    samples = read_until(client, lambda samples: len(samples) >= 200)
    assert samples[-1].force == pytest.approx(FORCE, abs=1e-5)
    assert samples[-1].torque == pytest.approx(TORQUE, abs=1e-4)
    stamps = [sample.stamp_ns for sample in samples]
    assert stamps == sorted(stamps)
    assert client.health.lost == client.health.malformed == 0


def test_another_client_reads_the_same(box, client):
    ours = read_until(client, lambda samples: samples)[-1]
    config = pynetft.Config(sensor_host='127.0.0.1', rdt_port=box.rdt_port, http_port=box.http_port)
    with pynetft.Client(config) as other:
        theirs = next(other.samples(timeout=PATIENCE_S))
        assert other.health().malformed_count == other.health().lost_count == 0
    scale = {'N': 1.0, 'lbf': 4.4482216152605, 'N-mm': 1e-3, 'lbf-in': 0.1129848290276167}
    assert [scale[theirs.force_unit.value] * x for x in theirs.force] == pytest.approx(ours.force, rel=1e-9)
    assert [scale[theirs.torque_unit.value] * x for x in theirs.torque] == pytest.approx(
        ours.torque, rel=1e-9
    )


def test_bias_makes_the_present_load_zero(client):
    read_until(client, lambda samples: samples)
    client.bias()
    samples = read_until(client, lambda samples: samples and samples[-1].force == (0.0, 0.0, 0.0))
    assert samples[-1].torque == (0.0, 0.0, 0.0)


def test_numbers_wrap_without_a_loss(box, client):
    read_until(client, lambda samples: samples)
    restarts = client.health.restarts
    box.jump_to(2**32 - 150)
    read_until(client, lambda samples: len(samples) > 300)
    assert client.health.restarts == restarts + 1  # the jump itself
    assert client.health.lost == 0


def test_restarted_box_with_another_calibration(box, client):
    read_until(client, lambda samples: samples)
    box.counts_per_force *= 10
    box.faults.restart = True
    samples = read_until(client, lambda samples: client.health.reconnects >= 1 and len(samples) > 20)
    assert samples[-1].force == pytest.approx(FORCE, abs=1e-5)
    read_until(client, lambda _: client.status()[:2] == (OK, 'streaming'))


def test_silence_is_reported_and_ends(box, client):
    read_until(client, lambda samples: samples)
    box.faults.silent = True
    read_until(client, lambda _: 'no new records from 127.0.0.1' in client.status().message)
    box.faults.clear()
    read_until(client, lambda _: client.status()[:2] == (OK, 'streaming'))


def test_foreign_packets_are_dropped_and_counted(client):
    read_until(client, lambda samples: samples)
    port = client._socket.getsockname()[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(10):
            stranger.sendto(bytes(36), ('127.0.0.1', port))
        samples = read_until(client, lambda _: client.health.foreign == 10)
    assert all(sample.force == pytest.approx(FORCE, abs=1e-5) for sample in samples)


def test_error_status_is_not_delivered(box, client):
    read_until(client, lambda samples: samples)
    box.status = 0x80020000
    read_until(client, lambda _: client.device_errors > 20)
    saturated = (ERROR, 'saturation or A/D failure')
    assert read_until(client, lambda _: client.status()[:2] == saturated) == []
    box.status = 0x80010000
    assert read_until(client, lambda samples: samples)[-1].status == 0x80010000
    read_until(client, lambda _: client.status()[:2] == (WARN, 'monitor condition latched'))


def test_damage_is_counted(box, client):
    read_until(client, lambda samples: samples)
    box.faults.drop, box.faults.corrupt, box.faults.duplicate, box.faults.reorder = 0.1, 0.2, 0.1, 0.1
    read_until(client, lambda samples: len(samples) > 500)
    health = client.health
    assert min(health.lost, health.malformed, health.duplicate, health.out_of_order) > 5


def test_frozen_box_is_told(box, client):
    read_until(client, lambda samples: samples)
    box.faults.frozen = True
    read_until(client, lambda _: client.status().level == ERROR)
    received = client.health.received
    read_until(client, lambda _: client.health.duplicate > 600)  # with a new request of the stream meanwhile
    assert client.health.received == received
    box.faults.clear()
    read_until(client, lambda samples: samples)


def test_no_box_is_told_and_bias_refused():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(('127.0.0.1', 0))
        port = taken.getsockname()[1]
    client = NetFtClient(FtConfig('127.0.0.1', port))
    try:
        assert client.poll(0.05) == []
        assert client.status()[:2] == (ERROR, f'no new records from 127.0.0.1:{port}')
        with pytest.raises(DeviceError, match='no new records'):
            client.bias()
    finally:
        client.close()


def test_box_without_its_page_is_told(box):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
    client = NetFtClient(FtConfig('127.0.0.1', box.rdt_port, port))
    try:
        message = f'no calibration from http://127.0.0.1:{port}/netftapi2.xml'
        assert read_until(client, lambda _: message in client.status().message) == []
    finally:
        client.close()


def test_page_without_calibration_is_named(box):
    box.torque_unit = ('furlong', 1.0)
    with pytest.raises(DeviceError, match=r"scfgtu> must be one of .* got 'furlong'"):
        fetch_calibration('127.0.0.1', box.http_port)


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'rdt_port': 0}, 'rdt_port'),
        ({'status_table': 'nano'}, 'net_box, axia'),
        ({'stale_after': 0.0}, 'stale_after'),
    ],
)
def test_nonsense_is_refused(change, problem):
    with pytest.raises(ValueError, match=problem):
        FtConfig(**change)


def test_box_whose_name_is_known_later_is_found(box, known, monkeypatch):
    monkeypatch.setattr(
        netft_client, 'fetch_calibration', lambda _, port: fetch_calibration('127.0.0.1', port)
    )
    client = NetFtClient(FtConfig('our-box', box.rdt_port, box.http_port, stale_after=1.0))
    try:
        assert client.poll(0.05) == []
        problem = "cannot resolve 'our-box': [Errno -2] Name or service not known"
        assert client.status()[:2] == (ERROR, problem)
        with pytest.raises(DeviceError, match='cannot resolve'):
            client.bias()
        known['our-box'] = '127.0.0.1'
        assert read_until(client, bool)
        assert client.status().level == OK
    finally:
        client.close()
