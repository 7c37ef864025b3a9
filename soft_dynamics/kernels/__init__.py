"""Compiled recursions over a chain of elements: tuples and arrays in, arrays out, no class of the packages.

Nothing is imported here: numba is slow to load, and many modules of the suite need none of it.
"""
