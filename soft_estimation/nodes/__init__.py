"""ROS 2 nodes: thin shells around the core modules."""

import os

os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')  # for small matrices a second thread only costs time
