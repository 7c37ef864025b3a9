"""Quality of service between rclpy and bags."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

_FOREVER = QosTime(9223372036, 854775807)
_DEPTH = 1000  # messages that may wait for a slow listener
_LATCHED = (
    10  # messages for those who join a latched topic later, as `ros2 bag play` has it: the depth is not known
)


def recorded_qos(qos: QoSProfile) -> Qos:
    """What a bag says of a publisher."""
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
    """With what a topic is published again; reliable where nothing was recorded."""
    reliable = all(qos.reliability != QosReliability.BEST_EFFORT for qos in recorded)
    latched = bool(recorded) and all(qos.durability == QosDurability.TRANSIENT_LOCAL for qos in recorded)
    return QoSProfile(
        depth=max(_LATCHED, *(qos.depth for qos in recorded)) if latched else _DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )
