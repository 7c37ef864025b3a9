"""The quality-of-service profiles of the suite, one per kind of topic.

A best-effort subscription receives from every publisher, a reliable one from reliable publishers only. Subscribe to
sensor streams with SENSOR.
"""

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy


def _profile(depth: int, reliability: ReliabilityPolicy, durability: DurabilityPolicy) -> QoSProfile:
    return QoSProfile(
        depth=depth, history=HistoryPolicy.KEEP_LAST, reliability=reliability, durability=durability
    )


SENSOR = _profile(5, ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE)
"""Sensor streams: a late sample is worth less than the next one."""

COMMAND = _profile(1, ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE)
"""Commands and references: every one arrives, and only the newest counts."""

STATE = _profile(10, ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE)
"""Estimated states and reports: every one arrives, in order."""

DESCRIPTION = _profile(1, ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL)
"""Descriptions: the last one reaches those who join later."""
