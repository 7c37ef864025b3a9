"""Fiber shape sensors: protocols behind one adapter interface, strain to curvature to curve."""
