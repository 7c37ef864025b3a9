"""The commands of the virtual rig."""
