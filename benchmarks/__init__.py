"""Timings of the suite against Pinocchio and MuJoCo on the same chain, in the same run: `make bench`."""
