"""State of a soft robot from whatever the rig measures."""
