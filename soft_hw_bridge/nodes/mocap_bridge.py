"""OptiTrack motion capture: publishes `mocap/frame`, and `mocap/<body>/pose` for each rigid body that Motive tracks.

On a fault the node keeps running, reports it on `/diagnostics` and recovers:

- no frames, or the same frame repeatedly: ERROR after `stale_after`; it requests the stream twice a second;
- lost, repeated, late or damaged frames, packets from another computer: it counts them and publishes the good frames;
- a body out of view: it counts its frames, WARN after `stale_after`; other bodies continue;
- the clock of Motive jumps: stamps are arrival times until the new offset is known, within half a second;
- Motive restarts, or its list of bodies or version changes: it publishes nothing until it has read names and version.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from soft_dynamics.diagnostics import Status
from soft_dynamics.ros.node_main import run_node
from soft_hw_bridge.natnet.stream import MocapConfig, MocapStream
from soft_hw_bridge.nodes.bridge_base import BridgeNode
from soft_hw_bridge.nodes.pose_publishers import PosePublishers

_POLL_TIMEOUT = 0.1  # [s]


@dataclass(frozen=True)
class Config(MocapConfig):
    """Parameters of the node."""

    frame_id: str = field(default='mocap_world', metadata={'doc': 'frame of the poses; z is up'})


class MocapBridge(BridgeNode[MocapStream]):
    """Publishes the tracked bodies of each new frame with the time of exposure."""

    config: Config

    def __init__(self) -> None:
        super().__init__('mocap_bridge', Config)

    def open_device(self) -> tuple[MocapStream, str]:
        stream = MocapStream(self.config, self.now_ns)
        self._poses = PosePublishers(self, 'mocap', self.config.frame_id)
        return stream, f'Motive at {self.config.server}:{self.config.command_port}'

    def poll_device(self, device: MocapStream) -> None:
        frames = device.poll(_POLL_TIMEOUT)
        if self.is_active:
            self._poses.publish(frames)

    def supervise_device(self, device: MocapStream) -> Status:
        self._poses.announce(device.names)
        return device.status()

    def close_device(self, device: MocapStream) -> None:
        device.close()
        self._poses.destroy()


def main(args: list[str] | None = None) -> int:
    return run_node(MocapBridge, args)
