"""Rates and accelerations of sampled coordinates, as they arrive or over a whole recording."""
