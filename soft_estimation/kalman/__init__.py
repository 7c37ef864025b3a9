"""The model-based Kalman filter: the robot's dynamics as its process, sensors as its measurements.

Some modules here are compiled, so nothing is imported here.
"""
