"""`retrace settings`, which explains params.yaml and data/params.yaml, and `retrace preset`, which writes them.

The meanings of the keys and the allowed values come from the classes with which stages read their settings.
"""

import copy
import io
import re
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

from retrace.cli.check import NAMED_BY_DVC, STAGES, check_settings
from retrace.core.errors import InputError
from retrace.core.files import write_text
from retrace.core.paths import require_checkout
from retrace.core.schema import allowed_values, schema_of, shown, within
from retrace.core.settings import (
    DATA_PARAMS,
    PARAMS,
    build,
    file_of,
    plugin_names,
    read_yaml,
    require_one_of,
    section,
    with_data,
)
from retrace.finetuning.settings import METHODS, PER_TASK, MethodSettings, load_method
from retrace.report.runs import flat

INTRODUCTION = f"""# Settings

This page is what `retrace settings` prints. [{PARAMS}](../{PARAMS}) and [{DATA_PARAMS}](../{DATA_PARAMS}) hold the
current values; a key with a default may be left out there. `retrace check` validates both files without running
anything.

- `dvc repro` reruns what depends on a changed value; `dvc exp run -S lr=5e-4 -S {DATA_PARAMS}:sample.seed=2`
  tries values without editing, `-S +pretrain.max_tokens=100000` adds a key that the file leaves out, and
  `-S 'finetune.methods=[full,lora]'` sets a list.
- `retrace preset real` writes presets/sample.yaml and then presets/real.yaml into {PARAMS}. A preset in
  [presets/](../presets) is a YAML file with some of these keys; those of {DATA_PARAMS} go in a section of that name.
- NAME in a key is a name of your own.
"""
TASKS = {"finetune-sst2": "sst2", "finetune-squad": "squad"}  # the task that a stage always has
Schema = Mapping[str, Any]
Row = tuple[str, str, str, str]
PRESETS = Path("presets")
FIRST = "sample"
HOURS = "hours"  # a section of presets
Presets = typer.Argument(metavar="PRESET", help="the name of a file in presets/, or the path of any other file")
Hours = typer.Option(help="write the last preset's values for a run of this many hours")
COMMENT = re.compile(r"^([^#'\"\n]*\S) {2,}#", re.MULTILINE)  # after a value that became shorter
# Sections that are replaced as a whole, as their keys belong together; all others are merged key by key.
WHOLE = (
    "methods", "files", "checkpoints", "classification", "question_answering",
    "hub.classification", "hub.text", "hub.sst2", "hub.squad",
)  # fmt: skip
# What names tasks, by listing or defining them.
NAMING = ("finetune.tasks", "finetune.questions", "classification", "question_answering", "hub.classification")


def settings() -> None:
    """Print every key of params.yaml and data/params.yaml as Markdown, which is docs/settings.md."""
    tables: dict[str, dict[str, Row]] = {}
    for file in (PARAMS, DATA_PARAMS):
        of_file = [(key, schema) for key, schema in keys_of_stages().items() if file_of(key) == file]
        for key, schema in of_file:
            for row in _rows(key, schema):
                tables.setdefault(f"{_heading(row[0])} ({file})", {}).setdefault(row[0], row)
    lines = [INTRODUCTION]
    for heading, rows in tables.items():
        lines += [f"## {heading}\n", "| key | allowed | default | meaning |", "|---|---|---|---|"]
        lines += [f"| `{key}` | {values} | {default} | {meaning} |" for key, values, default, meaning in rows.values()]
        lines.append("")
    print("\n".join(lines), end="")


@cache
def keys_of_stages() -> dict[str, Schema]:
    """The keys that stages read, with their JSON schemas; NAME stands for what dvc.yaml fills in."""
    keys: dict[str, Schema] = {}
    for stage, params_class in STAGES.items():
        for name, schema in schema_of(params_class)["properties"].items():
            key = name.rpartition(":")[2].replace("${item.task}", TASKS.get(stage, ""))
            if key not in ("", "${data}"):
                keys.setdefault(re.sub(r"\$\{[\w.]+\}", "NAME", key), schema)
    return keys


def _heading(key: str) -> str:
    """The section that a key is in; keys of the top level are listed together."""
    *above, _ = key.split(".")
    return ".".join(above[:2]) if above[:1] == ["hub"] else above[0] if above else "top level"


def _rows(key: str, schema: Schema) -> Iterator[Row]:
    """A row for a value, or for each value of a section."""
    if key == "methods.NAME" and "properties" not in schema:  # stages take the whole entry, whatever its keys
        yield from _rows_of_methods()
    elif "properties" in schema and key.endswith(".optimizer") and not key.startswith("pretrain."):
        yield key, "a mapping", "`{}`", "the keys of `pretrain.optimizer`"
    elif "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from _rows(f"{key}.{name}", inner)
    elif "description" in schema:  # else it is part of a section that another stage reads
        default = schema.get("default")
        written = default if isinstance(default, str) else shown(default)
        may_be_absent = "default" in schema and key not in {*NAMED_BY_DVC, *keys_of_stages()}
        yield key, allowed_values(schema), f"`{written}`" if may_be_absent else "", schema["description"]


def _rows_of_methods() -> Iterator[Row]:
    """The settings that all methods have, then those of single methods."""
    general = schema_of(MethodSettings)
    yield from _rows("methods.NAME", general)
    yield f"methods.NAME.{PER_TASK}", "a mapping", "`{}`", "values that differ for some tasks, by the task's name"
    for method in plugin_names(METHODS):
        for name, schema in schema_of(load_method(method, "methods").Settings)["properties"].items():
            if name not in general["properties"]:
                yield from _rows(f"methods.{method}.{name}", schema)


def preset(presets: Annotated[list[str], Presets], hours: Annotated[str | None, Hours] = None) -> None:
    """Write the settings of presets into params.yaml and data/params.yaml, keeping their comments.

    A preset is a file of presets/, or any other YAML file, with some of the keys of params.yaml. Keys of
    data/params.yaml are in its section `data/params.yaml:`. presets/sample.yaml is written first, then each preset in
    the order given. A preset's section `hours:` has other values for shorter runs; --hours writes those of the last
    preset. Nothing is written if one of them is wrong.
    """
    changed = write_presets(presets, hours=hours)
    named = " and ".join(str(_find(name, Path())) for name in presets)
    if not changed:
        print(f"{PARAMS} and {DATA_PARAMS} already have the values of {named}")
        return
    count = sum(changed.values())
    print(f"wrote {named} into {' and '.join(map(str, changed))}: {count} value{'' if count == 1 else 's'} changed")


def write_presets(presets: Sequence[str | Path], folder: Path = Path(), hours: str | None = None) -> dict[Path, int]:
    """Write presets, after that of the sample, into params.yaml and data/params.yaml of a folder.

    Returns the number of values that changed, by file; unchanged files are left out.
    Raises InputError if a preset has an unknown key, a value that `retrace check` refuses, or nothing for the hours.
    """
    yaml = YAML()
    yaml.default_flow_style = False  # as `dvc exp run -S` writes the file
    paths = {file: folder / file for file in (PARAMS, DATA_PARAMS)}
    require_checkout(*paths, PRESETS, folder=folder)
    found = [_find(name, folder) for name in (FIRST, *presets)]
    before = {path: read_yaml(path) for path in (*paths.values(), *found)}  # for its errors; comments need `YAML` below
    for path, values in before.items():
        build(dict[str, Any] | None, {str(DATA_PARAMS): None} | values, str(DATA_PARAMS), path)
    files = {file: yaml.load(path) for file, path in paths.items()}
    _merge_presets(files, yaml, found, hours)
    try:
        check_settings(files[PARAMS], files[DATA_PARAMS])
    except InputError as error:
        raise InputError(f"{error} (with {' and '.join(map(str, presets))}; nothing was written)") from None
    changed = {}
    for file, path in paths.items():
        old, new = flat(before[path]), flat(files[file])
        changed[file] = sum(old.get(key) != new.get(key) for key in {**old, **new})
        stream = io.StringIO()
        yaml.dump(files[file], stream)
        text = COMMENT.sub(r"\1 #", stream.getvalue())
        if text != path.read_text(encoding="utf-8"):
            write_text(path, text)
    return {file: count for file, count in changed.items() if count}


def _merge_presets(files: Mapping[Path, Any], yaml: YAML, found: Sequence[Path], hours: str | None) -> None:
    """Merge presets in order, then the last one's values for this many hours; raises InputError if it has none."""
    budgets: object = {}
    before = _named_tasks(files)
    for path in found:
        values = yaml.load(path)
        budgets = values.pop(HOURS, None) or {}
        _merge(files[DATA_PARAMS], values.pop(str(DATA_PARAMS), None) or {})
        _merge(files[PARAMS], values)
    if hours is not None:
        named = build(dict[str, dict[str, Any]], {HOURS: budgets}, HOURS, found[-1])
        if not named:
            raise InputError(f"{found[-1]}: this preset has no section {HOURS}, so it cannot be written with --{HOURS}")
        require_one_of(named, hours, HOURS, found[-1])
        _merge(files[PARAMS], named[hours])
    for gone in before - _named_tasks(files) - set(TASKS.values()):
        files[PARAMS].pop(gone, None)


def _named_tasks(files: Mapping[Path, Any]) -> set[str]:
    """The tasks that are listed or defined; besides sst2 and squad, only these have a section of params.yaml."""
    settings, found = with_data(files[PARAMS], files[DATA_PARAMS]), set[str]()
    for key in NAMING:
        with suppress(InputError):  # it may be absent
            names = section(settings, key)
            found.update(map(str, names if isinstance(names, list | Mapping) else ()))
    return found


def _find(name: str | Path, folder: Path) -> Path:
    """The file of a preset, given its name or path."""
    named = folder / PRESETS / f"{name}.yaml"
    path = named if named.is_file() else Path(name)
    if not path.is_file():
        names = ", ".join(sorted(each.stem for each in (folder / PRESETS).glob("*.yaml")))
        raise InputError(f"{name}: no such file or preset; presets: {names}")
    return path


def _merge(into: MutableMapping[str, Any], values: Mapping[str, Any], above: str = "", replace: bool = False) -> None:
    """Set the values; equal ones keep their form and comments, and defaults are not added.

    With `replace`, keys that have no value are removed. A section is copied before it is changed, since an alias
    (*name) of it is the same object here and would change too.
    """
    if replace:
        for gone in [name for name in into if name not in values]:
            del into[gone]
    for name, value in values.items():
        key, old = f"{above}{name}", into.get(name)
        is_further_task = not above and not _schema(key)
        is_whole = replace or key in WHOLE or is_further_task
        if name not in into:
            is_default = "default" in _schema(key) and value == _schema(key)["default"]
            if replace or not is_default:
                into[name] = copy.deepcopy(value)
        elif old == value:
            continue
        elif isinstance(old, MutableMapping) and isinstance(value, Mapping) and (value or not is_whole):
            into[name] = copy.deepcopy(old)
            _merge(into[name], value, f"{key}.", is_whole)
        elif isinstance(old, MutableSequence) and isinstance(value, list | tuple):
            into[name] = copy.deepcopy(old)
            into[name][:] = value  # keeps its style
        else:
            into[name] = copy.deepcopy(value)


def _schema(key: str) -> Schema:
    """The JSON schema of a key of the settings; empty if no stage reads it."""
    above = [(top, schema) for top, schema in keys_of_stages().items() if f"{key}.".startswith(f"{top}.")]
    found = (within(schema, key.removeprefix(top).split(".")[1:]) for top, schema in above)
    return next(filter(None, found), {})
