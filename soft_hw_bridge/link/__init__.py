"""Shared parts of the device clients: reconnection, clocks, timestamps and byte streams."""
