"""State of a soft robot from whatever the rig measures."""

import soft_dynamics  # noqa: F401  first of all: it names the cache of compiled kernels
