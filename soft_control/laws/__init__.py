"""The control laws, one module each, and what only they use.

Some modules here are compiled, so nothing is imported here.
"""
