"""Read and write rosbag2 bags (mcap or sqlite3) without a ROS installation.

with BagWriter('run1', 'mcap') as bag:
    bag.write('/state', 'soft_robot_suite/msg/SoftState', cdr_bytes, t_ns)
with open_bag('run1') as bag:
    for message in bag.messages(['/state']):
        message.topic, message.t_ns, bag.decode(message).q
"""

from .errors import BagError
from .reading import Bag, Message, open_bag
from .samples import SampleWriter
from .writing import STORAGES, BagWriter

__all__ = ['STORAGES', 'Bag', 'BagError', 'BagWriter', 'Message', 'SampleWriter', 'open_bag']
