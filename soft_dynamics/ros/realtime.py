"""Real-time priority: parameter `realtime_priority` of every node.

The nodes of a control loop are awake for a millisecond and then wait. On a busy computer an ordinary one waits for the
CPU behind whoever computes just then; one with real-time priority goes first, and others notice little of it. On an
idle computer the CPU itself sleeps, and to wake it takes longer than the rest of the way from one process to the next.

A node that has time (`can_wait`: the pressure bridge, the virtual rig) takes one less than it is given, so that it does
not hold up those on the way from sensor to command.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

from rcl_interfaces.msg import IntegerRange, ParameterDescriptor
from rclpy.node import Node

NAME = 'realtime_priority'
DESCRIPTION = 'of all threads (SCHED_FIFO), 1 to 99; 0: ordinary'
_WAKE_UP_LIMIT = Path('/dev/cpu_dma_latency')  # holds as long as the file is open (Linux, PM QoS)


def declare_priority(node: Node) -> None:
    """Declare the parameter."""
    descriptor = ParameterDescriptor(
        description=DESCRIPTION,
        read_only=True,
        integer_range=[IntegerRange(from_value=0, to_value=99, step=1)],
    )
    node.declare_parameter(NAME, 0, descriptor)


def take_priority(node: Node) -> None:
    """Give the process the priority that the node is to have, or one line if that is not allowed."""
    priority = node.get_parameter(NAME).value if node.has_parameter(NAME) else 0
    if not priority:
        return
    try:
        raise_priority(max(priority - getattr(node, 'can_wait', False), 1))
        keep_awake()
    except PermissionError:
        node.get_logger().warning(
            f'{NAME} {priority} is not allowed: going on with ordinary priority (rtprio in limits.conf allows it)'
        )


def raise_priority(priority: int) -> None:
    """Let all threads of this process, those of DDS too, go before ordinary ones; PermissionError if they may not."""
    for thread in Path('/proc/self/task').iterdir():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(priority))


def keep_awake() -> None:
    """Let no core sleep so deep that to wake takes time, as long as this process lives; if that is allowed."""
    with suppress(OSError):
        file = os.open(_WAKE_UP_LIMIT, os.O_WRONLY | os.O_CLOEXEC)  # never closed: that would end it
        os.write(file, struct.pack('i', 0))  # [us]
