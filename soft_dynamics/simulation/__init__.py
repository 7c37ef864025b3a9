"""Motions of a robot over time under given pressures and forces."""
