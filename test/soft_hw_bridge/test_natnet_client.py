"""The client finds Motive on the network, follows it, and finds it again after a loss."""

import socket
import time
from dataclasses import replace
from statistics import median

import pytest

from soft_hw_bridge.emulators.background_runner import Loop
from soft_hw_bridge.emulators.natnet import MotiveSettings, NatNetEmulator
from soft_hw_bridge.emulators.pose import Pose
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.natnet.client import NatNetClient, NatNetConfig

RATE_HZ = 200.0
PROCESSING_NS = 4_000_000  # from exposure to sending
POSES = {
    'base': Pose((0.1, 0.2, 0.3), (0.0, 0.0, 0.0, 1.0)),
    'tip': Pose((-1.0, 0.5, 2.0), (0.5, -0.5, 0.5, 0.5)),
}
VERSIONS = [(3, 0), (3, 1), (4, 0), (4, 1), (4, 2)]


class Link:
    """A running Motive and its client."""

    def __init__(self, stale_after=0.5, **settings):
        self.emulator = NatNetEmulator(list(POSES), MotiveSettings(**settings))
        self.faults = self.emulator.faults
        config = NatNetConfig('127.0.0.1', '127.0.0.1', self.emulator.command_port, stale_after)
        self.client = NatNetClient(config)
        self.exposures_ns = []
        self.loop = Loop(self.step, self.emulator.serve, RATE_HZ)

    def step(self, _):
        """Send a frame; the first one after a start of the emulator has number 1."""
        if self.faults.restart:
            self.exposures_ns = []
        self.exposures_ns.append(time.time_ns() - PROCESSING_NS)
        self.emulator.send(POSES, self.exposures_ns[-1])

    def __enter__(self):
        self.loop.__enter__()
        return self

    def __exit__(self, *error):
        self.loop.__exit__(*error)
        self.client.close()
        self.emulator.close()

    def run(self, seconds):
        """Poll for a time, and until samples arrive; return them."""
        samples, end = [], time.monotonic() + seconds
        while time.monotonic() < end or not samples:
            assert time.monotonic() < end + 30.0, f'no samples; {self.client.problem}'
            samples += self.client.poll(0.01)
        return samples

    def stamp_error_ms(self, seconds):
        """Return the median difference between stamps and exposures over a time."""
        errors = [abs(s.stamp_ns - self.exposures_ns[s.frame.number - 1]) for s in self.run(seconds)]
        return 1e-6 * median(errors)

    def until(self, condition, seconds=30.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f'not within {seconds} s; {self.client.problem}'
            self.client.poll(0.01)

    def until_streaming(self):
        received = self.client.health.received
        self.until(lambda: self.client.health.received > received + 10 and self.client.names)


@pytest.mark.parametrize('is_multicast', [False, True])
@pytest.mark.parametrize('version', VERSIONS)
def test_poses_arrive_with_names(version, is_multicast):
    with Link(version=version, is_multicast=is_multicast, up_axis='z') as link:
        link.until_streaming()
        frame = link.run(0.1)[-1].frame
        poses = {link.client.names[body.id]: (body.p_WB, body.quat_WB) for body in frame.bodies}
    assert poses.keys() == POSES.keys()
    for name, (p_WB, quat_WB) in poses.items():
        assert (p_WB, quat_WB) == (pytest.approx(POSES[name].p_WB), pytest.approx(POSES[name].quat_WB))
    assert link.client.version == (version if is_multicast else min(version, (4, 1)))
    assert link.client.problem == link.client.warning == ''
    assert link.client.health.malformed == 0


def test_y_up_stream_is_turned_back():
    with Link(up_axis='y') as link:
        link.until_streaming()
        body = link.run(0.1)[-1].frame.bodies[1]
    assert body.p_WB == pytest.approx((-1.0, 2.0, -0.5))
    turned = body.y_up_to_z_up()
    assert (turned.p_WB, turned.quat_WB) == (
        pytest.approx(POSES['tip'].p_WB),
        pytest.approx(POSES['tip'].quat_WB),
    )


def test_unicast_to_the_data_port_is_heard_too():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(('127.0.0.1', 0))
        free_port = probe.getsockname()[1]
    with Link(unicast_port=free_port) as link:
        link.emulator.data_port = free_port  # the server announces this version, as Motive announces 1511
        link.until_streaming()


def test_stamp_is_the_exposure_whatever_the_clock_of_motive():
    with Link(clock_offset_s=9 * 3600.0, clock_drift_ppm=100.0) as link:
        link.until_streaming()
        link.until(lambda: link.client.clock.rtt_s)
        link.run(1.0)
        assert link.stamp_error_ms(1.0) < 2.0


def test_packet_of_another_sender_is_dropped_and_counted():
    with Link() as link, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        link.until_streaming()
        stranger.bind(('127.0.0.2', 0))
        mine = link.client._socket.getsockname()
        for _ in range(5):
            stranger.sendto(b'\x07\x00\x00\x00', mine)
        link.until(lambda: link.client.health.foreign == 5)
        assert link.client.health.malformed == 0


def test_restarted_motive_is_found_again():
    with Link() as link:
        link.until_streaming()
        link.run(0.5)
        link.faults.restart = True
        link.until(lambda: link.client.health.reconnects == 1)
        link.until_streaming()
        assert link.stamp_error_ms(0.5) < 5.0
        assert link.client.clock.relocks >= 1


def test_killed_stream_is_a_problem_until_it_returns():
    with Link() as link:
        link.until_streaming()
        link.faults.silent = True
        link.until(lambda: 'no answer' in link.client.problem)
        link.faults.silent = False
        link.until_streaming()
        link.until(lambda: link.client.problem == '')
        assert link.client.health.reconnects >= 1


def test_frozen_stream_gives_no_samples_and_is_a_problem():
    with Link() as link:
        link.until_streaming()
        link.faults.frozen = True
        link.until(lambda: 'no new frames' in link.client.problem)
        received, duplicate = link.client.health.received, link.client.health.duplicate
        link.until(lambda: link.client.health.duplicate > duplicate + 20)
        assert link.client.health.received == received
        link.faults.frozen = False
        link.until_streaming()


@pytest.mark.parametrize('fault', ['drop', 'duplicate', 'reorder', 'corrupt'])
def test_bad_network_is_counted_and_no_frame_comes_twice_or_late(fault):
    counter = {'drop': 'lost', 'reorder': 'out_of_order', 'corrupt': 'malformed'}.get(fault, fault)
    with Link() as link:
        link.until_streaming()
        setattr(link.faults, fault, 0.3)
        numbers = []
        while len(numbers) < 100 or getattr(link.client.health, counter) < 6:
            numbers += [sample.frame.number for sample in link.run(0.1)]
        link.faults.clear()
        link.until_streaming()
    if fault != 'corrupt':  # frames carry no checksum
        assert numbers == sorted(set(numbers))


def test_clock_jump_is_followed():
    with Link() as link:
        link.until_streaming()
        link.run(0.5)
        relocks = link.client.clock.relocks
        link.faults.clock_jump_s = -1800.0
        samples = []
        while link.client.clock.relocks == relocks:
            samples += link.run(0.1)
        assert max(abs(sample.receive_ns - sample.stamp_ns) for sample in samples) < 60e9
        assert link.stamp_error_ms(0.5) < 5.0


def test_lost_body_is_told():
    with Link() as link:
        link.until_streaming()
        link.faults.untracked = frozenset({'tip'})
        link.until(lambda: [b.is_tracked for b in link.run(0.01)[-1].frame.bodies] == [True, False])


def test_changed_model_list_is_fetched():
    with Link() as link:
        link.until_streaming()
        link.emulator.rename(['base', 'head'])
        link.until(lambda: link.client.names == {1: 'base', 2: 'head'})


def test_changed_model_list_is_fetched_though_the_frame_that_told_of_it_was_lost():
    with Link(stale_after=60.0) as link:
        link.until_streaming()
        link.faults.drop = 1.0
        link.emulator.rename(['base', 'head'])
        link.until(lambda: not link.emulator._is_list_changed)
        number = link.emulator._number
        link.until(lambda: link.emulator._number > number + 1)
        link.faults.clear()
        seen = []

        def is_renamed():
            seen.append((len(link.client.names), link.client.warning))
            return link.client.names == {1: 'base', 2: 'head'}

        link.until(is_renamed)
    assert set(seen) == {(2, '')}  # the old names stay valid meanwhile, without a warning
    assert link.client.health.lost > 0


def test_changed_version_is_followed():
    with Link(version=(4, 1), is_multicast=True) as link:
        link.until_streaming()
        link.emulator.settings = replace(link.emulator.settings, version=(3, 1))
        link.until(lambda: link.client.version == (3, 1))
        link.until_streaming()


def test_version_newer_than_known_is_a_warning():
    with Link(version=(4, 4), is_multicast=True) as link:
        link.until_streaming()
        assert 'NatNet 4.4 is newer than 4.2' in link.client.warning


def test_absent_motive_is_a_problem_in_one_line():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(('127.0.0.1', 0))
        port = nobody.getsockname()[1]
        client = NatNetClient(NatNetConfig('127.0.0.1', '127.0.0.1', port))
        assert client.poll(0.05) == []
        assert client.problem == f'no answer from 127.0.0.1:{port} to 127.0.0.1'
        client.close()


def test_motive_whose_name_is_known_later_is_found(known):
    with Link() as link:
        link.client.close()
        link.client = NatNetClient(NatNetConfig('motive', '127.0.0.1', link.emulator.command_port))
        assert link.client.poll(0.05) == []
        assert link.client.problem == "cannot resolve 'motive': [Errno -2] Name or service not known"
        known['motive'] = '127.0.0.1'
        link.until_streaming()
        assert link.client.problem == ''


def test_foreign_interface_is_refused():
    with pytest.raises(DeviceError, match=r'cannot listen on 192\.0\.2\.1'):
        NatNetClient(NatNetConfig('127.0.0.1', '192.0.2.1'))


@pytest.mark.parametrize(
    ('field', 'value'), [('command_port', 0), ('command_port', 70000), ('stale_after', 0.0)]
)
def test_nonsense_settings_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        NatNetConfig(**{field: value})
