"""params.yaml, read strictly: each section becomes a frozen dataclass, checked when it is built.

An unknown key, a missing key, a wrong type or a bad value raises an `InputError` that names the
key, the value and what is allowed. Dataclasses check their own values in `__post_init__` with
`require`, which names the field; `build` adds the section in front of it.

The precision of matrix products, as params.yaml names it.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from retrace.core.errors import InputError

PARAMS = Path("params.yaml")
LARGEST_SEED = 2**32 - 1  # that NumPy takes

T = TypeVar("T")


def read_params(path: Path = PARAMS) -> dict[str, Any]:
    """The whole of params.yaml, as DVC reads it (YAML 1.2, where 5e-4 is a number)."""
    try:
        params = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{path}:{line}: {error.problem}") from None
    if not isinstance(params, dict):
        raise InputError(f"{path}: expected keys and values, found {type(params).__name__}")
    return params


def section(params: Mapping[str, Any], key: str, file: Path = PARAMS) -> Any:
    """The value under a dotted key; each step that is missing is named with what there is."""
    value: Any = params
    for step, name in enumerate(key.split(".")):
        if not isinstance(value, Mapping) or name not in value:
            there = ", ".join(map(str, value)) if isinstance(value, Mapping) else repr(value)
            above = ".".join(key.split(".")[:step]) or "top level"
            raise InputError(f"{file}: {key} is missing; {above} has: {there}")
        value = value[name]
    return value


def values_of(params: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The values under several dotted keys, by key."""
    return {key: section(params, key) for key in keys}


def build(cls: type[T], params: Mapping[str, Any], key: str, file: Path = PARAMS) -> T:
    """Build the settings class `cls` from the section called `key` of params.yaml, or of another `file`."""
    values = section(params, key, file)
    if not isinstance(values, Mapping):
        raise InputError(f"{file}: {key}: {values!r} is not a section of keys and values")
    try:
        return _build(cls, values, key)
    except ValueError as error:
        raise InputError(f"{file}: {error}") from None


def build_file(cls: type[T], path: Path) -> T:
    """Build the settings class `cls` from the whole of a file."""
    values = read_params(path)
    try:
        return _build(cls, values, "")
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def check_value(params: Mapping[str, Any], key: str, expected: Any) -> Any:
    """A single value of params.yaml, checked against a type such as `float` or `list[int]`."""
    try:
        return _converted(section(params, key), expected, key)
    except ValueError as error:
        raise InputError(f"{PARAMS}: {error}") from None


def profile_key(params: Mapping[str, Any], name: str) -> str:
    """The dotted key of a section of the profile that params.yaml chooses."""
    profile = check_value(params, "profile", str)
    profiles = section(params, "profiles")
    if profile not in profiles:
        raise InputError(f"{PARAMS}: profile: {profile!r} is not allowed; expected one of {', '.join(profiles)}")
    return f"profiles.{profile}.{name}"


def check_seed(seed: int, key: str = "seed") -> None:
    """Raise InputError for a number that not all random generators can be drawn from."""
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"{PARAMS}: {key}: {seed} is not allowed; expected 0 to {LARGEST_SEED}")


def require(holds: bool, field: str, value: object, allowed: str) -> None:
    """Raise a `ValueError` in the words that `build` completes, unless `holds`."""
    if not holds:
        raise ValueError(f"{field}: {value!r} is not allowed; {allowed}")


def _build(cls: type[T], values: Mapping[str, Any], key: str) -> T:
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(typing.cast(Any, cls))
    unknown = [name for name in values if name not in hints]
    if unknown:
        raise ValueError(f"{_under(key, unknown[0])}: unknown key; allowed: {', '.join(hints)}")
    for field in fields:
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if field.name not in values and not has_default:
            raise ValueError(f"{_under(key, field.name)} is missing")
    converted = {name: _converted(value, hints[name], _under(key, name)) for name, value in values.items()}
    try:
        return cls(**converted)
    except ValueError as error:
        raise ValueError(_under(key, str(error))) from None


def _under(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _converted(value: Any, expected: Any, key: str) -> Any:
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if dataclasses.is_dataclass(expected) and isinstance(value, Mapping):
        return _build(typing.cast(Any, expected), value, key)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        kinds = [a for a in arguments if a is not type(None)]
        fitting = [a for a in kinds if len(kinds) == 1 or _fits(value, a)]
        if fitting:
            return _converted(value, fitting[0], key)
    if origin is Literal and value in arguments:
        return value
    if origin in (list, tuple) and isinstance(value, list):
        items = [_converted(item, arguments[0], f"{key}[{i}]") for i, item in enumerate(value)]
        return items if origin is list else tuple(items)
    if origin is dict and isinstance(value, Mapping):
        return {name: _converted(item, arguments[1], f"{key}.{name}") for name, item in value.items()}
    if expected is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(expected, type) and isinstance(value, expected) and not (expected is int and isinstance(value, bool)):
        return value
    raise ValueError(f"{key}: {value!r} is not allowed; expected {_described(expected)}")


def _fits(value: Any, expected: Any) -> bool:
    """Whether a value is of one of several kinds, whatever is within it."""
    kind = typing.get_origin(expected) or expected
    if kind in (list, tuple):
        return isinstance(value, list)
    if kind is dict or dataclasses.is_dataclass(kind):
        return isinstance(value, Mapping)
    if kind is Literal:
        return value in typing.get_args(expected)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number if kind is float else isinstance(value, kind)


def _described(expected: Any) -> str:
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin in (list, tuple):
        return f"a list of {_described(arguments[0])}"
    if origin in (types.UnionType, typing.Union):
        return " or ".join("nothing" if a is type(None) else _described(a) for a in arguments)
    names = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
    return names.get(expected, "a section of keys and values")


Precision = Literal["auto", "fp32", "bf16"]  # auto: bf16 where the hardware does it well
