"""OpenVR backend; needs the package `openvr` and a running SteamVR."""

from __future__ import annotations

import importlib
import time
from typing import Any

from soft_dynamics.errors import one_line
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.vive.backend import Matrix34, TrackerPose, TrackingState

UNIVERSES = {'seated': 0, 'standing': 1, 'raw': 2}

_BACKGROUND = 3  # application type that does not start SteamVR or keep it alive
_MAX_DEVICES = 64
_LONGEST_SERIAL = 64  # characters
_GENERIC_TRACKER = 3  # device class
_SERIAL_NUMBER = 1002  # property
_ACTIVATED, _DEACTIVATED, _QUIT = 100, 101, 700  # events
_STATES = {
    1: TrackingState.INVALID,
    100: TrackingState.CALIBRATING,
    101: TrackingState.CALIBRATING,
    200: TrackingState.OK,
    201: TrackingState.OUT_OF_RANGE,
    300: TrackingState.ROTATION_ONLY,
}


class OpenVrBackend:
    """Reads trackers by serial number; the device index of OpenVR changes when a tracker reconnects.

    universe: key of UNIVERSES. module: replaces the package `openvr` (default: import it).
    """

    LOOK_AGAIN_S = 1.0  # search again for trackers whose activation event was missed

    def __init__(self, universe: str = 'standing', module: Any = None) -> None:
        if universe not in UNIVERSES:
            raise ValueError(f'universe must be one of {", ".join(UNIVERSES)}, got {universe!r}')
        self._universe = UNIVERSES[universe]
        self._openvr = module
        self._system: Any = None
        self._serials: dict[int, str] = {}
        self._looked_t = 0.0

    def connect(self) -> None:
        if self._openvr is None:
            self._openvr = _import_openvr()
        try:
            self._system = self._openvr.init(_BACKGROUND)
        except self._openvr.error_code.OpenVRError as error:
            reason = type(error).__name__.removeprefix('InitError_')
            raise DeviceError(f'SteamVR does not answer ({reason}): is it running?') from error
        self._poses = (self._openvr.TrackedDevicePose_t * _MAX_DEVICES)()
        self._event = self._openvr.VREvent_t()
        self._look()

    def devices(self) -> list[str]:
        return list(self._serials.values())

    def poses(self) -> list[TrackerPose]:
        if self._system is None:
            raise DeviceError('SteamVR is not connected')
        self._system.getDeviceToAbsoluteTrackingPose(self._universe, 0.0, self._poses)
        if self._is_reordered():
            return []  # it is unclear which pose belongs to which tracker
        return [_tracker_pose(serial, self._poses[index]) for index, serial in self._serials.items()]

    def close(self) -> None:
        if self._system is not None:
            self._system = None
            self._openvr.shutdown()

    def _is_reordered(self) -> bool:
        """Handle the events; return whether the indices of the trackers changed."""
        is_changed = time.monotonic() - self._looked_t > self.LOOK_AGAIN_S
        while self._system.pollNextEvent(self._event):
            if self._event.eventType == _QUIT:
                self._system.acknowledgeQuit_Exiting()  # otherwise SteamVR kills this process
                raise DeviceError('SteamVR has quit')
            is_changed |= self._event.eventType in (_ACTIVATED, _DEACTIVATED)
        before = self._serials
        if is_changed:
            self._look()
        return self._serials != before

    def _look(self) -> None:
        """Update the map from index to serial number."""
        self._looked_t = time.monotonic()
        self._serials = {}
        for index in range(_MAX_DEVICES):
            if self._system.getTrackedDeviceClass(index) != _GENERIC_TRACKER:
                continue
            try:
                serial = self._system.getStringTrackedDeviceProperty(index, _SERIAL_NUMBER)
            except self._openvr.error_code.OpenVRError:
                continue  # disconnected meanwhile; the next search finds it again
            self._serials[index] = one_line(serial, _LONGEST_SERIAL)


def _import_openvr() -> Any:
    try:
        return importlib.import_module('openvr')
    except ImportError as error:
        raise DeviceError(f'the package openvr is missing ({error}): pip install openvr') from error


def _tracker_pose(serial: str, pose: Any) -> TrackerPose:
    matrix: Matrix34 = tuple(tuple(row) for row in pose.mDeviceToAbsoluteTracking.m)
    if not pose.bDeviceIsConnected:
        state = TrackingState.DISCONNECTED
    else:
        state = _STATES.get(pose.eTrackingResult, TrackingState.INVALID)
        if state is TrackingState.OK and not pose.bPoseIsValid:
            state = TrackingState.INVALID
    return TrackerPose(serial, state, matrix)
