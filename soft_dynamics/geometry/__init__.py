"""Rotations, poses and curves, and the shape of a robot: for models, estimation, control and viewers alike.

Nothing is imported here: `quaternion` does without numba, which a sensor bridge need not wait for.
"""

__all__ = ['centerline', 'curve', 'disc_angles', 'quaternion', 'se3', 'so3', 'tip_path', 'tube', 'urdf']
