"""Convert nested mappings to frozen dataclasses, and list all problems at once.

The dataclass is the schema: annotations give the types, defaults mark optional keys, and `quantity` adds units and
bounds. Each problem is one line: key path, expected value, found value.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from .errors import shown

T = TypeVar('T')

MISSING: Any = object()
MOST_ENTRIES = 1000  # in a list


class Form(NamedTuple):
    """Pattern of a text."""

    pattern: re.Pattern[str]
    words: str


# Names are also used as frames, columns of reports and parts of file names.
NAME = Form(re.compile(r'[A-Za-z0-9_-]{1,64}'), 'a name of 1 to 64 letters, digits, _ or -')
# A part of a topic. The bridges turn other names of tracked bodies into names of this form.
TOPIC_NAME = Form(
    re.compile(r'(?=.{1,64}\Z)[A-Za-z](_?[A-Za-z0-9])*'),
    'a name of 1 to 64 letters, digits and single _, with a letter first (it is part of a topic)',
)
TOPIC = Form(
    re.compile(r'/?[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,15}'),
    'names (letters, digits, _, -) with / between',
)
# Other programs write headers of tables and labels of markers, in any language.
LABEL = Form(re.compile(r'[^\x00-\x1f\x7f]{1,256}'), 'a text of 1 to 256 characters')


def quantity(
    default: Any = dataclasses.MISSING,
    *,
    unit: str = '',
    doc: str = '',
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    length: int | None = None,
    form: Form | None = None,
    types: Mapping[str, type] | None = None,
) -> Any:
    """Declare a field with unit, description, bounds or pattern; for a list, these apply to each entry.

    types: dataclasses by what their field `type` says; the value is a mapping for one of them.
    """
    bounds = {'above': above, 'least': least, 'most': most}
    metadata = {'unit': unit, 'doc': doc, 'length': length, 'form': form, 'types': types, **bounds}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def read(cls: type[T], data: Any, path: str, problems: list[str]) -> T | None:
    """Build `cls` from a mapping. On errors, add a line per problem to `problems` and return None."""
    if not isinstance(data, Mapping):
        problems.append(f'{path or "top level"}: expected a mapping of {_keys(cls)}, found {shown(data)}')
        return None
    before = len(problems)
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for key in data:
        if key not in fields:
            problems.append(f'{_join(path, _key(key))}: unknown key, expected one of {_keys(cls)}')
    values: dict[str, Any] = {}
    for name, field in fields.items():
        where = _join(path, name)
        if name in data:
            values[name] = _value(hints[name], data[name], where, field.metadata, problems)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            problems.append(f'{where}: missing, expected {_expected(hints[name], field.metadata)}')
    if len(problems) > before:
        return None
    try:
        return cls(**values)
    except ValueError as error:
        problems.append(_join(path, str(error)))
        return None


def _value(hint: Any, data: Any, path: str, meta: Mapping[str, Any], problems: list[str]) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not type(None)]
        if data is None and len(options) < len(get_args(hint)):
            return None
        if dataclasses.is_dataclass(options[0]) and len(options) > 1:
            by_type = {get_args(typing.get_type_hints(option)['type'])[0]: option for option in options}
            return _tagged(by_type, data, path, problems)
        return _value(options[0], data, path, meta, problems)
    if dataclasses.is_dataclass(hint):
        if meta.get('types'):
            return _tagged(meta['types'], data, path, problems)
        return read(hint, data, path, problems)  # type: ignore[arg-type]
    if origin is tuple:
        return _sequence(get_args(hint)[0], data, path, meta, problems)
    return _scalar(hint, data, path, meta, problems)


def _sequence(item: Any, data: Any, path: str, meta: Mapping[str, Any], problems: list[str]) -> Any:
    length = meta.get('length')
    if not isinstance(data, list | tuple):
        problems.append(f'{path}: expected {_expected(tuple[item, ...], meta)}, found {shown(data)}')
        return None
    if length is not None and len(data) != length:
        problems.append(f'{path}: expected {length} entries, found {len(data)}')
        return None
    if len(data) > MOST_ENTRIES:
        problems.append(f'{path}: expected at most {MOST_ENTRIES} entries, found {len(data)}')
        return None
    return tuple(_value(item, entry, f'{path}[{k}]', meta, problems) for k, entry in enumerate(data))


def _tagged(by_type: Mapping[str, type], data: Any, path: str, problems: list[str]) -> Any:
    """Build one of several dataclasses, selected by their field `type`."""
    kind = data.get('type', MISSING) if isinstance(data, Mapping) else MISSING
    if not isinstance(kind, str) or kind not in by_type:
        found = 'nothing' if kind is MISSING else shown(kind)
        problems.append(f'{path}.type: expected one of {", ".join(by_type)}, found {found}')
        return None
    return read(by_type[kind], data, path, problems)


def _scalar(hint: Any, data: Any, path: str, meta: Mapping[str, Any], problems: list[str]) -> Any:
    if get_origin(hint) is Literal:
        good = data in get_args(hint) and type(data) in {type(choice) for choice in get_args(hint)}
    elif hint is float:
        good = (
            isinstance(data, int | float) and not isinstance(data, bool) and abs(data) <= sys.float_info.max
        )
        data = float(data) if good else data
    elif hint is int:
        good = isinstance(data, int) and not isinstance(data, bool)
    else:
        form = meta.get('form')
        good = isinstance(data, hint)
        if form is not None and good and not form.pattern.fullmatch(data):
            problems.append(f'{path}: expected {form.words}, found {shown(data)}')
    if good and isinstance(data, int | float) and not isinstance(data, bool):
        above, least, most = meta.get('above'), meta.get('least'), meta.get('most')
        good = (
            (above is None or data > above)
            and (least is None or data >= least)
            and (most is None or data <= most)
        )
    if not good:
        problems.append(f'{path}: expected {_expected(hint, meta)}, found {shown(data)}')
    return data


def _expected(hint: Any, meta: Mapping[str, Any]) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return _expected(get_args(hint)[0], meta)
    if get_origin(hint) is tuple:
        length = meta.get('length')
        return f'a list of {length or "any number of"} x {_expected(get_args(hint)[0], {**meta, "length": None})}'
    if get_origin(hint) is Literal:
        return 'one of ' + ', '.join(str(choice) for choice in get_args(hint))
    if dataclasses.is_dataclass(hint):
        first = next(iter(meta['types'].values())) if meta.get('types') else hint
        return f'a mapping of {_keys(first)}'
    name = {float: 'a finite number', int: 'an integer', str: 'a text', bool: 'true or false'}.get(
        hint, str(hint)
    )
    bounds = [
        f'{word} {meta[key]:g}'
        for key, word in (('above', '>'), ('least', '>='), ('most', '<='))
        if meta.get(key) is not None
    ]
    unit = f' [{meta["unit"]}]' if meta.get('unit') else ''
    return ' '.join([name, *bounds]) + unit


def _keys(cls: Any) -> str:
    return ', '.join(f.name for f in dataclasses.fields(cls) if f.init)


def _join(path: str, key: Any) -> str:
    return f'{path}.{key}' if path else str(key)


def _key(key: Any) -> str:
    """Format an untrusted key: unchanged if it has the form of a valid key."""
    return key if isinstance(key, str) and NAME.pattern.fullmatch(key) else shown(key)
