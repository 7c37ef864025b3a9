"""Strict YAML loader with bounded work and one-line error messages; the whole suite reads YAML with it.

Strings, numbers, booleans and null follow the core schema of YAML 1.2 (section 10.3.2): `010` is ten, `0o10` is eight,
`1e3` is a number; `yes`, `1_000` and `1:30` are strings. Keys are strings. The loader rejects duplicate keys, aliases,
anchors, merge keys, tags, directives, a second document, control characters, and files beyond the limits below. It does
not recurse, so deep nesting cannot exhaust the stack.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from .atomic_files import read_bounded
from .errors import shown

SIZE = 64 * 1024  # [bytes] limit for hand-written files; the largest shipped one has 3 kB
NODES = 20_000  # scalars, starts and ends of lists and mappings; the largest shipped file has 400
DEPTH = 32
LONGEST_NUMBER = 100  # characters; Python takes seconds for a million digits and refuses to print 4301

_PARSER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)  # libyaml's is ten times faster
_SCALAR = re.compile(
    r'(?P<null>~|null|Null|NULL|)'
    r'|(?P<true>true|True|TRUE)'
    r'|(?P<false>false|False|FALSE)'
    r'|(?P<int>[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)'
    r'|(?P<float>[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)'
    r'|(?P<inf>[-+]?\.(inf|Inf|INF))'
    r'|(?P<nan>\.(nan|NaN|NAN))'
)
_CONTROL = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]')
_CONSTANTS: dict[str | None, Any] = {'null': None, 'true': True, 'false': False, 'nan': float('nan')}
_NO_KEY: Any = object()


class YamlError(ValueError):
    """Rejected YAML; the message is one line."""


def load(path: Path, size: int = SIZE, nodes: int = NODES) -> Any:
    """Read a file. Raises YamlError, or OSError if the system cannot read it."""
    try:
        text = read_bounded(path, size).decode('utf-8-sig')
    except UnicodeDecodeError:
        raise YamlError('not a text file in UTF-8') from None
    except ValueError as error:
        raise YamlError(str(error)) from None
    return parse(text, size, nodes)


def parse(text: str, size: int = SIZE, nodes: int = NODES) -> Any:
    """Read a text. Raises YamlError."""
    if len(text) > size:
        raise YamlError(f'expected at most {size} bytes, found more')
    document = _Document(nodes)
    try:
        for event in yaml.parse(text, _PARSER):
            document.take(event)
    except yaml.YAMLError as error:
        problem = getattr(error, 'problem', None) or getattr(error, 'reason', None)
        raise YamlError(f'{_line(getattr(error, "problem_mark", None))}not YAML: {problem}') from None
    except UnicodeEncodeError:
        raise YamlError('not YAML: unpaired surrogate, as in a wrongly decoded file') from None
    return document.content


def dump(data: Any, **style: Any) -> str:
    """Return text that this loader and YAML 1.1 readers read as the same data."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, **style)


class _Document:
    """Builds the content from parser events; `_open_ones` are unfinished lists and mappings with their next keys."""

    def __init__(self, nodes: int) -> None:
        self.content: Any = None
        self._open_ones: list[tuple[Any, dict[str, int]]] = []  # container, and the line of each key
        self._key = _NO_KEY
        self._left, self._nodes, self._documents = nodes, nodes, 0

    def take(self, event: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise self._error(event, f'expected at most {self._nodes} entries, found more')
        if getattr(event, 'anchor', None) is not None:  # alias events have an anchor, too
            raise self._error(event, 'anchors and aliases (&, *) are not supported')
        if getattr(event, 'tag', None) is not None:
            raise self._error(event, f'tags are not supported, found {shown(event.tag)}')
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open_ones.pop()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1 or event.version or event.tags:
                raise self._error(event, 'expected one document without directives (%)')

    def _start(self, event: Any) -> None:
        if len(self._open_ones) == DEPTH:
            raise self._error(event, f'expected at most {DEPTH} nested lists and mappings, found more')
        if self._wants_key:
            raise self._error(event, 'expected a string as key, found a list or mapping')
        content: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._put(content)
        self._open_ones.append((content, {}))

    def _scalar(self, event: Any) -> None:
        text, is_plain = event.value, event.implicit[0]
        found = _CONTROL.search(text)
        if found:
            raise self._error(event, f'control characters are not allowed, found {found.group()!r}')
        if not self._wants_key:
            self._put(self._value(event) if is_plain else text)
            return
        _, lines = self._open_ones[-1]
        if text == '<<' and is_plain:
            raise self._error(event, 'merge keys (<<) are not supported')
        if text in lines:
            raise self._error(event, f'duplicate key {shown(text)}, first used in line {lines[text]}')
        lines[text] = event.start_mark.line + 1
        self._key = text

    @property
    def _wants_key(self) -> bool:
        return bool(self._open_ones) and isinstance(self._open_ones[-1][0], dict) and self._key is _NO_KEY

    def _put(self, value: Any) -> None:
        if not self._open_ones:
            self.content = value
            return
        container, _ = self._open_ones[-1]
        if isinstance(container, dict):
            container[self._key], self._key = value, _NO_KEY
        else:
            container.append(value)

    def _value(self, event: Any) -> Any:
        """Resolve a scalar without quotes."""
        text = event.value
        match = _SCALAR.fullmatch(text)
        if match is None:
            return text
        kind = match.lastgroup
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if len(text) > LONGEST_NUMBER:
            raise self._error(event, f'expected a number of at most {LONGEST_NUMBER} characters, found more')
        if kind == 'int':
            return int(text, {'0o': 8, '0x': 16}.get(text[:2], 10))
        return float(text.replace('.', '', 1) if kind == 'inf' else text)

    def _error(self, event: Any, problem: str) -> YamlError:
        return YamlError(f'{_line(event.start_mark)}{problem}')


def _line(mark: Any) -> str:
    return f'line {mark.line + 1}: ' if mark is not None else ''


class _Dumper(yaml.SafeDumper):
    """Quotes strings that YAML 1.1 or 1.2 would read as another type; writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_implicit_resolver('core', re.compile(rf'({_SCALAR.pattern})\Z'), None)
