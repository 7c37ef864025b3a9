r"""Parse text with substitutions: $(name argument ...); arguments may be quoted and nested; \ escapes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from soft_dynamics.errors import shown
from soft_dynamics.strict_yaml import DEPTH
from tools.launcher.errors import LaunchError

# Minimum and maximum number of arguments.
ARITY = {'var': (1, 2), 'env': (1, 2), 'find-pkg-share': (1, 1), 'dirname': (0, 0), 'not-equals': (2, 2)}

_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_-]*')


@dataclass(frozen=True)
class Call:
    """A substitution before its expansion."""

    name: str
    arguments: list[Template]


Template = list['str | Call']  # literal text and substitutions, joined later


def parse(text: str) -> Template:
    """Return the template of a text.

    Raises LaunchError: bad syntax, or a substitution outside the subset.
    """
    return _Parser(text).template(end='')


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0  # of nested substitutions

    def template(self, end: str) -> Template:
        """Read up to (not including) one of the characters `end`, or to the end of the text."""
        parts: Template = []
        while (head := self.text[self.position : self.position + 1]) and head not in end:
            if self.text.startswith('$(', self.position):
                self.depth += 1
                if self.depth > DEPTH:
                    raise LaunchError(f'more than {DEPTH} nested substitutions')
                parts.append(self.call())
                self.depth -= 1
                continue
            if head == '\\' and self.text[self.position + 1 : self.position + 2] not in ('', ' '):
                self.position += 1
                head = self.text[self.position]
            self.position += 1
            if parts and isinstance(parts[-1], str):
                parts[-1] += head
            else:
                parts.append(head)
        return parts

    def call(self) -> Call:
        name = _NAME.match(self.text, self.position + 2)
        if name is None:
            raise self.error('a name must follow $(')
        self.position = name.end()
        arguments = []
        while self.text.startswith(' ', self.position):
            self.position += 1
            arguments.append(self.argument())
        if not self.text.startswith(')', self.position):
            raise self.error('a ) is missing')
        self.position += 1
        return self.checked(Call(name.group(), arguments))

    def argument(self) -> Template:
        quote = self.text[self.position : self.position + 1]
        if quote not in ('"', "'"):
            if not (bare := self.template(end=' ()\'"')):
                raise self.error('an argument is empty; separate arguments by one blank')
            return bare
        self.position += 1
        argument = self.template(end=quote)
        if not self.text.startswith(quote, self.position):
            raise self.error(f'a closing {quote} is missing')
        self.position += 1
        return argument

    def checked(self, call: Call) -> Call:
        if call.name not in ARITY:
            raise LaunchError(
                f'unsupported substitution $({call.name}); supported: {", ".join(sorted(ARITY))}'
            )
        fewest, most = ARITY[call.name]
        if not fewest <= len(call.arguments) <= most:
            wanted = str(most) if fewest == most else f'{fewest} or {most}'
            raise LaunchError(f'$({call.name}) takes {wanted} arguments, got {len(call.arguments)}')
        return call

    def error(self, message: str) -> LaunchError:
        return LaunchError(f'cannot read the substitution in {shown(self.text, 200)}: {message}')
