"""HTC Vive trackers: publishes `vive/frame`, and `vive/<tracker>/pose` for each tracker that SteamVR tracks.

On a fault the node keeps running, reports it on `/diagnostics` and recovers:

- SteamVR is absent, quits or falls silent: ERROR; the node reconnects within 5 s after it returns;
- a tracker out of range, calibrating, switched off or without position: it counts these polls, WARN after half a
  second; other trackers continue;
- the same pose again: it counts a duplicate, WARN after half a second, because a real tracker always trembles.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from soft_dynamics.diagnostics import Status
from soft_dynamics.ros.node_main import run_node
from soft_hw_bridge.link.poll_schedule import Schedule
from soft_hw_bridge.nodes.bridge_base import BridgeNode
from soft_hw_bridge.nodes.pose_publishers import PosePublishers
from soft_hw_bridge.vive.openvr_backend import UNIVERSES, OpenVrBackend
from soft_hw_bridge.vive.trackers import Trackers


@dataclass(frozen=True)
class Config:
    """Parameters of the node."""

    trackers: tuple[str, ...] = field(
        default=(),
        metadata={'doc': 'names of trackers, each as serial=name; default name: the serial number'},
    )
    universe: str = field(
        default='standing', metadata={'doc': 'origin of the poses: standing, seated or raw'}
    )
    rate: float = field(default=250.0, metadata={'doc': 'rate of poses', 'unit': 'Hz'})
    frame_id: str = field(default='vive_world', metadata={'doc': 'frame of the poses; x is forward, z is up'})
    stand_in_port: int = field(
        default=0, metadata={'doc': 'UDP port of an emulated SteamVR on this computer; 0: the real SteamVR'}
    )

    def __post_init__(self) -> None:
        if self.universe not in UNIVERSES:
            raise ValueError(f'universe must be one of {", ".join(UNIVERSES)}, got {self.universe!r}')
        if not 0 < self.rate <= 1000:
            raise ValueError(f'rate must be in (0, 1000], got {self.rate}')
        if not 0 <= self.stand_in_port < 65536:
            raise ValueError(f'stand_in_port must be in 0..65535, got {self.stand_in_port}')
        if len(set(self.names.values())) < len(self.trackers):
            raise ValueError(f'trackers must have different serials and names, got {list(self.trackers)}')

    @property
    def names(self) -> dict[str, str]:
        """Names by serial number."""
        names = {}
        for entry in self.trackers:
            serial, _, name = entry.partition('=')
            if not serial or not name:
                raise ValueError(f'trackers must have the form serial=name, got {entry!r}')
            names[serial] = name
        return names


class ViveBridge(BridgeNode[Trackers]):
    """Publishes each new pose of each tracker with the time of the poll."""

    config: Config

    def __init__(self) -> None:
        super().__init__('vive_bridge', Config)

    def open_device(self) -> tuple[Trackers, str]:
        config = self.config
        backend = OpenVrBackend(config.universe, _stand_in(config.stand_in_port))
        self._poses = PosePublishers(self, 'vive', config.frame_id)
        self._schedule = Schedule(config.rate, time.monotonic())
        return Trackers(backend, config.names, self.now_ns), 'SteamVR'

    def poll_device(self, device: Trackers) -> None:
        frames = device.poll()
        if self.is_active:
            self._poses.publish(frames)
        t = time.monotonic()
        self._schedule.done(t, found=bool(frames))
        time.sleep(max(self._schedule.due - t, 0.0))

    def supervise_device(self, device: Trackers) -> Status:
        self._poses.announce(device.trackers.copy())
        return device.status()

    def close_device(self, device: Trackers) -> None:
        device.close()
        self._poses.destroy()


def _stand_in(port: int) -> object | None:
    if not port:
        return None
    from soft_hw_bridge.emulators.openvr_module import OpenVrModule

    return OpenVrModule(port)


def main(args: list[str] | None = None) -> int:
    return run_node(ViveBridge, args)
