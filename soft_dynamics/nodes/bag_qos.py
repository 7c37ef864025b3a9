"""Convert quality of service between rclpy and bags."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

_FOREVER = QosTime(9223372036, 854775807)
_DEPTH = 1000  # queue length for slow subscribers
_LATCHED = 10  # messages kept for late subscribers of a latched topic, as in `ros2 bag play`


def recorded_qos(qos: QoSProfile) -> Qos:
    """Describe the QoS of a publisher for a bag."""
    reliable = qos.reliability == ReliabilityPolicy.RELIABLE
    latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
    return Qos(
        QosHistory.KEEP_LAST,
        max(qos.depth, 1),
        QosReliability.RELIABLE if reliable else QosReliability.BEST_EFFORT,
        QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        _FOREVER,
        _FOREVER,
        QosLiveliness.AUTOMATIC,
        _FOREVER,
        False,
    )


def played_qos(recorded: Sequence[Qos]) -> QoSProfile:
    """QoS for playing a topic; reliable if none was recorded."""
    reliable = all(qos.reliability != QosReliability.BEST_EFFORT for qos in recorded)
    latched = bool(recorded) and all(qos.durability == QosDurability.TRANSIENT_LOCAL for qos in recorded)
    return QoSProfile(
        depth=max(_LATCHED, *(qos.depth for qos in recorded)) if latched else _DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )
