"""params.yaml and data/params.yaml, read strictly into frozen classes.

A `Section` is a part of the files, such as `pretrain`. A `Params` is all that one stage reads: its fields are the keys
that dvc.yaml lists under `params:` of that stage. What is wrong ends in an `InputError` of one line that names the
file, the key, the value and what is allowed.
"""

import dataclasses
import json
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, overload

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from retrace.core.errors import InputError

PARAMS, DATA_PARAMS = Path("params.yaml"), Path("data/params.yaml")
# Of data/params.yaml; all others are of params.yaml.
DATA_KEYS = ("sample", "files", "hub", "classification", "question_answering", "checkpoints")
LARGEST_SEED = 2**32 - 1  # that NumPy takes
_NAMED = re.compile(r"\$\{(?:item\.)?([\w.]+)\}")  # as in dvc.yaml

TASK_OF = {"finetune-sst2": "sst2", "finetune-squad": "squad"}  # always there, unlike what else dvc.yaml lists

T = TypeVar("T")
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
Count = Annotated[int, Field(gt=0)]
Positive = Annotated[float, Field(gt=0)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Split = Annotated[float, Field(gt=0, lt=1)]
Precision = Literal["auto", "fp32", "bf16"]  # auto: bf16 where the hardware is fast at it
DataSource = Literal["sample", "files", "hub"]


class Section(BaseModel):
    """Keys and values under one key; unknown keys are errors, and no value is converted but a whole number to float."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Params(Section):
    """What a stage reads. A field's name, or its alias, is the key as dvc.yaml has it under `params:`.

    Such an alias is `pretrain.block_size`, `methods.${item.method}` or `data/params.yaml:sample`; `params.yaml:` stands
    for the whole file.
    """

    _settings: dict[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def read(cls, params: Mapping[str, Any] | None = None, **item: str) -> Self:
        """Read and check them; `item` names what dvc.yaml calls `${item.…}`.

        Raises InputError where a key is missing, a value is wrong, or two do not go together.
        """
        params = read_params() if params is None else params
        keys = {name: _filled(name, params, item) for name in cls.dvc_keys()}
        settings = values_of(params, keys.values())
        found = _validated(cls, {name: settings[key] for name, key in keys.items()}, "", PARAMS, keys)
        found._settings.update(settings)
        return found

    @classmethod
    def dvc_keys(cls) -> list[str]:
        """The keys as in dvc.yaml."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @property
    def settings(self) -> dict[str, Any]:
        """The values as they were read, by key; what the guard compares at the end of a stage."""
        return self._settings


def read_params(folder: Path = Path()) -> dict[str, Any]:
    """All keys of params.yaml and data/params.yaml in a folder."""
    params = read_yaml(folder / PARAMS)
    return params | (read_yaml(folder / DATA_PARAMS) if (folder / DATA_PARAMS).is_file() else {})


def read_yaml(path: Path) -> dict[str, Any]:
    """A file of keys and values, as DVC reads it (YAML 1.2, where 5e-4 is a number).

    Raises InputError where it is none.
    """
    try:
        params = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{path}:{line}: {error.problem}") from None
    if not isinstance(params, dict):
        raise InputError(f"{path}: expected keys and values, found {type(params).__name__}")
    return params


def file_of(key: str) -> Path:
    """The file that a key stands in."""
    return DATA_PARAMS if key.partition(".")[0] in DATA_KEYS else PARAMS


def section(params: Mapping[str, Any], key: str) -> Any:
    """The value under a dotted key; the message of an InputError says what there is in its place."""
    if key == str(PARAMS):
        return {name: value for name, value in params.items() if name not in DATA_KEYS}
    value: Any = params
    for step, name in enumerate(key.split(".")):
        if not isinstance(value, Mapping) or name not in value:
            there = ", ".join(map(str, value)) if isinstance(value, Mapping) else repr(value)
            above = ".".join(key.split(".")[:step]) or "top level"
            raise InputError(f"{file_of(key)}: {key} is missing; {above} has: {there}")
        value = value[name]
    return value


def values_of(params: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The values under several dotted keys, by key."""
    return {key: section(params, key) for key in keys}


@overload
def build(kind: type[T], params: Mapping[str, Any], key: str, file: Path | None = None) -> T: ...
@overload
def build(kind: Any, params: Mapping[str, Any], key: str, file: Path | None = None) -> Any: ...
def build(kind: Any, params: Mapping[str, Any], key: str, file: Path | None = None) -> Any:
    """The value under a dotted key of the settings, or under a key of another `file`, checked against a type."""
    value = section(params, key) if file is None else params[key]
    return _validated(kind, value, key, file or file_of(key))


def build_file(kind: type[T], path: Path) -> T:
    """The whole of a file, checked against a `Section` or a dataclass."""
    return _validated(kind, read_yaml(path), "", path)


def require(holds: bool, field: str, value: object, allowed: str) -> None:
    """Raise what pydantic and `build` turn into a line of the usual form, unless `holds`."""
    if not holds:
        raise ValueError(f"{field}: {shown(value)} is not allowed; {allowed}")


def shown(value: Any) -> str:
    """A value in YAML's words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _validated(kind: Any, value: Any, key: str, file: Path, keys: Mapping[str, str] | None = None) -> Any:
    """The value as `kind`; `keys` gives the keys of a stage's fields, by their names in dvc.yaml."""
    extra = None if isinstance(kind, type) and issubclass(kind, BaseModel) else "forbid"  # else each class says it
    try:  # as json, in which a list may become a tuple while nothing else is converted
        return _adapter(kind).validate_json(json.dumps(value, default=str), strict=True, extra=extra)
    except ValidationError as error:
        place, problem = _first_problem(kind, value, error.errors())
        named = [keys[place[0]], *place[1:]] if keys and place else place
        path = ".".join(filter(None, [key, *named])).replace(".[", "[")
        problem = problem if path else problem.lstrip(".")
        file = file if keys is None else file_of(path or problem)
        raise InputError(f"{file}: {path}{'' if problem[0] in '. ' or not path else ': '}{problem}") from None


def _first_problem(kind: Any, value: Any, errors: Sequence[Any]) -> tuple[list[str], str]:
    """Where under `value` the first error is, and what is wrong there.

    Of a value that may be of several types there is an error for each of them: the one furthest inside counts.
    """
    located = [_located(kind, value, error) for error in errors]
    (first, known), _ = located[0]
    of_one = [(place, problem) for (place, _), problem in located if place[:known] == first[:known]]
    return max(of_one, key=lambda found: len(found[0]))


def _located(kind: Any, value: Any, error: Any) -> tuple[tuple[list[str], int], str]:
    """Where an error is, how many of these steps are the same whichever type the value is of, and what is wrong."""
    *loc, last = error["loc"] or (None,)
    is_key = error["type"] in ("extra_forbidden", "unexpected_keyword_argument", *_MISSING)
    loc = loc if is_key else [*loc, last]
    place: list[str] = []
    known: int | None = None
    for part in loc:
        found = _step(kind, value, part)
        if found is None:  # the name of one of several types
            known = len(place) if known is None else known
            continue
        kind, value = found
        place.append(f"[{part}]" if isinstance(part, int) else str(part))
    return ([*place, str(last)] if is_key else place, len(place) if known is None else known), _said(kind, value, error)


_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")


def _said(kind: Any, value: Any, error: Any) -> str:
    """What is wrong with a value."""
    if error["type"] in _MISSING:
        return " is missing"
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"unknown key; allowed: {', '.join(_fields(kind))}"
    if error["type"] == "value_error":
        said = str(error["ctx"]["error"])
        return f".{said}" if isinstance(value, Mapping) else said
    return f"{shown(value)} is not allowed; expected {allowed(kind)}"


def _step(kind: Any, value: Any, part: Any) -> tuple[Any, Any] | None:
    """The type and value one step further in; None where there is no such step."""
    if isinstance(value, Mapping) and part in value:
        for each in _kinds(kind):
            arguments = typing.get_args(each)
            if part in _fields(each):
                return _fields(each)[part], value[part]
            if typing.get_origin(each) is dict:
                return arguments[1], value[part]
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        items = [typing.get_args(each)[0] for each in _kinds(kind) if typing.get_origin(each) in (list, tuple)]
        return (items[0], value[part]) if items else None
    return None


def _kinds(kind: Any) -> list[Any]:
    """The types that a type allows, without what is said of their values."""
    if typing.get_origin(kind) is Annotated:
        return _kinds(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return [inner for each in typing.get_args(kind) for inner in _kinds(each)]
    return [kind]


def _fields(kind: Any) -> dict[str, Any]:
    """The types of a class's fields, by key, with what is said of their values; none of what has no fields."""
    for each in _kinds(kind):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return {field.alias or name: annotation_of(field) for name, field in each.model_fields.items()}
        if dataclasses.is_dataclass(each):
            return typing.get_type_hints(each, include_extras=True)
    return {}


def annotation_of(field: FieldInfo) -> Any:
    """A field's type with the limits of its values."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def allowed(kind: Any) -> str:
    """Which values a type allows, in plain English."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        limits = [
            limit for each in arguments[1:] for limit in (each.metadata if isinstance(each, FieldInfo) else [each])
        ]
        return _limited(allowed(arguments[0]), limits)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin in (list, tuple) and typing.get_origin(arguments[0]) is Literal:
        return f"a list with some of {', '.join(typing.get_args(arguments[0]))}"
    if origin in (list, tuple):
        return f"a list of {_PLURALS.get(arguments[0]) or allowed(arguments[0]).removeprefix('a ')}"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(allowed(each) for each in arguments)
    return _NAMES.get(kind, "a section of keys and values")


_NAMES = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    str: "text",
    type(None): "null",
    Any: "any value",
}
_PLURALS = {float: "numbers", int: "whole numbers", str: "names"}


def _limited(text: str, limits: Iterable[Any]) -> str:
    """The text with the limits of a number or of a list's length."""
    found = {name: getattr(limit, name) for limit in limits for name in ("gt", "ge", "lt", "le", "min_length")
             if getattr(limit, name, None) is not None}  # fmt: skip
    text, _, rest = text.partition(" or ")
    if "min_length" in found:
        text = text.replace("a list of ", f"a list of at least {found['min_length']} ").removesuffix("s")
    if {"gt", "lt"} <= found.keys():
        text += f" between {found['gt']} and {found['lt']}"
    elif {"ge", "le"} <= found.keys():
        text += f" from {found['ge']} to {found['le']}"
    elif {"ge", "lt"} <= found.keys():
        text += f" from {found['ge']} to below {found['lt']}"
    elif "gt" in found:
        text += f" above {found['gt']}"
    elif "ge" in found:
        text += f" of {found['ge']} or more"
    return f"{text} or {rest}" if rest else text


def _filled(name: str, params: Mapping[str, Any], item: Mapping[str, str]) -> str:
    """A key of dvc.yaml with its variables filled in, without the file that it stands in."""
    key = _NAMED.sub(lambda match: str(item[match[1]] if match[1] in item else section(params, match[1])), name)
    return str(PARAMS) if key == f"{PARAMS}:" else key.removeprefix(f"{DATA_PARAMS}:")


def default_of(stages: Mapping[str, type[Params]], key: str) -> tuple[bool, Any]:
    """Whether a key of the settings is one that some stage reads, and its default, or None where it has none."""
    for stage, of in stages.items():
        for name, field in of.model_fields.items():
            top = (field.alias or name).removeprefix(f"{DATA_PARAMS}:").replace("${item.task}", TASK_OF.get(stage, ""))
            if key != top and not key.startswith(f"{top}."):
                continue
            found: FieldInfo | None = field
            for part in filter(None, key.removeprefix(top).split(".")):
                kind = _kinds(found.annotation)[0] if found else None
                found = kind.model_fields.get(part) if isinstance(kind, type) and issubclass(kind, BaseModel) else None
            if found is not None:
                return True, None if found.is_required() else found.default
    return False, None
