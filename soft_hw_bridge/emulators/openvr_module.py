"""Replacement of the package `openvr` that talks to an OpenVrEmulator instead of SteamVR."""

from __future__ import annotations

import ctypes
import select
import socket
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

from soft_hw_bridge.emulators.openvr import HELLO, MAX_DATAGRAM, VrDevice, decode

try:
    import openvr as _structures
except ImportError:  # use structures with the same layout
    _structures = None

_HELLO_S = 0.25
_SILENCE_S = 0.5  # silence after which SteamVR counts as gone
_ACTIVATED, _DEACTIVATED, _QUIT = 100, 101, 700  # events
_SERIAL_NUMBER = 1002  # property
_ORIGIN_HEIGHT = {0: 1.2, 1: 0.0, 2: 0.5}  # [m] of the seated, standing and raw universe above the floor


class OpenVrModule:
    """Replaces the package: pass it to a client instead of `import openvr`."""

    def __init__(self, port: int, address: str = '127.0.0.1') -> None:
        structures = _structures or _OWN_STRUCTURES
        self.TrackedDevicePose_t = structures.TrackedDevicePose_t
        self.VREvent_t = structures.VREvent_t
        self.error_code = structures.error_code
        self._server = (address, port)
        self._system: VrSystem | None = None

    def init(self, application_type: int) -> VrSystem:
        self._system = VrSystem(self._server, self.error_code)
        return self._system

    def shutdown(self) -> None:
        if self._system:
            self._system.close()
            self._system = None


class VrSystem:
    """Replaces IVRSystem."""

    def __init__(self, server: tuple[str, int], error_code: Any) -> None:
        self._server = server
        self._error_code = error_code
        self._devices: dict[int, VrDevice] = {}
        self._events: deque[int] = deque()
        self._heard_t = time.monotonic()
        self._hello_t = float('-inf')
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((server[0], 0))
        self._socket.setblocking(False)
        self._refresh()
        select.select([self._socket], [], [], 2 * _HELLO_S)
        self._refresh()
        if not self._devices:
            self.close()
            raise error_code.InitError_Init_NoServerForBackgroundApp(121, f'nothing answers at {server}')
        self._events.clear()

    def close(self) -> None:
        self._socket.close()

    def getTrackedDeviceClass(self, index: int) -> int:
        return self._devices[index].device_class if index in self._devices else 0

    def getStringTrackedDeviceProperty(self, index: int, prop: int) -> str:
        if index not in self._devices or prop != _SERIAL_NUMBER:
            raise self._error_code.TrackedProp_UnknownProperty(3, f'device {index}, property {prop}')
        return self._devices[index].serial

    def getDeviceToAbsoluteTrackingPose(self, universe: int, predicted_s: float, poses: Any) -> None:
        self._refresh()
        for index, pose in enumerate(poses):
            device = self._devices.get(index)
            pose.bDeviceIsConnected = device is not None and device.is_connected
            if device:
                pose.bPoseIsValid, pose.eTrackingResult = device.is_valid, device.result
                matrix = pose.mDeviceToAbsoluteTracking.m
                for k, value in enumerate(device.matrix):
                    matrix[k // 4][k % 4] = value
                matrix[1][3] -= _ORIGIN_HEIGHT[universe]

    def pollNextEvent(self, event: Any) -> bool:
        self._refresh()
        if not self._events:
            return False
        event.eventType = self._events.popleft()
        return True

    def acknowledgeQuit_Exiting(self) -> None: ...

    def _refresh(self) -> None:
        t = time.monotonic()
        if t - self._hello_t > _HELLO_S:
            self._hello_t = t
            self._socket.sendto(HELLO, self._server)
        while select.select([self._socket], [], [], 0)[0]:
            devices = decode(self._socket.recv(MAX_DATAGRAM))
            if devices is not None:
                self._heard_t = t
                self._take({device.slot: device for device in devices})
        if t - self._heard_t > _SILENCE_S:
            self._events.append(_QUIT)

    def _take(self, devices: dict[int, VrDevice]) -> None:
        if not devices:
            self._events.append(_QUIT)
        elif [d.serial for d in devices.values()] != [d.serial for d in self._devices.values()]:
            self._events.extend((_DEACTIVATED, _ACTIVATED))
        self._devices = devices


class _Matrix34(ctypes.Structure):
    _fields_ = (('m', (ctypes.c_float * 4) * 3),)


class _Pose(ctypes.Structure):
    _fields_ = (
        ('mDeviceToAbsoluteTracking', _Matrix34),
        ('vVelocity', ctypes.c_float * 3),
        ('vAngularVelocity', ctypes.c_float * 3),
        ('eTrackingResult', ctypes.c_uint32),
        ('bPoseIsValid', ctypes.c_bool),
        ('bDeviceIsConnected', ctypes.c_bool),
    )


class _Event(ctypes.Structure):
    _fields_ = (('eventType', ctypes.c_uint32), ('rest', ctypes.c_uint8 * 60))


class _OpenVRError(Exception): ...


_OWN_STRUCTURES = SimpleNamespace(
    TrackedDevicePose_t=_Pose,
    VREvent_t=_Event,
    error_code=SimpleNamespace(
        OpenVRError=_OpenVRError,
        InitError_Init_NoServerForBackgroundApp=type(
            'InitError_Init_NoServerForBackgroundApp', (_OpenVRError,), {}
        ),
        TrackedProp_UnknownProperty=type('TrackedProp_UnknownProperty', (_OpenVRError,), {}),
    ),
)
