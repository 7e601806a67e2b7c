"""params.yaml and data/params.yaml, read strictly into frozen classes.

A `Section` is a part of the files, such as `pretrain`. A `Params` is all that one stage reads: its fields are the keys
that dvc.yaml lists under `params:` for that stage. Errors are `InputError`s of one line that name the file, the key,
the value and what is allowed.

Model families, fine-tuning methods and metrics are plug-ins: the name in params.yaml is that of a file in their folder.
"""

import ast
import importlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, Self, TypeVar, overload

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from retrace.core.errors import InputError, first_line, one_line
from retrace.core.files import read_text
from retrace.core.paths import PROJECT, require_checkout
from retrace.core.schema import problem, schema_of, shown

PARAMS, DATA_PARAMS = Path("params.yaml"), Path("data/params.yaml")
# The keys of data/params.yaml; all others are in params.yaml.
DATA_KEYS = ("sample", "files", "hub", "classification", "question_answering", "checkpoints")
LARGEST_SEED = 2**32 - 1  # of NumPy
LARGEST = 2**63  # whole numbers are below it, to fit in 64 bits
MOST_VALUES = 100_000  # in a file; ours have a few hundred
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")  # of a method or checkpoint; it names folders and DVC's stages too
_NAMED = re.compile(r"\$\{(?:item\.)?([\w.]+)\}")  # as in dvc.yaml

T = TypeVar("T")
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
Count = Annotated[int, Field(gt=0)]
Size = Annotated[int, Field(ge=1, le=2**24)]  # of a side of a matrix: torch counts a matrix's bytes in 63 bits
Positive = Annotated[float, Field(gt=0)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Resamples = Annotated[int, Field(ge=100)]
Precision = Literal["auto", "fp32", "bf16"]  # auto: bf16 where the hardware is fast at it
DataSource = Literal["sample", "files", "hub"]
MaskReplacement = Literal["mask", "80-10-10"]


class Section(BaseModel):
    """Keys and values under one key; unknown keys are errors, and the only conversion is from whole number to float."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Params(Section):
    """What a stage reads. A field's name, or its alias, is the key as in dvc.yaml under `params:`.

    Examples of aliases: `pretrain.block_size`, `methods.${item.method}`, `data/params.yaml:sample`; `params.yaml:` is
    the whole file.
    """

    _settings: dict[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def read(cls, params: Mapping[str, Any] | None = None, **item: str) -> Self:
        """Read and check the settings; `item` gives the values of `${item.…}` in dvc.yaml.

        Raises InputError if a key is missing, a value is wrong, or two do not go together.
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
        """The values as they were read, by key, which the guard compares at the end of a stage."""
        return self._settings


def read_params(folder: Path = Path()) -> dict[str, Any]:
    """All keys of params.yaml and data/params.yaml in a folder.

    Raises InputError if params.yaml is absent.
    """
    require_checkout(PARAMS, folder=folder)
    params = read_yaml(folder / PARAMS)
    return with_data(params, read_yaml(folder / DATA_PARAMS) if (folder / DATA_PARAMS).is_file() else {})


def with_data(params: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of both files; data/params.yaml adds only the keys that belong there, so it overrides nothing."""
    return {**params, **{key: value for key, value in data.items() if key in DATA_KEYS}}


class _Placed(SafeConstructor):
    """Names the line of a value that cannot be constructed, such as 30 February or a number of 5,000 digits."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError) as error:
            said = f"not a date, a number or a boolean: {error}"
            raise ConstructorError(None, None, said, node.start_mark) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The keys and values in a file, as DVC reads it (YAML 1.2, where 5e-4 is a number).

    Raises FileNotFoundError if the file is absent, InputError if it is not YAML or has no keys and values.
    """
    return parse_yaml(read_text(path), path)


def parse_yaml(text: str, path: Path) -> dict[str, Any]:
    """The keys and values in the text of a file.

    Raises InputError if it is not YAML or has no keys and values.
    """
    try:
        reader = YAML(typ="safe", pure=True)
        reader.Constructor = _Placed
        params = reader.load(text)
        _require_plain(path, params)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        raise InputError(f"{path}:{place}: {first_line(error.problem)}") from None
    except ReaderError as error:
        before = text[: error.position].split("\n")
        place = f"{len(before)}:{len(before[-1]) + 1}"
        raise InputError(f"{path}:{place}: the character {chr(error.character)!r} is not allowed in YAML") from None
    except (RecursionError, ValueError, LookupError) as error:  # nested too deeply, or an escape of no character
        raise InputError(f"{path}: not YAML: {error}") from None
    if not isinstance(params, dict):
        found = "nothing" if params is None else type(params).__name__
        raise InputError(f"{path}: expected keys and values, found {found}")
    return params


def _require_plain(path: Path, params: Any) -> None:
    """Raise InputError if aliases (*name) expand to too many values, or if a key or a number is not allowed."""
    count, waiting = 0, [params]
    while waiting:
        value = waiting.pop()
        items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        inner = list(items)
        for key, found in inner:
            if not isinstance(key, str | int | float | None):
                raise InputError(f"{path}: the key {key!r} is not allowed; expected text")
            if isinstance(found, int) and abs(found) >= LARGEST:
                bits = found.bit_length()
                raise InputError(f"{path}: {key}: a whole number of {bits} bits is not allowed; expected at most 63")
        count += len(inner)
        if count > MOST_VALUES:
            most = f"more than {MOST_VALUES:,} values"
            raise InputError(f"{path}: {most}, counting everything that aliases (*name) expand to")
        waiting += [found for _, found in inner]


def file_of(key: str) -> Path:
    """The file that a key is in."""
    return DATA_PARAMS if key.partition(".")[0] in DATA_KEYS else PARAMS


def entry_name(text: str) -> str:
    """The name of an entry in data/params.yaml, from itself or from its stage: data/dvc.yaml:checkpoints@<name>."""
    return text.rpartition("@")[2]


def section(params: Mapping[str, Any], key: str) -> Any:
    """The value under a dotted key; raises InputError, which lists the existing keys, if it is missing."""
    if key == str(PARAMS):
        return {name: value for name, value in params.items() if name not in DATA_KEYS}
    value: Any = {name: each for name, each in params.items() if file_of(str(name)) == file_of(key)}
    for step, name in enumerate(key.split(".")):
        if not isinstance(value, Mapping) or name not in value:
            there = ", ".join(map(str, value)) if isinstance(value, Mapping) else shown(value)
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
    """The value under a dotted key of the settings, or under a key of another `file`, validated as a type."""
    value = section(params, key) if file is None else params[key]
    return _validated(kind, value, key, file or file_of(key))


def build_file(kind: type[T], path: Path) -> T:
    """A whole file, validated as a `Section` or a dataclass."""
    return _validated(kind, read_yaml(path), "", path)


def require(holds: bool, field: str, value: object, allowed: str) -> None:
    """Unless `holds`, raise the error that pydantic and `build` turn into one line of the usual form."""
    if not holds:
        raise ValueError(f"{field}: {shown(value)} is not allowed; {allowed}")


def require_each_once(field: str, listed: Collection[object]) -> None:
    """Raise the same error if something is listed twice."""
    require(len(set(listed)) == len(listed), field, listed, "expected each once")


def require_one_of(allowed: Collection[str], name: object, key: str, place: Path | str | None = None) -> None:
    """Raise InputError unless the name under a key is allowed; it names the key's file, or `place` if that is given."""
    if name not in allowed:
        expected = f"one of {', '.join(allowed)}" if allowed else "none, as there are none"
        raise InputError(f"{place or file_of(key)}: {key}: {name!r} is not allowed; expected {expected}")


def plugin_names(package: str) -> list[str]:
    """The names of the modules in a package, sorted."""
    files = (PROJECT / package.replace(".", "/")).glob("*.py")
    return sorted(path.stem for path in files if path.stem != "__init__")


def plugin_file(package: str, name: str) -> Path:
    """The path of a plug-in's file, from the project's folder."""
    return Path(package.replace(".", "/")) / f"{name}.py"


def load_plugin(package: str, name: str, needs: Sequence[str], key: str, place: Path | None = None) -> ModuleType:
    """Import the module called `name` from a package.

    Raises InputError. If there is no such module, it names the `key` of the settings, or of the file `place`; if the
    module cannot be imported or lacks one of the names that it `needs`, it names the module's file.
    """
    require_one_of(plugin_names(package), name, key, place)
    file = plugin_file(package, name)
    try:
        module = importlib.import_module(f"{package}.{name}")
    except SyntaxError as error:
        raise InputError(_syntax_error(error)) from error
    except Exception as error:  # of any kind: it runs what its author wrote
        raise InputError(f"{file}: cannot be imported: {type(error).__name__}: {one_line(error)}") from error
    for needed in needs:
        if not hasattr(module, needed):
            raise InputError(f"{file}: does not define {needed}; docs/architecture.md says what such a file needs")
    return module


def parse_source(path: Path) -> list[ast.stmt]:
    """The statements of a plug-in's file, for questions that can be answered without importing it, which takes seconds.

    Raises InputError if it is not Python.
    """
    try:
        return ast.parse(read_text(path), path).body
    except SyntaxError as error:
        raise InputError(_syntax_error(error)) from error


def _syntax_error(error: SyntaxError) -> str:
    """Which line of which file is not Python."""
    file = Path(error.filename or "")
    return f"{file.relative_to(PROJECT) if file.is_relative_to(PROJECT) else file}:{error.lineno}: {error.msg}"


def _validated(kind: Any, value: Any, key: str, file: Path, keys: Mapping[str, str] | None = None) -> Any:
    """The value as `kind`; `keys` gives the keys of a stage's fields, by their names in dvc.yaml."""
    extra = None if isinstance(kind, type) and issubclass(kind, BaseModel) else "forbid"  # models set it themselves
    try:  # as json, where pydantic's strict mode lets a list become a tuple and converts nothing else
        return TypeAdapter(kind).validate_json(json.dumps(value, default=str), strict=True, extra=extra)
    except ValidationError as error:
        problems = [problem(schema_of(kind), value, each) for each in error.errors()]
        place, said = max(problems, key=lambda found: len(found[0]))  # of several allowed types, the deepest error
        named = [keys[place[0]], *place[1:]] if keys and place else place
        path = ".".join(filter(None, [key, *named])).replace(".[", "[")
        file = file if keys is None else file_of(path or said.lstrip(".: "))
        raise InputError(f"{file}: {path + said if path else said.lstrip('.: ')}") from None


def _filled(name: str, params: Mapping[str, Any], item: Mapping[str, str]) -> str:
    """A key of dvc.yaml with its variables filled in, without the file's name."""
    key = _NAMED.sub(lambda match: str(item[match[1]] if match[1] in item else section(params, match[1])), name)
    return str(PARAMS) if key == f"{PARAMS}:" else key.removeprefix(f"{DATA_PARAMS}:")
