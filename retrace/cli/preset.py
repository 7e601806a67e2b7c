"""`retrace preset`: presets, and how they are merged into params.yaml."""

import io
import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

from retrace.cli.check import check_settings
from retrace.cli.settings import keys_of_stages
from retrace.core.errors import InputError
from retrace.core.files import write_text
from retrace.core.settings import DATA_PARAMS, PARAMS, read_yaml, within

PRESETS = Path("presets")
FIRST = "sample"
COMMENT = re.compile(r"^([^#\n]*\S) {2,}#", re.MULTILINE)  # a comment after a value that became shorter
# Replaced as a whole, as what such a section holds belongs together; all others are merged key by key.
WHOLE = (
    "methods", "files", "checkpoints", "classification", "question_answering",
    "hub.classification", "hub.text", "hub.sst2", "hub.squad",
)  # fmt: skip


def preset(
    presets: Annotated[
        list[str], typer.Argument(metavar="PRESET", help="a file of presets/ by name, or any other file")
    ],
) -> None:
    """Write the settings of presets into params.yaml and data/params.yaml, comments kept.

    A preset is a file of presets/, or any other YAML file, with some of the keys of params.yaml. Keys of
    data/params.yaml stand in its section `data/params.yaml:`. presets/sample.yaml is written first, then each preset in
    the order given. Nothing is written where one of them is wrong.
    """
    write_presets(presets)


def write_presets(presets: Sequence[str | Path], folder: Path = Path()) -> None:
    """Write presets, after that of the sample, into params.yaml and data/params.yaml of a folder.

    Raises InputError where a preset has an unknown key or a value that `retrace check` refuses.
    """
    yaml = YAML()
    yaml.default_flow_style = False  # as DVC writes the file in `dvc exp run -S`
    paths = {file: folder / file for file in (PARAMS, DATA_PARAMS)}
    files = {file: yaml.load(path.read_text(encoding="utf-8")) for file, path in paths.items()}
    for name in dict.fromkeys([FIRST, *presets]):
        path = _find(name, folder)
        read_yaml(path)  # which says what is wrong with it
        values = yaml.load(path.read_text(encoding="utf-8"))
        _merge(files[DATA_PARAMS], values.pop(str(DATA_PARAMS), {}))
        _merge(files[PARAMS], values)
    check_settings(files[PARAMS], files[DATA_PARAMS])
    for file, path in paths.items():
        stream = io.StringIO()
        yaml.dump(files[file], stream)
        text = COMMENT.sub(r"\1 #", stream.getvalue())
        if text != path.read_text(encoding="utf-8"):
            write_text(path, text)


def _find(name: str | Path, folder: Path) -> Path:
    """The file of a preset, by its name or path."""
    named = folder / PRESETS / f"{name}.yaml"
    path = named if named.is_file() else Path(name)
    if not path.is_file():
        names = ", ".join(sorted(each.stem for each in (folder / PRESETS).glob("*.yaml")))
        raise InputError(f"{name}: no such file, nor a preset; there are: {names}")
    return path


def _merge(into: MutableMapping[str, Any], values: Mapping[str, Any], above: str = "") -> None:
    """Set the values; what is equal already keeps its form and its comments, what is a default is not added."""
    for name, value in values.items():
        key, old = f"{above}{name}", into.get(name)
        if name in into and old == value:
            continue
        if isinstance(old, MutableMapping) and isinstance(value, Mapping):
            if key in WHOLE or not (above or _schema(key)):  # the second is of a further task
                for gone in [inner for inner in old if inner not in value]:
                    del old[gone]
                old.update({inner: each for inner, each in value.items() if inner not in old or old[inner] != each})
            else:
                _merge(old, value, f"{key}.")
        elif isinstance(old, MutableSequence) and isinstance(value, Sequence):
            old[:] = value  # in the form that it has there
        elif name in into or "default" not in _schema(key) or value != _schema(key)["default"]:
            into[name] = value


def _schema(key: str) -> Mapping[str, Any]:
    """The JSON schema of a key of the settings; empty where no stage reads it."""
    for top, schema in keys_of_stages().items():
        found = within(schema, key.removeprefix(top).split(".")[1:]) if f"{key}.".startswith(f"{top}.") else {}
        if found:
            return found
    return {}
