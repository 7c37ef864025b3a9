"""Real-time priority of a node: the parameter `realtime_priority`.

The nodes of a control loop run for a millisecond and then wait. On a busy computer, a normal process waits for the CPU
while others compute; one with real-time priority runs first, with little effect on the others. On an idle computer, the
CPU sleeps, and waking it takes longer than the rest of the path between two processes.

A node that can wait (`can_wait`: the pressure bridge, the virtual rig) uses the given priority minus one, so that it
does not delay the nodes between sensor and command.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

from rcl_interfaces.msg import IntegerRange, ParameterDescriptor
from rclpy.node import Node

NAME = 'realtime_priority'
DESCRIPTION = 'real-time priority of all threads (SCHED_FIFO), 1 to 99; 0: normal'
_WAKE_UP_LIMIT = Path('/dev/cpu_dma_latency')  # effective while the file is open (Linux, PM QoS)


def declare_priority(node: Node) -> None:
    """Declare the parameter."""
    descriptor = ParameterDescriptor(
        description=DESCRIPTION,
        read_only=True,
        integer_range=[IntegerRange(from_value=0, to_value=99, step=1)],
    )
    node.declare_parameter(NAME, 0, descriptor)


def take_priority(node: Node) -> None:
    """Set the priority of the process from the parameter; log one line if this is not permitted."""
    priority = node.get_parameter(NAME).value if node.has_parameter(NAME) else 0
    if not priority:
        return
    try:
        raise_priority(max(priority - getattr(node, 'can_wait', False), 1))
        keep_awake()
    except PermissionError:
        node.get_logger().warning(
            f'{NAME} {priority} is not allowed: continuing with normal priority (rtprio in limits.conf allows it)'
        )


def raise_priority(priority: int) -> None:
    """Give all threads of this process, including DDS, real-time priority. Raises PermissionError if not permitted."""
    for thread in Path('/proc/self/task').iterdir():
        with suppress(ProcessLookupError):  # the thread has ended meanwhile
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(priority))


def keep_awake() -> None:
    """Keep all cores out of deep sleep while this process runs, if permitted."""
    with suppress(OSError):
        file = os.open(
            _WAKE_UP_LIMIT, os.O_WRONLY | os.O_CLOEXEC
        )  # stays open: closing it would end the effect
        os.write(file, struct.pack('i', 0))  # [us]
