"""Recorded runs of a robot: the streams of a bag, and the coordinates on an even grid of times."""
