"""The exceptions of the runner."""


class LaunchError(Exception):
    """A mistake of the user; its text is the one line to print."""


class LocatedError(LaunchError):
    """One whose text begins with file and line."""
