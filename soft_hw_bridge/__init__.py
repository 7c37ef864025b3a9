"""Bridges to the devices of the rig, and a virtual rig with the same protocols."""
