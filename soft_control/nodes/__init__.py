"""ROS 2 nodes: thin shells around the core modules."""
