"""What stands between any controller and the valves: plausible states and references, and a state machine.

Some modules here are compiled, so nothing is imported here.
"""
