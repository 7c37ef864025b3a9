"""One line in the log for a mistake of the user, a traceback for a mistake of ours."""

from __future__ import annotations

import traceback
from typing import Any

from rclpy.exceptions import ParameterException

from soft_dynamics.errors import SoftRobotError

USER_ERRORS = (ValueError, OSError, SoftRobotError, ParameterException)
"""What a wrong parameter, a missing file, a taken port or an absent device raises."""


def report(logger: Any, what: str, error: Exception) -> None:
    """Log `what: error`, a line per problem; the traceback at level debug, unless the mistake is ours."""
    trace = ''.join(traceback.format_exception(error))
    if isinstance(error, USER_ERRORS):
        for line in str(error).splitlines():
            logger.error(f'{what}: {line}')
        logger.debug(trace)
    else:
        logger.error(f'{what}: {trace}')
