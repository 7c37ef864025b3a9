"""Common code of all nodes: parameters, start and stop, lifecycle, QoS, conversions, diagnostics."""
