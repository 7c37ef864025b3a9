"""Real-time priority: parameter `realtime_priority` of every node.

The nodes of a control loop are awake for a millisecond and then wait. On a busy computer an ordinary one waits for the
CPU behind whoever computes just then; one with real-time priority goes first, and others notice little of it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rcl_interfaces.msg import IntegerRange, ParameterDescriptor
from rclpy.node import Node

NAME = 'realtime_priority'


def declare_priority(node: Node) -> None:
    """Declare the parameter."""
    descriptor = ParameterDescriptor(
        description='of all threads (SCHED_FIFO), 1 to 99; 0: ordinary [-]',
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
        raise_priority(priority)
    except PermissionError:
        node.get_logger().warning(
            f'{NAME} {priority} is not allowed: going on with ordinary priority (rtprio in limits.conf allows it)'
        )


def raise_priority(priority: int) -> None:
    """Let all threads of this process, those of DDS too, go before ordinary ones; PermissionError if they may not."""
    for thread in Path('/proc/self/task').iterdir():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(priority))
