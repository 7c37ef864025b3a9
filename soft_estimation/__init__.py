"""State estimation, model validation and parameter identification for soft robots."""

import soft_dynamics  # noqa: F401  first of all: it names the cache of compiled kernels
