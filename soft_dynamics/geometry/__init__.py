"""Rotations, poses, curves and the shape of a robot, for models, estimation, control and viewers.

This package imports nothing: `quaternion` works without numba, so sensor bridges start quickly.
"""

__all__ = ['centerline', 'curve', 'disc_angles', 'quaternion', 'se3', 'so3', 'tip_path', 'tube', 'urdf']
