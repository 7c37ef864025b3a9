"""Turn a launch file and its arguments into the nodes to start. Nothing starts before the plan is complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.launcher import launch_file, node
from tools.launcher.errors import LaunchError
from tools.launcher.launch_file import Element
from tools.launcher.node import Node
from tools.launcher.parameters import boolean
from tools.launcher.scope import Scope

# Variables that every launch accepts without declaring them.
BUILT_IN_ARGUMENTS = ('sigterm_timeout', 'sigkill_timeout', 'launch-prefix')


@dataclass(frozen=True)
class Argument:
    """A declared launch argument."""

    name: str
    default: str | None
    description: str
    conditional: bool


def plan(file: Path, arguments: Mapping[str, str], environment: Mapping[str, str]) -> list[Node]:
    """Return the nodes that a launch file starts, in order.

    Raises LaunchError for a mistake in the file (with file and line) or in the arguments.
    """
    known = [argument.name for argument in declared_arguments(file, arguments, environment)]
    for name in arguments:
        if name not in (*known, *BUILT_IN_ARGUMENTS):
            raise LaunchError(f'unknown launch argument {name!r}; {launch_file.supported(name, known)}')
    nodes: list[Node] = []
    for element, scope in _walk(*_outermost(file, arguments, environment)):
        nodes.append(node.from_element(element, scope, number=len(nodes) + 1))
    return nodes


def declared_arguments(
    file: Path, arguments: Mapping[str, str], environment: Mapping[str, str]
) -> list[Argument]:
    """Return the arguments that a user can set: those of the launch file and of the files it includes.

    Arguments that the including file sets, and files whose name is not known yet, are left out.
    """
    found: dict[str, Argument] = {}
    fixed: set[str] = set()

    def collect(parent: Element, scope: Scope, conditional: bool) -> None:
        for child in parent.children:
            maybe = conditional or 'if' in child.attributes or 'unless' in child.attributes
            try:
                if child.tag == 'arg':
                    name, default = child.attributes['name'], child.attributes.get('default')
                    description = child.attributes.get('description', 'no description given')
                    if name not in fixed:
                        found.setdefault(name, Argument(name, default, description, maybe))
                    scope.declare(child)
                elif child.tag == 'let':
                    scope.set_variable(child)
                elif child.tag == 'group':
                    collect(child, scope.copy(), maybe)
                elif child.tag == 'include':
                    fixed.update(scope.get(argument, 'name') for argument in child.children)
                    collect(*scope.enter(child), maybe)
            except LaunchError:
                continue  # `plan` reports it if it matters

    collect(*_outermost(file, arguments, environment), conditional=False)
    return list(found.values())


def _outermost(
    file: Path, arguments: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[Element, Scope]:
    return launch_file.read(file), Scope((file.absolute(),), dict(arguments), dict(environment))


def _walk(parent: Element, scope: Scope) -> Iterator[tuple[Element, Scope]]:
    """Yield each <node> below an element with its scope, and execute all other elements."""
    for child in parent.children:
        with child.locating():
            unless = boolean(scope.get(child, 'unless', 'false'))
            scoped = boolean(child.attributes.get('scoped', 'true'))
            if unless or not boolean(scope.get(child, 'if', 'true')):
                continue
        if child.tag == 'arg':
            scope.declare(child)
        elif child.tag == 'let':
            scope.set_variable(child)
        elif child.tag == 'set_env':
            scope.environment[scope.get(child, 'name')] = scope.get(child, 'value')
        elif child.tag == 'group':
            yield from _walk(child, scope.copy() if scoped else scope)
        elif child.tag == 'include':
            yield from _walk(*scope.enter(child))
        else:
            yield child, scope
