"""What can go wrong on a device link."""


class MalformedPacket(ValueError):
    """Bytes that are not a valid packet: the only error a decoder raises, whatever it is fed."""


class DeviceError(OSError):
    """A device that is absent, silent, or answers with a refusal; the message names it and what it did."""
