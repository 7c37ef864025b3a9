"""The fiber client against emulated devices on loopback."""

import socket
import time

import numpy as np
import pytest

from soft_hw_bridge.emulators.odisi import OdisiEmulator
from soft_hw_bridge.emulators.shape import ShapeEmulator
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.fiber.client import ShapeClient
from soft_hw_bridge.fiber.protocols.odisi import Core, OdisiAdapter
from soft_hw_bridge.fiber.protocols.shp1 import Shp1Adapter

N = 213
S = 0.8e-3 * np.arange(N)
POINTS = np.column_stack([np.zeros(N), np.zeros(N), S])
PATIENCE_S = 30.0


@pytest.fixture
def device():
    emulator = ShapeEmulator()
    yield emulator
    emulator.close()


@pytest.fixture
def client(device):
    client = ShapeClient(('127.0.0.1', device.port), Shp1Adapter(), silence=0.5)
    yield client
    client.close()


def stream_until(device, client, condition):
    """Let the device send and the client read until the condition holds; return the frames."""
    frames = []
    deadline = time.monotonic() + PATIENCE_S
    while not condition(frames):
        assert time.monotonic() < deadline, (
            f'nothing after {PATIENCE_S} s: {client.error}, {client.health.report(0)}'
        )
        device.send(time.time_ns(), S, POINTS)
        frames += client.read(0.02)
    return frames


def test_frames_arrive_in_order_with_their_time(device, client):
    client.open()
    frames = stream_until(device, client, lambda frames: len(frames) >= 50)
    sequences = [frame.sequence for frame, _ in frames]
    assert sequences == list(range(sequences[0], sequences[0] + len(frames)))
    assert all(0 <= stamp_ns - frame.stamp_ns < 1e9 for frame, stamp_ns in frames)
    assert client.health.lost == 0
    np.testing.assert_allclose(frames[0][0].p_FC_F, POINTS, atol=1e-7)


def test_nobody_there_is_one_clear_error():
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
    client = ShapeClient(('127.0.0.1', port), Shp1Adapter())
    with pytest.raises(DeviceError, match=f'no shape sensor at 127.0.0.1:{port}'):
        client.open()


def test_restarted_device_is_found_again(device, client):
    client.open()
    stream_until(device, client, lambda frames: len(frames) >= 5)
    device.faults.restart = True
    frames = stream_until(device, client, lambda frames: client.health.reconnects >= 1 and len(frames) > 5)
    assert frames[-1][0].sequence < 1000
    assert client.error == ''


def test_silent_connection_is_opened_again(device, client):
    """A device that loses power does not close the connection."""
    client.open()
    stream_until(device, client, lambda frames: len(frames) >= 5)
    device.faults.silent = True
    stream_until(device, client, lambda _: client.health.reconnects >= 1)
    device.faults.clear()
    stream_until(device, client, lambda frames: len(frames) >= 5)


def test_frozen_frames_are_counted_and_not_delivered(device, client):
    client.open()
    stream_until(device, client, lambda frames: len(frames) >= 5)
    device.faults.frozen = True
    stream_until(device, client, lambda _: client.health.duplicate > 5)
    received = client.health.received
    stream_until(device, client, lambda _: client.health.duplicate > 20)
    assert client.health.received == received


def test_every_loss_is_counted(device, client):
    client.open()
    stream_until(device, client, lambda frames: len(frames) >= 5)
    device.faults.drop, device.faults.corrupt, device.faults.duplicate, device.faults.reorder = (
        0.1,
        0.1,
        0.1,
        0.1,
    )
    frames = stream_until(device, client, lambda frames: len(frames) > 300)
    health = client.health
    assert min(health.lost, health.malformed, health.duplicate, health.out_of_order) > 5
    sequences = [frame.sequence for frame, _ in frames]
    assert sequences == sorted(set(sequences))


def test_odisi_over_tcp():
    device = OdisiEmulator({1: {'a': 20, 'b': 20, 'c': 20}}, pitch_mm=0.65, rate_hz=250)
    client = ShapeClient(('127.0.0.1', device.port), OdisiAdapter(tuple(Core(1, name) for name in 'abc')))
    try:
        frames = []
        deadline = time.monotonic() + PATIENCE_S
        while len(frames) < 20 and time.monotonic() < deadline:
            device.send(time.time_ns(), 1, list(range(60)))
            frames += client.read(0.02)
        assert len(frames) >= 20
        assert client.health.lost == client.health.malformed == 0
        np.testing.assert_allclose(frames[0][0].strain[2], 1e-6 * np.arange(40, 60))
    finally:
        client.close()
        device.close()
