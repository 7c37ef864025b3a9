"""Read a launch file: XML elements with line numbers, checked against the supported subset."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from soft_dynamics.atomic_files import read_bounded
from soft_dynamics.strict_yaml import DEPTH, SIZE
from tools.launcher.errors import LaunchError, LocatedError
from tools.launcher.substitution import parse


class Tag(NamedTuple):
    """Allowed content of an element."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


CONDITIONS = ('if', 'unless')
ACTIONS = ('arg', 'group', 'include', 'let', 'node', 'set_env')
TAGS = {
    'launch': Tag(children=ACTIONS),
    'arg': Tag(('name',), ('default', 'description', *CONDITIONS)),
    'let': Tag(('name', 'value'), CONDITIONS),
    'set_env': Tag(('name', 'value'), CONDITIONS),
    'group': Tag((), ('scoped', *CONDITIONS), ACTIONS),
    'include': Tag(('file',), CONDITIONS, ('arg',)),
    'include/arg': Tag(('name', 'value')),
    'node': Tag(
        ('pkg', 'exec'),
        (
            'name',
            'namespace',
            'args',
            'output',
            'respawn',
            'respawn_delay',
            'respawn_max_retries',
            'on_exit',
            'sigterm_timeout',
            'sigkill_timeout',
            'launch-prefix',
            *CONDITIONS,
        ),
        ('env', 'param', 'remap'),
    ),
    'env': Tag(('name', 'value')),
    'remap': Tag(('from', 'to')),
    'param': Tag((), ('name', 'value', 'type', 'from'), ('param',)),
}


@dataclass(frozen=True)
class Element:
    """An XML element and its position."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list[Element] = field(default_factory=list)

    def error(self, message: object) -> LocatedError:
        return LocatedError(f'{self.file}:{self.line}: {message}')

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Add file and line of this element to errors raised in the block."""
        try:
            yield
        except LocatedError:
            raise
        except LaunchError as error:
            raise self.error(error) from None

    def check(self, tag: Tag) -> None:
        """Reject everything outside the subset, also in branches whose condition is false."""
        known = (*tag.required, *tag.optional)
        for name in tag.required:
            if name not in self.attributes:
                raise self.error(f'<{self.tag}> needs the attribute {name!r}')
        for name, text in self.attributes.items():
            if name not in known:
                raise self.error(f'unsupported attribute {name!r} of <{self.tag}>; {supported(name, known)}')
            with self.locating():
                parse(text)
        if 'if' in self.attributes and 'unless' in self.attributes:
            raise self.error("'if' and 'unless' exclude each other")
        for child in self.children:
            if child.tag not in tag.children:
                raise child.error(
                    f'unsupported tag <{child.tag}> in <{self.tag}>; {supported(child.tag, tag.children)}'
                )
            child.check(TAGS.get(f'{self.tag}/{child.tag}', TAGS[child.tag]))


def supported(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the supported names and the nearest one."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f'did you mean {close[0]!r}? ' if close else ''
    return f'{hint}supported: {", ".join(known) or "nothing"}'


def read(file: Path) -> Element:
    """Return the <launch> element of a file.

    Raises LaunchError: the file cannot be read, is not XML, or uses something outside the subset.
    """
    parser = expat.ParserCreate()
    root: list[Element] = []
    stack: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) == DEPTH:
            raise LocatedError(f'{file}:{parser.CurrentLineNumber}: more than {DEPTH} nested tags')
        element = Element(tag, attributes, file, parser.CurrentLineNumber)
        (stack[-1].children if stack else root).append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        stack.pop()

    def text(data: str) -> None:
        if data.strip():
            place = f'{file}:{parser.CurrentLineNumber}'
            raise LocatedError(f'{place}: unsupported text {data.strip()!r} in <{stack[-1].tag}>')

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(read_bounded(file, SIZE), True)
    except OSError as error:
        raise LaunchError(f'cannot read launch file {str(file)!r}: {error.strerror}') from None
    except ValueError as error:
        raise LaunchError(f'cannot read launch file {str(file)!r}: {error}') from None
    except expat.ExpatError as error:
        raise LocatedError(f'{file}:{error.lineno}: malformed XML: {expat.ErrorString(error.code)}') from None
    if root[0].tag != 'launch':
        raise root[0].error(f'the outermost tag must be <launch>, not <{root[0].tag}>')
    root[0].check(TAGS['launch'])
    return root[0]
