"""Bridges to the devices of the rig, and a virtual rig that speaks their protocols."""
