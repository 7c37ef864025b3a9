"""Clocks, stamps and rates."""
