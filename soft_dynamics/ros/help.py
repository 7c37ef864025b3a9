"""Text of `--help` of a node: purpose and parameters, from its docstring and its config."""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

from rclpy.node import Node

from soft_dynamics.ros import lifecycle, realtime
from soft_dynamics.ros.parameters import describe


def help_text(node_class: type[Node]) -> str:
    """Return the text for a node whose module has a docstring and whose class has the annotation `config: Config`."""
    purpose = (sys.modules[node_class.__module__].__doc__ or '').split('\n\n')[0]
    parameters = describe(inspect.get_annotations(node_class, eval_str=True)['config'])
    if issubclass(node_class, lifecycle.ManagedNode):
        parameters['autostart:=true'] = f'true or false: {lifecycle.AUTOSTART}'
    parameters[f'{realtime.NAME}:=0'] = f'an integer: {realtime.DESCRIPTION}'
    parser = argparse.ArgumentParser(
        prog=Path(sys.argv[0]).name,
        usage='%(prog)s --ros-args -p name:=value -p name:=value ... --params-file FILE',
        description=purpose,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=40),
        add_help=False,
    )
    group = parser.add_argument_group('parameters, name:=default')
    for left, right in parameters.items():
        group.add_argument(left, help=right.replace('%', '%%'))
    return parser.format_help().rstrip()
