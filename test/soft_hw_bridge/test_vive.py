"""Trackers are followed by serial number through all changes of SteamVR."""

import ctypes
import sys
import time

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from soft_dynamics.diagnostics import WARN
from soft_hw_bridge.emulators import openvr_module
from soft_hw_bridge.emulators.background_runner import Loop
from soft_hw_bridge.emulators.openvr import OpenVrEmulator
from soft_hw_bridge.emulators.openvr_module import OpenVrModule
from soft_hw_bridge.emulators.pose import Pose
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.vive.backend import TrackerPose, TrackingState
from soft_hw_bridge.vive.openvr_backend import OpenVrBackend
from soft_hw_bridge.vive.trackers import Trackers, y_up_to_rep103

SERIALS = ['LHR-00000001', 'LHR-00000002', 'LHR-00000003']
IDENTITY = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0))


def poses(frames):
    """Return (name, p_WB) of every body of frames."""
    return [each for _, names, p_WB, _ in frames for each in zip(names, p_WB.tolist(), strict=True)]


def moved(x):
    return ((1.0, 0.0, 0.0, x), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0))


class ScriptedBackend:
    """Plays back the results or exceptions of poses(), one entry per call; connect likewise."""

    def __init__(self, script, connects=()):
        self.script, self.connects = list(script), list(connects)
        self.closed = 0

    def connect(self):
        if self.connects and (error := self.connects.pop(0)):
            raise error

    def devices(self):
        return SERIALS

    def poses(self):
        entry = self.script.pop(0)
        if isinstance(entry, Exception):
            raise entry
        return entry

    def close(self):
        self.closed += 1


class SteamVr:
    """An emulated SteamVR with trackers that move along x, each at its own height, and its client."""

    def __init__(self, universe='standing'):
        self.emulator = OpenVrEmulator(SERIALS)
        self.faults = self.emulator.faults
        self.missing = set()
        self.trackers = Trackers(OpenVrBackend(universe, OpenVrModule(self.emulator.port)))
        self.loop = Loop(self.step, self.emulator.serve, 200)

    def step(self, t):
        bodies = {s: Pose((t, 0.0, 1.0 + k), (0.0, 0.0, 0.0, 1.0)) for k, s in enumerate(SERIALS)}
        self.emulator.send({s: p for s, p in bodies.items() if s not in self.missing})

    def __enter__(self):
        self.loop.__enter__()
        return self

    def __exit__(self, *error):
        self.loop.__exit__(*error)
        self.trackers.close()
        self.emulator.close()

    def run(self, seconds):
        samples, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            samples += poses(self.trackers.poll())
            time.sleep(0.004)
        return samples

    def samples_of(self, *serials):
        """Return some samples of each of these trackers."""
        samples = []

        def has_all():
            samples.extend(self.run(0.1))
            return {name for name, _ in samples} >= set(serials)

        self.until(has_all)
        return samples

    def until(self, condition, seconds=30.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f'not within {seconds} s; {self.trackers.problem}'
            self.run(0.02)


def heights_belong_to_serials(samples):
    return all(p_WB[2] == pytest.approx(1.0 + SERIALS.index(name)) for name, p_WB in samples)


def test_axes_are_those_of_rep103():
    facing = {
        (0.0, 0.0, -1.0): (1.0, 0.0, 0.0),
        (-1.0, 0.0, 0.0): (0.0, 1.0, 0.0),
        (0.0, 1.0, 0.0): (0.0, 0.0, 1.0),
    }
    for p_V, p_W in facing.items():
        matrix = tuple((*row[:3], p) for row, p in zip(IDENTITY, p_V, strict=True))
        position, quat = y_up_to_rep103(matrix)
        assert position == p_W
        assert quat == (0.0, 0.0, 0.0, 1.0)


def test_rotation_is_the_same_motion_in_renamed_axes():
    C = np.array([[0, 0, -1], [-1, 0, 0], [0, 1, 0]])
    rng = np.random.default_rng(5)
    for _ in range(50):
        R, p = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3)
        position, quat = y_up_to_rep103(tuple(map(tuple, np.column_stack([R, p]).tolist())))
        np.testing.assert_allclose(position, C @ p, atol=1e-12)
        np.testing.assert_allclose(Rotation.from_quat(quat).as_matrix(), C @ R @ C.T, atol=1e-12)


def test_only_poses_that_can_be_trusted_come_through():
    script = [[TrackerPose('a', state, moved(0.1 * k))] for k, state in enumerate(TrackingState)]
    trackers = Trackers(ScriptedBackend(script))
    samples = [sample for _ in range(len(TrackingState)) for sample in poses(trackers.poll())]
    assert samples == [('a', [0.0, 0.0, 0.0])]
    assert trackers.trackers['a'].untracked == len(TrackingState) - 1
    assert trackers.trackers['a'].health.received == 1


def test_same_pose_again_is_polling_too_fast():
    trackers = Trackers(
        ScriptedBackend([[TrackerPose('a', TrackingState.OK, moved(x))] for x in (0.0, 0.0, 0.0, 0.1)])
    )
    assert [len(trackers.poll()) for _ in range(4)] == [1, 0, 0, 1]
    assert trackers.trackers['a'].health.duplicate == 2


@pytest.mark.parametrize('bad', [float('nan'), float('inf'), 3.0])
def test_pose_that_is_no_rotation_is_malformed(bad):
    matrix = ((bad, 0.0, 0.0, 0.0), *IDENTITY[1:])
    trackers = Trackers(ScriptedBackend([[TrackerPose('a', TrackingState.OK, matrix)]]))
    assert trackers.poll() == []
    assert trackers.trackers['a'].health.malformed == 1


def test_lost_connection_is_closed_and_tried_again():
    good = [TrackerPose('a', TrackingState.OK, IDENTITY)]
    later = [TrackerPose('a', TrackingState.OK, moved(1.0))]
    backend = ScriptedBackend([good, DeviceError('gone'), later], connects=[None, DeviceError('still gone')])
    trackers = Trackers(backend)
    assert len(trackers.poll()) == 1
    assert trackers.poll() == []
    assert trackers.problem == 'gone'
    assert trackers.trackers['a'].state is TrackingState.DISCONNECTED
    samples, end = [], time.monotonic() + 30
    while not samples and time.monotonic() < end:
        samples = poses(trackers.poll())
        time.sleep(0.01)
    assert samples == [('a', [0.0, -1.0, 0.0])]
    assert (trackers.reconnects, trackers.problem) == (1, '')


def test_poses_come_through_the_calls_of_openvr():
    with SteamVr() as steam_vr:
        samples = steam_vr.samples_of(*SERIALS) + steam_vr.samples_of(*SERIALS)
    assert {name for name, _ in samples} == set(SERIALS)
    assert heights_belong_to_serials(samples)
    forward = [p_WB[0] for name, p_WB in samples if name == SERIALS[0]]
    assert forward == sorted(forward)
    assert forward[-1] > forward[0]


def test_stand_in_without_the_package_openvr_works_alike(monkeypatch):
    monkeypatch.setattr(openvr_module, '_structures', None)
    with SteamVr() as steam_vr:
        assert heights_belong_to_serials(steam_vr.samples_of(*SERIALS))


def test_own_structures_have_the_layout_of_the_package_openvr():
    openvr = pytest.importorskip('openvr')
    own = openvr_module._OWN_STRUCTURES.TrackedDevicePose_t
    assert ctypes.sizeof(own) == ctypes.sizeof(openvr.TrackedDevicePose_t)
    for name in ('eTrackingResult', 'bPoseIsValid', 'bDeviceIsConnected', 'mDeviceToAbsoluteTracking'):
        assert getattr(own, name).offset == getattr(openvr.TrackedDevicePose_t, name).offset
    assert openvr_module._OWN_STRUCTURES.VREvent_t.eventType.offset == openvr.VREvent_t.eventType.offset


def test_universe_moves_the_origin():
    heights = {}
    for universe in ('standing', 'seated'):
        with SteamVr(universe) as steam_vr:
            samples = steam_vr.samples_of(SERIALS[0])
            heights[universe] = next(p_WB[2] for name, p_WB in samples if name == SERIALS[0])
    assert heights['standing'] - heights['seated'] == pytest.approx(1.2)


def test_unknown_universe_is_refused():
    with pytest.raises(ValueError, match="universe must be one of seated, standing, raw, got 'flat'"):
        OpenVrBackend('flat')


def test_tracker_out_of_view_is_not_published_and_returns():
    with SteamVr() as steam_vr:
        steam_vr.samples_of(*SERIALS)
        steam_vr.faults.untracked = frozenset({SERIALS[1]})
        steam_vr.until(lambda: steam_vr.trackers.trackers[SERIALS[1]].state is TrackingState.OUT_OF_RANGE)
        samples = steam_vr.samples_of(SERIALS[0], SERIALS[2])
        assert {name for name, _ in samples} == {SERIALS[0], SERIALS[2]}
        assert steam_vr.trackers.trackers[SERIALS[1]].untracked > 0
        steam_vr.faults.clear()
        steam_vr.samples_of(*SERIALS)


def test_tracker_switched_off_is_disconnected():
    with SteamVr() as steam_vr:
        steam_vr.samples_of(*SERIALS)
        steam_vr.missing = {SERIALS[0]}
        steam_vr.until(lambda: steam_vr.trackers.trackers[SERIALS[0]].state is TrackingState.DISCONNECTED)
        steam_vr.missing = set()
        steam_vr.samples_of(*SERIALS)


def test_names_replace_the_serials_they_are_given_for():
    script = [
        [TrackerPose(SERIALS[0], TrackingState.OK, moved(x)), TrackerPose('b', TrackingState.OK, moved(x))]
        for x in (1.0, 2.0)
    ]
    trackers = Trackers(ScriptedBackend(script), names={SERIALS[0]: 'tip', SERIALS[1]: 'base'})
    assert [frame.names for frame in trackers.poll()] == [('tip', 'b')]
    assert trackers.status().level == WARN
    assert trackers.status().message == 'base disconnected'
    assert trackers.status().values['tip.received'] == '1'


def test_restart_with_other_indices_keeps_the_serials():
    with SteamVr() as steam_vr:
        steam_vr.samples_of(*SERIALS)
        steam_vr.faults.restart = True
        steam_vr.until(lambda: steam_vr.trackers.reconnects >= 1)
        assert heights_belong_to_serials(steam_vr.samples_of(*SERIALS))


def test_indices_that_change_while_connected_keep_the_serials():
    with SteamVr() as steam_vr:
        steam_vr.samples_of(*SERIALS)
        steam_vr.emulator._serials.reverse()
        samples = steam_vr.run(0.1) + steam_vr.samples_of(*SERIALS)
    assert heights_belong_to_serials(samples)


def test_silent_steam_vr_is_a_problem_until_it_returns():
    with SteamVr() as steam_vr:
        steam_vr.samples_of(*SERIALS)
        steam_vr.faults.silent = True
        steam_vr.until(lambda: 'SteamVR' in steam_vr.trackers.problem)
        steam_vr.faults.silent = False
        steam_vr.samples_of(*SERIALS)
        steam_vr.until(lambda: steam_vr.trackers.problem == '')


def test_damaged_state_changes_nothing():
    with SteamVr() as steam_vr:
        steam_vr.samples_of(*SERIALS)
        steam_vr.faults.corrupt = 0.5
        samples = steam_vr.run(0.1) + steam_vr.samples_of(*SERIALS)
    assert heights_belong_to_serials(samples)


def test_absent_steam_vr_is_one_clear_line():
    trackers = Trackers(OpenVrBackend(module=OpenVrModule(port=9)))
    assert trackers.poll() == []
    assert trackers.problem == 'SteamVR does not answer (Init_NoServerForBackgroundApp): is it running?'


def test_real_package_without_steam_vr_is_one_clear_line():
    pytest.importorskip('openvr')
    with pytest.raises(DeviceError, match=r'SteamVR does not answer \(Init_.*\): is it running\?'):
        OpenVrBackend().connect()


def test_missing_package_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, 'openvr', None)
    with pytest.raises(DeviceError, match='pip install openvr'):
        OpenVrBackend().connect()
