"""Poses of named bodies, and the diagnostics of the stream."""

import time

import pytest

from soft_dynamics.diagnostics import ERROR, OK, WARN
from soft_hw_bridge.emulators.background_runner import Loop
from soft_hw_bridge.emulators.natnet import MotiveSettings, NatNetEmulator
from soft_hw_bridge.emulators.pose import Pose
from soft_hw_bridge.natnet.stream import MocapConfig, MocapStream

POSES = {
    'base': Pose((1.0, 2.0, 3.0), (0.5, 0.5, 0.5, 0.5)),
    'tip': Pose((4.0, 5.0, 6.0), (0.0, 0.0, 0.0, 1.0)),
}


class Link:
    def __init__(self, up_axis='y', bodies=()):
        self.emulator = NatNetEmulator(list(POSES), MotiveSettings(up_axis=up_axis))
        self.faults = self.emulator.faults
        self.stream = MocapStream(
            MocapConfig('127.0.0.1', '127.0.0.1', self.emulator.command_port, up_axis=up_axis, bodies=bodies)
        )
        self.loop = Loop(lambda _: self.emulator.send(POSES), self.emulator.serve, 100)

    def __enter__(self):
        self.loop.__enter__()
        return self

    def __exit__(self, *error):
        self.loop.__exit__(*error)
        self.stream.close()
        self.emulator.close()

    def run(self, seconds):
        """Poll for a time, and until poses arrive; return them by body name."""
        frames, end = [], time.monotonic() + seconds
        while time.monotonic() < end or not frames:
            assert time.monotonic() < end + 30.0, self.stream.status()
            frames += self.stream.poll(0.01)
        return {
            name: (p_WB, quat_WB)
            for _, names, p, quat in frames
            for name, p_WB, quat_WB in zip(names, p, quat, strict=True)
        }

    def until(self, level, message):
        end = time.monotonic() + 30
        while (self.stream.status().level, self.stream.status().message) != (level, message):
            assert time.monotonic() < end, self.stream.status()
            self.stream.poll(0.01)


@pytest.mark.parametrize('up_axis', ['y', 'z'])
def test_poses_are_z_up_whatever_motive_streams(up_axis):
    with Link(up_axis) as link:
        link.until(OK, 'streaming')
        poses = link.run(0.1)
    assert poses.keys() == POSES.keys()
    for name, (p_WB, quat_WB) in POSES.items():
        assert poses[name][0] == pytest.approx(p_WB)
        assert poses[name][1] == pytest.approx(quat_WB)


def test_only_the_bodies_asked_for():
    with Link(bodies=('tip',)) as link:
        link.until(OK, 'streaming')
        assert link.run(0.1).keys() == {'tip'}
        assert link.stream.names == ['tip']


def test_body_that_motive_does_not_know_is_told():
    with Link(bodies=('tip', 'hand')) as link:
        link.until(WARN, 'Motive has no rigid body hand (it has base, tip)')


def test_lost_body_is_counted_and_told():
    with Link() as link:
        link.until(OK, 'streaming')
        link.faults.untracked = frozenset({'tip'})
        link.until(WARN, 'not tracked: tip')
        assert link.run(0.1).keys() == {'base'}
        assert int(link.stream.status().values['untracked.tip']) > 0
        link.faults.clear()
        link.until(OK, 'streaming')


def test_verdict_has_all_figures():
    with Link() as link:
        assert link.stream.status().level == ERROR
        link.until(OK, 'streaming')
        while link.stream.client.clock.rtt_s is None:
            link.run(0.1)
        values = link.stream.status().values
    assert float(values['clock_offset_s']) > 1e9
    assert float(values['rtt_s']) > 0
    assert values['natnet_version'] == '4.1'
    for key in (
        'rate_hz',
        'last_age_s',
        'lost',
        'duplicate',
        'out_of_order',
        'malformed',
        'foreign',
        'reconnects',
    ):
        assert key in values


def test_other_up_axis_is_refused():
    with pytest.raises(ValueError, match="up_axis must be 'y' or 'z', got 'x'"):
        MocapConfig(up_axis='x')
