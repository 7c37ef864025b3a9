"""Fiber shape sensors: protocol adapters, curvature from strain, curve from curvature."""
