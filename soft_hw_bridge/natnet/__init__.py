"""OptiTrack NatNet, versions 3.0 to 4.2: little-endian UDP between Motive and its clients."""
