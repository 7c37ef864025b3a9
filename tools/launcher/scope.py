"""Variables and environment at one place of a launch file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tools.launcher import ament, launch_file
from tools.launcher.errors import LaunchError
from tools.launcher.launch_file import Element
from tools.launcher.substitution import Call, Template, parse


@dataclass(frozen=True)
class Scope:
    """Variables and environment; <let> and <set_env> change them in place, a <group> uses a copy."""

    files: tuple[Path, ...]  # including files, then the current file
    variables: dict[str, str]
    environment: dict[str, str]

    def copy(self) -> Scope:
        return replace(self, variables=dict(self.variables), environment=dict(self.environment))

    def get(self, element: Element, attribute: str, default: str = '') -> str:
        """Return an attribute with its substitutions expanded."""
        with element.locating():
            return self.expand(parse(element.attributes.get(attribute, default)))

    def expand(self, template: Template) -> str:
        return ''.join(part if isinstance(part, str) else self.call(part) for part in template)

    def call(self, call: Call) -> str:
        """Return the result of one substitution."""
        arguments = [self.expand(argument) for argument in call.arguments]
        if call.name == 'dirname':
            return str(self.files[-1].parent)
        if call.name == 'find-pkg-share':
            return str(ament.share(arguments[0], self.environment))
        if call.name == 'not-equals':
            return 'false' if arguments[0] == arguments[1] else 'true'
        name, *default = arguments
        known, kind = {
            'var': (self.variables, 'argument or variable'),
            'env': (self.environment, 'environment variable'),
        }[call.name]
        if name in known:
            return known[name]
        if not default:
            raise LaunchError(f'there is no {kind} {name!r}')
        return default[0]

    def set_variable(self, element: Element) -> None:
        self.variables[self.get(element, 'name')] = self.get(element, 'value')

    def declare(self, argument: Element) -> None:
        """Set an argument to its default, unless it has a value."""
        name = argument.attributes['name']
        if name in self.variables:
            return
        if 'default' not in argument.attributes:
            raise argument.error(f'the argument {name!r} needs a value: {name}:=<value>')
        self.variables[name] = self.get(argument, 'default')

    def enter(self, include: Element) -> tuple[Element, Scope]:
        """Return the content of an included file and its scope: same variables, other folder.

        `ros2 launch` of Jazzy does not restore the folder after such an include, so its $(dirname) differs.
        """
        file = Path(self.get(include, 'file')).absolute()
        if file in self.files:
            raise include.error(f'{file} includes itself')
        if not file.name.endswith('.launch.xml'):
            raise include.error(f'unsupported kind of launch file {file.name!r}; supported: .launch.xml')
        for argument in include.children:
            self.set_variable(argument)
        if not file.is_file():
            raise include.error(f'the launch file {str(file)!r} does not exist')
        return launch_file.read(file), replace(self, files=(*self.files, file))
