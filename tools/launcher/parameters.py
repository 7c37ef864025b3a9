"""Types of parameter values: as in launch_ros, with the numbers and booleans of YAML 1.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from soft_dynamics import strict_yaml
from soft_dynamics.errors import shown
from tools.launcher.errors import LaunchError
from tools.launcher.substitution import Template, parse

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]
Expand = Callable[[Template], str]


def boolean(text: str) -> bool:
    """Return a condition or flag as bool."""
    try:
        return {'true': True, '1': True, 'false': False, '0': False}[text.strip().lower()]
    except KeyError:
        raise LaunchError(f'expected true, false, 1 or 0, got {text!r}') from None


def typed(text: str, type_name: str, expand: Expand) -> Value:
    """Return the value of a parameter.

    With type `yaml`, the text is parsed as YAML, its strings are expanded, and the result of a substitution is
    parsed as YAML again. So value="$(var rate)" is a number if `rate` is a number, and value="'12'" is a string.
    """
    if type_name == 'yaml':
        return _from_yaml(text, expand)
    if type_name not in TYPES:
        raise LaunchError(f'unsupported type {type_name!r}; supported: {", ".join(sorted([*TYPES, "yaml"]))}')
    plain = expand(parse(text))
    try:
        return TYPES[type_name](plain)
    except ValueError:
        raise LaunchError(f'expected a value of type {type_name}, got {plain!r}') from None


TYPES: dict[str, Callable[[str], Scalar]] = {'bool': boolean, 'float': float, 'int': int, 'str': str}


def _from_yaml(text: str, expand: Expand) -> Value:
    try:
        loaded = strict_yaml.parse(text) if text else ''
    except strict_yaml.YamlError:
        loaded = text
    value = (
        [_expanded(item, expand) for item in loaded]
        if isinstance(loaded, list)
        else _expanded(loaded, expand)
    )
    kinds = {type(item) for item in (value if isinstance(value, list) else [value])}
    if not kinds <= {bool, int, float, str} or len(kinds) > 1:
        raise LaunchError(f'expected bool, int, float, string, or a list of one of them, got {shown(value)}')
    return value


def _expanded(value: Any, expand: Expand) -> Any:
    if not isinstance(value, str):
        return value
    template = parse(value)
    plain = expand(template)
    if not plain or all(isinstance(part, str) for part in template):
        return plain
    try:
        return strict_yaml.parse(plain)
    except strict_yaml.YamlError as error:
        raise LaunchError(f'the value {shown(plain)}: {error}; for a string, add type="str"') from None
