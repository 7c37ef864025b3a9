"""From generalised forces to chamber pressures within limits, and what the valves make of them.

Some modules here are compiled, so nothing is imported here.
"""
