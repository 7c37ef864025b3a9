"""Records packets, poses, states and commands of the closed loop, and matches them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.serialized import taken
from soft_dynamics.array import Array
from soft_dynamics.messages.flat_messages import FIELDS, Flat, FlatReader
from soft_hw_bridge.link.device_clock import ticks_to_ns
from soft_hw_bridge.rig.config import MocapConfig

POLL = 2e-2  # [s] DDS and the kernel stamp arrivals; more frequent reads would only disturb the loop
SOONEST = 5e-5  # [s] no controller is faster; an earlier command answers another state
MOMENTS = ('sent', 'pose', 'state', 'command', 'arrived')


class Frame(NamedTuple):
    """A packet of motion capture: stamp by the device clock, arrival [ns], positions of the bodies."""

    stamped: int
    received: int
    places: bytes


class Heard(NamedTuple):
    """A message with the times of publication and arrival [ns]."""

    message: Flat
    published: int
    received: int


@dataclass
class Ear:
    """The messages of one topic."""

    subscription: Any
    reader: FlatReader
    messages: list[Heard] = field(default_factory=list)

    def drain(self) -> None:
        """Take all waiting messages."""
        for data, info in taken(self.subscription):
            message = self.reader.read(data)
            self.messages.append(Heard(message, info['source_timestamp'], info['received_timestamp']))


class Listener:
    """Reads poses, states and commands, and the packets as a second client of the virtual Motive.

    The DDS participant for commands takes the place of the loop's next node, with its real-time priority (0: none). A
    second participant at low priority reads poses and states, whose times are in the messages.
    """

    def __init__(self, mocap_port: int, priority: int) -> None:
        import rclpy
        from soft_robot_suite.msg import BodyPoses, ChamberPressures, SoftState
        from trajectory_msgs.msg import JointTrajectory

        from soft_dynamics.ros.qos import COMMAND, SENSOR
        from soft_dynamics.ros.realtime import raise_priority
        from soft_hw_bridge.natnet.client import NatNetClient, NatNetConfig

        deep = copy(SENSOR)  # best effort: publishers do not wait for an acknowledgement
        deep.depth = 2000  # deep enough for a slow reader

        def hear(node: Any, kind: Any, topic: str) -> Ear:
            subscription = node.create_subscription(kind, topic, lambda _: None, deep)
            return Ear(subscription, FlatReader(FIELDS[kind.__name__]))

        next_node = rclpy.create_node('closed_loop_listener')
        self.commands = hear(next_node, ChamberPressures, 'pressure/command')
        self.references = next_node.create_publisher(JointTrajectory, 'reference/configuration', COMMAND)
        if priority:
            raise_priority(priority)
            os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(1))
        self._aside = rclpy.Context()  # its threads inherit the priority of this thread
        rclpy.init(context=self._aside)
        bystander = rclpy.create_node('closed_loop_bystander', context=self._aside)
        self.poses = hear(bystander, BodyPoses, 'mocap/frame')
        self.states = hear(bystander, SoftState, 'state')
        self._nodes = (next_node, bystander)
        here = '127.0.0.1'
        self._tap = NatNetClient(NatNetConfig(server=here, interface=here, command_port=mocap_port))
        self.frames: list[Frame] = []

    def close(self) -> None:
        self._tap.close()
        for node in self._nodes:
            node.destroy_node()
        self._aside.try_shutdown()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Read all topics once."""
        while not is_over():
            for ear in (self.poses, self.states, self.commands):
                ear.drain()
            for sample in self._tap.poll(0.0):
                frame, tick_hz = sample.frame, self._tap.info.tick_hz if self._tap.info else 10**9
                bodies = [body.y_up_to_z_up().p_WB for body in frame.bodies if body.is_tracked]
                stamped = ticks_to_ns(frame.transmit_ticks, tick_hz)
                self.frames.append(Frame(stamped, sample.receive_ns, np.array(bodies).tobytes()))
            time.sleep(POLL)

    def sent_ns(self) -> list[int]:
        """Return when each packet would have been on the network [ns] without delays of the virtual Motive.

        Motive stamps a frame before it encodes it, on the clock of this computer with a known drift. The shortest time
        of all frames from stamp to this socket is added to each stamp. The bridge's packet may be sent one call before
        the packet to this socket.
        """
        stamped = np.array([frame.stamped for frame in self.frames])
        since = np.rint((stamped - stamped[0]) / (1.0 + 1e-6 * MocapConfig().clock_drift)).astype(np.int64)
        received = np.array([frame.received for frame in self.frames])
        return (since + np.min(received - since)).tolist()

    @property
    def is_complete(self) -> bool:
        heard = (self.poses.messages, self.states.messages, self.commands.messages, self.frames)
        return all(len(each) > 50 for each in heard) and self.references.get_subscription_count() > 0


class Ways(NamedTuple):
    """The frames of a time: the times of their stages (frames, 5) [ns], and the number without a command."""

    moments: Array
    lost: int
    state_rate: float  # [1/s]
    sources: list[str]  # sensors used for the states
    idle: float  # [-] fraction of commands that are zero


def ways(listener: Listener, begin_ns: int, end_ns: int) -> Ways:
    """Match pose, state and command to each frame sent in a time.

    A pose belongs to a frame if its bodies have the same positions. A state belongs to a pose if it contains motion
    capture and its time is after the pose was published. A command belongs to a state if it was published after it.
    """
    poses = {heard.message.arrays[0].tobytes(): heard.published for heard in listener.poses.messages}
    states = [heard for heard in listener.states.messages if 'mocap' in heard.message.texts[3]]
    stamps = np.array([heard.message.stamp_ns for heard in states])
    commanded = np.array([heard.published for heard in listener.commands.messages])
    found, lost = [], 0
    for sent, (_, _, places) in zip(listener.sent_ns(), listener.frames, strict=True):
        if not begin_ns <= sent < end_ns:
            continue
        pose = poses.get(places)
        s = int(np.searchsorted(stamps, pose)) if pose else len(states)
        c = (
            int(np.searchsorted(commanded, states[s].published + SOONEST * 1e9))
            if s < len(states)
            else commanded.size
        )
        if c == commanded.size:
            lost += 1
            continue
        arrived = listener.commands.messages[c].received
        found.append([sent, pose, states[s].published, int(commanded[c]), arrived])
    within = [heard for heard in listener.commands.messages if begin_ns <= heard.published < end_ns]
    idle = np.mean([not heard.message.arrays[0].any() for heard in within])
    made = [heard for heard in listener.states.messages if begin_ns <= heard.published < end_ns]
    sources = sorted({source for heard in made for source in heard.message.texts[3]})
    return Ways(np.array(found), lost, len(made) / (1e-9 * (end_ns - begin_ns)), sources, float(idle))
