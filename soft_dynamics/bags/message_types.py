"""Message types of ROS 2 Jazzy, and of .msg files in ament prefixes and this suite."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from soft_dynamics.description.robot_files import SHARE, share_folder
from soft_dynamics.errors import shown


def ros_types() -> Typestore:
    """Types of ROS 2 Jazzy. A reader adds other types with the definitions in its bag, which may be older."""
    return get_typestore(Stores.ROS2_JAZZY)


def standard_types() -> Typestore:
    """Types of ROS 2 Jazzy and of this suite."""
    store = ros_types()
    for file in sorted((share_folder() / 'msg').glob('*.msg')):
        register(store, f'{SHARE.name}/msg/{file.stem}')
    return store


def register(store: Typestore, msgtype: str) -> None:
    """Register a type and the types it contains. Raises ValueError if there is no definition."""
    if msgtype in store.types:
        return
    types = get_types_from_msg(_definition(msgtype), msgtype)
    for used in sorted(set(re.findall(r"'(\w+/msg/\w+)'", repr(types))) - {msgtype}):
        register(store, used)
    store.register(types)


def register_text(store: Typestore, msgtype: str, text: str) -> None:
    """Register a type from the definition in a bag, with the types it contains."""
    found: dict[str, Any] = get_types_from_msg(text, msgtype)
    store.register({name: fields for name, fields in found.items() if name not in store.types})


def _definition(msgtype: str) -> str:
    if not re.fullmatch(r'\w+/msg/\w+', msgtype):
        raise ValueError(f'expected a type package/msg/Name, got {shown(msgtype)}')
    package, _, name = msgtype.split('/')
    prefixes = [Path(p) for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    folders = [prefix / 'share' / package / 'msg' for prefix in prefixes]
    if package == SHARE.name:
        folders.append(share_folder() / 'msg')
    for folder in folders:
        if (folder / f'{name}.msg').is_file():
            return (folder / f'{name}.msg').read_text(encoding='utf-8')
    raise ValueError(
        f'no definition of {msgtype}: expected share/{package}/msg/{name}.msg on AMENT_PREFIX_PATH'
    )
