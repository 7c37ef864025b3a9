"""OptiTrack motion capture: `mocap/frame`, and `mocap/<body>/pose` for every rigid body that Motive tracks.

In trouble the node stays up, publishes nothing it does not know, tells it on `/diagnostics`, and recovers:

- no frames, or the same frame again and again: ERROR after `stale_after`, a new connection twice a second;
- lost, doubled, late or damaged frames, packets from another computer: counted; the good frames go on;
- a body out of view: its frames are counted, WARN after `stale_after`; the other bodies go on;
- Motive's clock jumps: stamps are the time of arrival until the new offset is known, within half a second;
- Motive restarts, or its list of bodies or version changes: nothing until names and version are read anew.
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
    """Publishes the tracked bodies of each new frame, stamped with the time of exposure."""

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
