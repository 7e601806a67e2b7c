"""`retrace settings`: the page docs/settings.md, made of the classes that stages read their settings with."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from retrace.cli.check import NAMED_BY_DVC, STAGES
from retrace.core.settings import (
    DATA_PARAMS,
    PARAMS,
    allowed_values,
    file_of,
    load_plugin,
    plugin_names,
    schema_of,
    shown,
)
from retrace.finetuning.settings import METHODS, PER_TASK, MethodSettings

INTRODUCTION = f"""# Settings

This page is what `retrace settings` prints. [{PARAMS}](../{PARAMS}) and [{DATA_PARAMS}](../{DATA_PARAMS}) hold the
values in force; a key with a default may be left out there. `retrace check` validates both files without running
anything.

- `dvc repro` reruns what depends on a changed value; `dvc exp run -S lr=5e-4 -S {DATA_PARAMS}:sample.articles=100`
  tries values without editing.
- `retrace preset real` writes a file of [presets/](../presets) into {PARAMS}, after presets/sample.yaml. A preset is a
  YAML file with some of these keys; those of {DATA_PARAMS} stand in a section of that name.
- NAME in a key is a name of your own.
"""
TASKS = {"finetune-sst2": "sst2", "finetune-squad": "squad"}  # always there, unlike what else dvc.yaml fills in
Schema = Mapping[str, Any]
Row = tuple[str, str, str, str]


def settings() -> None:
    """Print every key of params.yaml and data/params.yaml as Markdown, which is docs/settings.md."""
    print(settings_page(), end="")


def settings_page() -> str:
    """The whole page, a table for each section."""
    tables: dict[str, dict[str, Row]] = {}
    for file in (PARAMS, DATA_PARAMS):
        for key, schema in keys_of_stages().items():
            for row in _rows(key, schema) if file_of(key) == file else ():
                tables.setdefault(f"{_heading(row[0])} ({file})", {}).setdefault(row[0], row)
    lines = [INTRODUCTION]
    for heading, rows in tables.items():
        lines += [f"## {heading}\n", "| key | allowed | default | meaning |", "|---|---|---|---|"]
        lines += [f"| `{key}` | {values} | {default} | {meaning} |" for key, values, default, meaning in rows.values()]
        lines.append("")
    return "\n".join(lines)


@cache
def keys_of_stages() -> dict[str, Schema]:
    """The keys that stages read, with their JSON schemas; NAME stands for what dvc.yaml fills in."""
    keys: dict[str, Schema] = {}
    for stage, of in STAGES.items():
        for name, schema in schema_of(of)["properties"].items():
            key = name.rpartition(":")[2].replace("${item.task}", TASKS.get(stage, ""))
            if key not in ("", "${data}"):
                keys.setdefault(re.sub(r"\$\{[\w.]+\}", "NAME", key), schema)
    return keys


def _heading(key: str) -> str:
    """The section that a key stands in; keys of the top level stand together."""
    *above, _ = key.split(".")
    return ".".join(above[:2]) if above[:1] == ["hub"] else above[0] if above else "top level"


def _rows(key: str, schema: Schema) -> Iterator[Row]:
    """A row for a value, or for each value of a section."""
    if key == "methods.NAME" and "properties" not in schema:  # dvc.yaml compares entries as they are
        yield from _rows_of_methods()
    elif "properties" in schema and key.endswith(".optimizer") and not key.startswith("pretrain."):
        yield key, "a section of keys and values", "`{}`", "the keys of `pretrain.optimizer`"
    elif "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from _rows(f"{key}.{name}", inner)
    elif "description" in schema:  # else it is a part of what another stage reads
        default = schema.get("default")
        written = default if isinstance(default, str) else shown(default)
        may_be_absent = "default" in schema and key not in {*NAMED_BY_DVC, *keys_of_stages()}
        yield key, allowed_values(schema), f"`{written}`" if may_be_absent else "", schema["description"]


def _rows_of_methods() -> Iterator[Row]:
    """The settings of any method, then those that a method alone has."""
    general = schema_of(MethodSettings)
    yield from _rows("methods.NAME", general)
    yield f"methods.NAME.{PER_TASK}", "a section of keys and values", "`{}`", "other values for single tasks"
    for method in plugin_names(METHODS):
        for name, schema in schema_of(load_plugin(METHODS, method, "methods").Settings)["properties"].items():
            if name not in general["properties"]:
                yield from _rows(f"methods.{method}.{name}", schema)
