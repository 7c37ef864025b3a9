"""Small nodes that the tests of the shared ROS layer run as processes."""
