"""From a reference to safe chamber pressures."""
