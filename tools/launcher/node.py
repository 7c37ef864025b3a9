"""A node to start: its <node> element and its command line."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from soft_dynamics import strict_yaml
from tools.launcher import ament
from tools.launcher.errors import LaunchError
from tools.launcher.launch_file import Element
from tools.launcher.parameters import Value, boolean, typed
from tools.launcher.scope import Scope
from tools.launcher.substitution import Call, parse

_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_NAMESPACE = re.compile(r'/|(/[A-Za-z_][A-Za-z0-9_]*)+')


@dataclass(frozen=True)
class Node:
    """A process to start, watch and stop."""

    label: str  # such as dynamics-1
    executable: tuple[str, ...]  # with launch prefix and arguments
    name: str | None
    namespace: str | None
    parameters: tuple[str | dict[str, Value], ...]  # files and inline sets, in order
    remappings: tuple[tuple[str, str], ...]
    environment: dict[str, str]
    shows_stdout: bool
    required: bool
    respawn: bool
    respawn_delay: float  # [s]
    respawn_max_retries: int  # negative: no limit
    sigterm_timeout: float  # [s] from SIGINT to SIGTERM
    sigkill_timeout: float  # [s] from SIGTERM to SIGKILL

    @property
    def parameter_key(self) -> str:
        """The node's full name in a parameter file; a wildcard if the launch file sets no name."""
        if self.name is None or self.namespace is None:
            return '/**'
        return f'{self.namespace.rstrip("/")}/{self.name}'

    def command(self, inline: Callable[[dict[str, Value]], list[str]]) -> list[str]:
        """Return the command line; `inline` gives the ROS arguments for a set of parameters."""
        command = [*self.executable, '--ros-args']
        if self.name is not None:
            command += ['-r', f'__node:={self.name}']
        if self.namespace is not None:
            command += ['-r', f'__ns:={self.namespace}']
        for parameters in self.parameters:
            command += ['--params-file', parameters] if isinstance(parameters, str) else inline(parameters)
        for source, target in self.remappings:
            command += ['-r', f'{source}:={target}']
        return command


def from_element(element: Element, scope: Scope, number: int) -> Node:
    """Return the node of a <node> element, the `number`th of the launch."""
    get, children = scope.get, element.children
    prefix = get(element, 'launch-prefix') or scope.variables.get('launch-prefix', '')
    with element.locating():
        program = ament.executable(get(element, 'pkg'), get(element, 'exec'), scope.environment)
        executable = (*_split(prefix), str(program), *_words(element.attributes.get('args', ''), scope))
        respawn = boolean(get(element, 'respawn', 'false'))
    return Node(
        label=f'{Path(executable[0]).name}-{number}',
        executable=executable,
        name=_name(element, scope),
        namespace=_namespace(element, scope),
        parameters=tuple(_parameters(child, scope) for child in children if child.tag == 'param'),
        remappings=tuple(
            (get(child, 'from'), get(child, 'to')) for child in children if child.tag == 'remap'
        ),
        environment=scope.environment
        | {get(child, 'name'): get(child, 'value') for child in children if child.tag == 'env'},
        shows_stdout=_choice(element, 'output', get(element, 'output', 'log'), 'log', 'screen', 'both')
        != 'log',
        required=_choice(element, 'on_exit', element.attributes.get('on_exit', ''), '', 'shutdown') != '',
        respawn=respawn,
        respawn_delay=_seconds(element, 'respawn_delay', '0'),
        respawn_max_retries=_whole(element, 'respawn_max_retries', '-1'),
        sigterm_timeout=_seconds(element, 'sigterm_timeout', scope.variables.get('sigterm_timeout', '5')),
        sigkill_timeout=_seconds(element, 'sigkill_timeout', scope.variables.get('sigkill_timeout', '5')),
    )


def _name(element: Element, scope: Scope) -> str | None:
    if 'name' not in element.attributes:
        return None
    name = scope.get(element, 'name')
    if not _NAME.fullmatch(name):
        raise element.error(f'a node name must have letters, digits and _, no digit first, got {name!r}')
    return name


def _namespace(element: Element, scope: Scope) -> str | None:
    if 'namespace' not in element.attributes:
        return None
    text = scope.get(element, 'namespace')
    namespace = ('/' + text.removeprefix('/')).rstrip('/') or '/'
    if not _NAMESPACE.fullmatch(namespace):
        raise element.error(f'a namespace must be names separated by /, got {text!r}')
    return namespace


def _parameters(element: Element, scope: Scope) -> str | dict[str, Value]:
    if 'from' not in element.attributes:
        return _inline_parameters(element, scope, prefix='')
    if len(element.attributes) > 1 or element.children:
        raise element.error("<param> with 'from' has no other attributes and no content")
    file = Path(scope.get(element, 'from'))
    if not file.is_file():
        raise element.error(f'the parameter file {str(file)!r} does not exist')
    try:
        strict_yaml.load(file)  # the nodes read the file again, with a less strict loader
    except (OSError, strict_yaml.YamlError) as error:
        raise element.error(f'the parameter file {str(file)!r}: {error}') from None
    return str(file)


def _inline_parameters(element: Element, scope: Scope, prefix: str) -> dict[str, Value]:
    attributes = element.attributes
    if 'name' not in attributes or 'from' in attributes:
        raise element.error("<param> needs the attribute 'name'" + (" or 'from'" if not prefix else ''))
    if ('value' in attributes) == bool(element.children):
        raise element.error("<param> with 'name' needs either 'value' or other <param> in it")
    name = prefix + scope.get(element, 'name')
    if 'value' in attributes:
        with element.locating():
            return {name: typed(attributes['value'], attributes.get('type', 'yaml'), scope.expand)}
    parameters: dict[str, Value] = {}
    for child in element.children:
        parameters |= _inline_parameters(child, scope, prefix=name + '.')
    return parameters


def _words(text: str, scope: Scope) -> list[str]:
    """Split arguments as a shell does, but never inside the result of a substitution."""
    words: list[str] = []
    joins = False  # whether the next piece continues the last word
    for part in parse(text):
        pieces = [scope.call(part)] if isinstance(part, Call) else _split(part)
        joins = joins and (isinstance(part, Call) or not part[0].isspace())
        for piece in pieces:
            if joins:
                piece = words.pop() + piece
            words.append(piece)
            joins = False
        joins = isinstance(part, Call) or not part[-1].isspace()
    return words


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise LaunchError(f'cannot split {text!r} into arguments: {error}') from None


def _choice(element: Element, attribute: str, value: str, *choices: str) -> str:
    if value not in choices:
        wanted = ', '.join(filter(None, choices))
        raise element.error(f'unsupported {attribute} {value!r}; supported: {wanted}')
    return value


def _seconds(element: Element, attribute: str, default: str) -> float:
    text = element.attributes.get(attribute, default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise element.error(f'{attribute} must be a number >= 0 [s], got {text!r}')
    return seconds


def _whole(element: Element, attribute: str, default: str) -> int:
    text = element.attributes.get(attribute, default)
    try:
        return int(text)
    except ValueError:
        raise element.error(f'{attribute} must be a whole number, got {text!r}') from None
