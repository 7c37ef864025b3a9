"""The exceptions of the runner."""


class LaunchError(Exception):
    """A mistake of the user; the text is the line to print."""


class LocatedError(LaunchError):
    """A LaunchError whose text begins with file and line."""
