"""ROS 2 nodes: thin wrappers of the core modules."""
