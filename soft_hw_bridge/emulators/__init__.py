"""Emulated devices on the network, for tests and the virtual rig."""
