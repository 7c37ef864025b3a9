"""The command line, as of `ros2 launch`."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from soft_dynamics import strict_yaml
from tools.launcher import ament
from tools.launcher.errors import LaunchError
from tools.launcher.launch_file import ACTIONS, TAGS
from tools.launcher.parameters import Value
from tools.launcher.plan import declared_arguments, plan
from tools.launcher.process import Process
from tools.launcher.substitution import ARITY
from tools.launcher.supervisor import Supervisor

INSTALL = Path(__file__).resolve().parents[2] / 'install'

NODE_ATTRIBUTES = textwrap.fill(
    ', '.join((*TAGS['node'].required, *TAGS['node'].optional)), width=90, subsequent_indent=' ' * 19
)
HELP = f"""\
supported in launch files:
  actions          {', '.join(ACTIONS)}
  <node> has       {NODE_ATTRIBUTES}
  <node> holds     {', '.join(TAGS['node'].children)}
  substitutions    {', '.join(ARITY)}

Packages are found through AMENT_PREFIX_PATH, or in this project's install/ if that is not set. Nodes get
the environment of this command; ROS_AUTOMATIC_DISCOVERY_RANGE is LOCALHOST unless it is set. Without
output="screen", stdout of a node is not shown (stderr always is). No log files are written.

Ctrl-C, SIGTERM and SIGHUP end all nodes: SIGINT at once, SIGTERM after 5 s, SIGKILL after another 5 s
(other times: sigterm_timeout:=<seconds>, sigkill_timeout:=<seconds>). Child processes of a node end with it.

exit code:
  0  all nodes ended cleanly, or were stopped by a signal to this command
  1  a node could not be started, ended with an exit code other than 0 before the shutdown and was not
     restarted (respawn), or had to be killed
  2  wrong command line or launch file; nothing was started
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_intermixed_args(arguments)
    environment = dict(os.environ)
    environment.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    if not environment.get('AMENT_PREFIX_PATH'):
        environment['AMENT_PREFIX_PATH'] = str(INSTALL)
    try:
        file, values = _file_and_values(options.package_or_file, options.rest, environment)
        if options.show_args:
            _show_arguments(file, values, environment)
            return 0
        nodes = plan(file, values, environment)
    except LaunchError as error:
        print(f'launch: {error}', file=sys.stderr)
        return 2
    if options.print:
        for node in nodes:
            print(f'[{node.label}] {shlex.join(node.command(_as_arguments))}')
        return 0
    if options.show_all:
        nodes = [replace(node, shows_stdout=True) for node in nodes]
    return Supervisor([Process(node) for node in nodes], options.debug).run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='launch.py',
        usage='%(prog)s [options] (package launch_file | path/to/launch_file) [name:=value ...]',
        description='Run an XML launch file like `ros2 launch`, with the subset of actions that this suite uses.',
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('package_or_file', help='package that holds the launch file, or path of the file')
    parser.add_argument('rest', nargs='*', help='name of the launch file if a package is given; name:=value')
    parser.add_argument(
        '-s', '--show-args', action='store_true', help='show the arguments of the launch file'
    )
    parser.add_argument('-p', '--print', action='store_true', help='print the nodes that would be started')
    parser.add_argument(
        '-d', '--debug', action='store_true', help='print the full command line of every node'
    )
    parser.add_argument('-a', '--show-all', action='store_true', help='show the stdout of every node')
    return parser


def _file_and_values(
    package_or_file: str, rest: list[str], environment: dict[str, str]
) -> tuple[Path, dict[str, str]]:
    if Path(package_or_file).is_file():
        file = Path(package_or_file)
    elif '/' in package_or_file or package_or_file.endswith('.xml'):
        raise LaunchError(f'the launch file {package_or_file!r} does not exist')
    elif not rest or ':=' in rest[0]:
        raise LaunchError(f'give the launch file in package {package_or_file!r}')
    else:
        file, rest = ament.launch_file(package_or_file, rest[0], environment), rest[1:]
    values = {}
    for text in rest:
        name, _, value = text.partition(':=')
        if not name or not value:
            raise LaunchError(f'malformed launch argument {text!r}, expected <name>:=<value>')
        values[name] = value
    return file, values


def _show_arguments(file: Path, values: dict[str, str], environment: dict[str, str]) -> None:
    arguments = declared_arguments(file, values, environment)
    print("Arguments (pass arguments as '<name>:=<value>'):")
    for argument in arguments:
        print(
            f"\n    '{argument.name}':{'*' if argument.conditional else ''}\n        {argument.description}"
        )
        if argument.default is not None:
            print(f"        (default: '{argument.default}')")
    if not arguments:
        print('\n  No arguments.')
    if any(argument.conditional for argument in arguments):
        print('\n* argument(s) which are only used if specific conditions occur')


def _as_arguments(parameters: dict[str, Value]) -> list[str]:
    words = []
    for name, value in parameters.items():
        text, *_ = strict_yaml.dump(value, default_flow_style=True, width=float('inf')).splitlines()
        words += ['-p', f'{name}:={text}']
    return words
