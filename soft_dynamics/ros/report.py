"""Log one line for an error of the user, and a traceback for a bug."""

from __future__ import annotations

import traceback
from typing import Any

from rclpy.exceptions import ParameterException

from soft_dynamics.errors import SoftRobotError

USER_ERRORS = (ValueError, OSError, SoftRobotError, ParameterException)
"""What a wrong parameter, a missing file, a taken port or an absent device raises."""


def report(logger: Any, what: str, error: Exception) -> None:
    """Log `what: error`, one line per problem; the traceback at level debug, or at level error for a bug."""
    trace = ''.join(traceback.format_exception(error))
    if isinstance(error, USER_ERRORS):
        for line in str(error).splitlines():
            logger.error(f'{what}: {line}')
        logger.debug(trace)
    else:
        logger.error(f'{what}: {trace}')
