"""Devices that exist only on the network: what the bridges talk to in tests and in the virtual rig."""
