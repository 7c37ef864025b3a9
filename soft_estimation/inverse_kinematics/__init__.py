"""From measured poses and fiber shapes to the coordinates of a robot.

Some modules here are compiled, so nothing is imported here.
"""
