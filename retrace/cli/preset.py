"""`retrace preset`: write the settings of a preset into params.yaml, comments kept.

A preset is a file of presets/, or any other YAML file, with some of the keys of params.yaml. Keys of data/params.yaml
stand in its section `data/params.yaml:`. presets/sample.yaml is written first, then each preset in the order given.
"""

import io
import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

from retrace.cli.check import STAGES, check_settings
from retrace.core.errors import InputError
from retrace.core.files import write_text
from retrace.core.settings import DATA_PARAMS, PARAMS, default_of, read_yaml

PRESETS = Path("presets")
FIRST = "sample"
COMMENT = re.compile(r"^([^#\n]*\S) {2,}#", re.MULTILINE)  # a comment after a value that became shorter
# Replaced as a whole, as what such a section holds belongs together; all others are merged key by key.
WHOLE = (
    "methods", "files", "checkpoints", "classification", "question_answering",
    "hub.classification", "hub.text", "hub.sst2", "hub.squad",
)  # fmt: skip


def main(
    presets: Annotated[
        list[str], typer.Argument(metavar="PRESET", help="a file of presets/ by name, or any other file")
    ],
) -> None:
    """Write presets into params.yaml and data/params.yaml; nothing is written where one of them is wrong."""
    write_presets(presets)


def write_presets(presets: Sequence[str | Path], folder: Path = Path()) -> None:
    """Write presets, after that of the sample, into params.yaml and data/params.yaml of a folder.

    Raises InputError where a preset has an unknown key or a value that `retrace check` refuses.
    """
    yaml = _yaml()
    paths = {file: folder / file for file in (PARAMS, DATA_PARAMS)}
    files = {file: yaml.load(path.read_text(encoding="utf-8")) for file, path in paths.items()}
    for preset in dict.fromkeys([FIRST, *presets]):
        path = find_preset(preset, folder)
        read_yaml(path)  # which says what is wrong with it
        values = yaml.load(path.read_text(encoding="utf-8"))
        of_data = values.pop(str(DATA_PARAMS), {})
        _merge(files[PARAMS], values, path, PARAMS)
        _merge(files[DATA_PARAMS], of_data, path, DATA_PARAMS)
    check_settings(files[PARAMS], files[DATA_PARAMS])
    for file, path in paths.items():
        stream = io.StringIO()
        yaml.dump(files[file], stream)
        text = COMMENT.sub(r"\1 #", stream.getvalue())
        if text != path.read_text(encoding="utf-8"):
            write_text(path, text)


def find_preset(preset: str | Path, folder: Path = Path()) -> Path:
    """The file of a preset, by its name or path.

    Raises InputError where there is none.
    """
    named = folder / PRESETS / f"{preset}.yaml"
    path = named if named.is_file() else Path(preset)
    if not path.is_file():
        names = ", ".join(sorted(each.stem for each in (folder / PRESETS).glob("*.yaml")))
        raise InputError(f"{preset}: no such file, nor a preset; there are: {names}")
    return path


def _merge(
    into: MutableMapping[str, Any], values: Mapping[str, Any], preset: Path, file: Path, above: str = ""
) -> None:
    """Set the values; what is equal already keeps its form and its comments."""
    for name, value in values.items():
        key = f"{above}{name}"
        if name in into and into[name] == value:
            continue
        is_of_task = file == PARAMS and not above and not default_of(STAGES, key)[0]  # a further one
        if (key in WHOLE or is_of_task) and isinstance(into.get(name), MutableMapping) and isinstance(value, Mapping):
            for gone in [other for other in into[name] if other not in value]:
                del into[name][gone]
            for inner, each in value.items():
                if inner not in into[name] or into[name][inner] != each:
                    into[name][inner] = each
        elif isinstance(into.get(name), MutableMapping) and isinstance(value, Mapping):
            _merge(into[name], value, preset, file, f"{key}.")
        elif isinstance(into.get(name), MutableSequence) and isinstance(value, Sequence):
            into[name][:] = value  # in the form that it has there
        elif name in into:
            into[name] = value
        else:
            _add(into, name, value, preset, file, key)


def _add(into: MutableMapping[str, Any], name: str, value: Any, preset: Path, file: Path, key: str) -> None:
    """Add a key that the file leaves out, unless the value is its default anyway."""
    known, default = default_of(STAGES, key)
    if not known and not (file == PARAMS and "." not in key and isinstance(value, Mapping)):  # which may be a task's
        raise InputError(f"{preset}: {key}: unknown key; {file} has no such key")
    if not known or value != default:
        into[name] = value


def _yaml() -> YAML:
    """As DVC reads and writes the file in `dvc exp run -S`."""
    yaml = YAML()
    yaml.default_flow_style = False
    return yaml
