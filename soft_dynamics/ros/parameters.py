"""ROS parameters from a frozen dataclass, which declares their names, types, defaults, units and checks.

    @dataclass(frozen=True)
    class Config:
        rate: float = field(default=100.0, metadata={'doc': 'rate of samples', 'unit': 'Hz'})
        robot: str = field(default='honeycomb_arm', metadata={'read_only': True})
        limits: Limits = Limits()          # another such dataclass: parameters limits.<field>

        def __post_init__(self) -> None:
            if not self.rate > 0:
                raise ValueError(f'rate must be > 0, got {self.rate}')

    self.config = bind_config(self, Config)

Field types: bool, int, float, str, lists and tuples of one of them, and dataclasses of such fields.
A field without default must be set by the user. Every node also has the parameter `realtime_priority`.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
from array import array
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter

from soft_dynamics.ros.realtime import declare_priority

Config = TypeVar('Config')

_SCALARS = {bool: 'true or false', int: 'an integer', float: 'a number', str: 'a string'}
_PLURALS = {bool: 'true or false', int: 'integers', float: 'numbers', str: 'strings'}


def bind_config(
    node: Node, config_class: type[Config], on_change: Callable[[Config], None] | None = None
) -> Config:
    """Declare the parameters of `config_class` on the node, read the overrides, return the config.

    The config is also kept in `node.config`. A later `ros2 param set` builds a new config and
    replaces the old one. If the dataclass or `on_change(new_config)` raises ValueError, the change is rejected with
    that reason.

    Raises ValueError with one line about all invalid overrides: unknown names, wrong types, missing or rejected values.
    """
    fields = _flatten(config_class)
    declare_priority(node)
    values = _read_overrides(node, fields)
    config = node.config = _build(config_class, values)
    for name, field in fields.items():
        node.declare_parameter(name, values[name], field.descriptor(), ignore_override=True)

    def on_set(parameters: list[Parameter]) -> SetParametersResult:
        changes = {p.name: p.value for p in parameters if p.name in fields}
        if not changes:
            return SetParametersResult(successful=True)
        try:
            new_values = values | {name: _convert(name, fields[name].type, v) for name, v in changes.items()}
            new_config = _build(config_class, new_values)
            if on_change is not None:
                on_change(new_config)
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        values.update(new_values)
        node.config = new_config
        return SetParametersResult(successful=True)

    node.add_pre_set_parameters_callback(lambda parameters: _normalise(node, fields, parameters))
    node.add_on_set_parameters_callback(on_set)
    return config


def describe(config_class: type[Any]) -> dict[str, str]:
    """Return {name:=default: type, doc and unit} of every parameter, for --help."""
    lines = {}
    for name, field in _flatten(config_class).items():
        must_be_set = field.default is dataclasses.MISSING
        left = name if must_be_set else f'{name}:={_shown(field.default)}'
        kind = _wanted(field.type) + must_be_set * ', must be set'
        lines[left] = f'{kind}: {field.descriptor().description}'
    return lines


def _shown(value: Any) -> str:
    """Format a value as on the command line."""
    return json.dumps(value).replace('"', '') or "''"


class _Field(NamedTuple):
    """One parameter: its type, its default (or dataclasses.MISSING) and the field's metadata."""

    type: Any
    default: Any
    metadata: Mapping[str, Any]

    def descriptor(self) -> ParameterDescriptor:
        """Return the ROS description.

        Typing is dynamic so that `_convert` checks types: rclpy rejects 3 for 3.0, without naming the parameter.
        """
        doc, unit = self.metadata.get('doc', ''), self.metadata.get('unit')
        return ParameterDescriptor(
            description=f'{doc} [{unit}]'.strip() if unit else doc,
            read_only=self.metadata.get('read_only', False),
            dynamic_typing=True,
        )


def _flatten(config_class: Any, prefix: str = '', instance: Any = dataclasses.MISSING) -> dict[str, _Field]:
    """List the parameters of a dataclass as {dotted name: field}; `instance`, if any, holds the defaults."""
    hints = get_type_hints(config_class)
    fields: dict[str, _Field] = {}
    for field in dataclasses.fields(config_class):
        name, kind = prefix + field.name, hints[field.name]
        default = _default(field) if instance is dataclasses.MISSING else getattr(instance, field.name)
        if dataclasses.is_dataclass(kind):
            fields |= _flatten(kind, name + '.', default)
        else:
            fields[name] = _Field(kind, default, field.metadata)
    return fields


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _read_overrides(node: Node, fields: dict[str, _Field]) -> dict[str, Any]:
    """Return the initial value of every field: the override from command line or file, or the default."""
    overrides = {name: p.value for name, p in node._parameter_overrides.items()}
    problems, values = [], {}
    for name in overrides:
        if name not in fields and not node.has_parameter(name) and not name.startswith('qos_overrides.'):
            near = difflib.get_close_matches(name, [*fields, *node.list_parameters([], 0).names], n=1)
            hint = f', did you mean {near[0]}?' if near else f', known: {", ".join(fields)}'
            problems.append(f'unknown parameter {name}{hint}')
    for name, field in fields.items():
        if name not in overrides and field.default is dataclasses.MISSING:
            problems.append(f'{name} must be set to {_wanted(field.type)}')
            continue
        try:
            values[name] = _convert(name, field.type, overrides.get(name, field.default))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError('; '.join(problems))
    return values


def _build(config_class: type[Config], values: dict[str, Any], prefix: str = '') -> Config:
    """Build the dataclass from {dotted name: value}; errors name the nested dataclass."""
    hints = get_type_hints(config_class)
    arguments = {}
    for field in dataclasses.fields(config_class):  # type: ignore[arg-type]
        name, kind = prefix + field.name, hints[field.name]
        nested = dataclasses.is_dataclass(kind)
        arguments[field.name] = _build(kind, values, name + '.') if nested else values[name]
    try:
        return config_class(**arguments)
    except ValueError as error:
        raise ValueError(f'{prefix[:-1]}: {error}' if prefix else str(error)) from None


def _convert(name: str, kind: Any, value: Any) -> Any:
    """Convert `value` to `kind`: integers are accepted as floats, without other conversions."""
    if get_origin(kind) in (list, tuple):
        element, length = _element(kind)
        if value is None or isinstance(value, (tuple, array)):
            value = list(value or ())  # an empty list arrives as None
        if not isinstance(value, list) or length not in (None, len(value)):
            raise ValueError(f'{name} must be {_wanted(kind)}, got {value!r}')
        return get_origin(kind)(_convert(f'{name}[{i}]', element, item) for i, item in enumerate(value))
    if kind not in _SCALARS:
        raise TypeError(f'{name}: {kind} cannot be a ROS parameter')
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is float and math.isnan(value)):
        raise ValueError(f'{name} must be {_wanted(kind)}, got {value!r}')
    return value


def _element(kind: Any) -> tuple[Any, int | None]:
    """Return the element type and the length (None: any) of list[T], tuple[T, ...] or tuple[T, T, T]."""
    arguments = get_args(kind)
    fixed = get_origin(kind) is tuple and arguments[-1] is not ...
    return arguments[0], len(arguments) if fixed else None


def _wanted(kind: Any) -> str:
    if kind in _SCALARS:
        return _SCALARS[kind]
    element, length = _element(kind)
    return f'a list of {_PLURALS[element]}' if length is None else f'a list of {length} {_PLURALS[element]}'


def _normalise(node: Node, fields: dict[str, _Field], parameters: list[Parameter]) -> list[Parameter]:
    """Convert every parameter to its field's type, so that 3 is stored as 3.0; `on_set` rejects the others."""
    unknown = [p.name for p in parameters if not node.has_parameter(p.name)]
    if unknown:  # rclpy 7.1 would reject them as well, but without their names
        raise ParameterNotDeclaredException(unknown)

    def normalised(parameter: Parameter) -> Parameter:
        if parameter.name not in fields:
            return parameter
        try:
            return Parameter(
                parameter.name, value=_convert(parameter.name, fields[parameter.name].type, parameter.value)
            )
        except ValueError:
            return parameter

    return [normalised(parameter) for parameter in parameters]
