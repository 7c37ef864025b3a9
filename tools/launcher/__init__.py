"""A small runner for the subset of ROS 2 XML launch files that this suite uses.

`launch_file` reads a file and rejects everything outside the subset. `substitution` and `scope` expand $(...). `plan`
and `node` turn file and arguments into the nodes to start. `supervisor` and `process` start, watch and stop them.
`command_line` is the user interface. The reference is launch 3.4 with launch_ros 0.26, as in ROS 2 Jazzy.
"""
