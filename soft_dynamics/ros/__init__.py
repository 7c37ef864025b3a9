"""What all nodes share: parameters, start and stop, lifecycle, QoS, conversions, diagnostics."""
