"""`retrace settings`: every key of params.yaml and data/params.yaml as Markdown, which is docs/settings.md."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from pydantic.fields import FieldInfo

from retrace.cli.check import STAGES
from retrace.core.registry import plugin_names
from retrace.core.settings import DATA_PARAMS, PARAMS, TASK_OF, Section, allowed, annotation_of, shown
from retrace.finetuning.settings import METHODS, PER_TASK, MethodSettings
from retrace.training.settings import OptimizerSettings

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
# What dvc.yaml fills in, and whose keys are shown in its place.
NAMES = {"${item.method}": "NAME", "${key}": "NAME"}
Row = tuple[str, str, str, str]


def main() -> None:
    """Print the page."""
    print(settings_page(), end="")


def settings_page() -> str:
    """The whole page, a table for each section."""
    tables: dict[str, list[Row]] = {}
    for file in (PARAMS, DATA_PARAMS):
        for key, kind, field in _keys(file):
            for row in _rows(key, kind, field):
                table = tables.setdefault(f"{_heading(row[0])} ({file})", [])
                if row[0] not in [other[0] for other in table]:
                    table.append(row)
    lines = [INTRODUCTION]
    for heading, rows in tables.items():
        lines.append(f"## {heading}\n")
        lines += ["| key | allowed | default | meaning |", "|---|---|---|---|"]
        lines += [f"| `{key}` | {values} | {default} | {meaning} |" for key, values, default, meaning in rows]
        lines.append("")
    return "\n".join(lines)


def _heading(key: str) -> str:
    """The section that a key stands in; keys of the top level stand together."""
    *above, _ = key.split(".")
    return ".".join(above[:2]) if above[:1] == ["hub"] else above[0] if above else "top level"


def _keys(file: Any) -> Iterator[tuple[str, Any, FieldInfo | None]]:
    """The keys of a file that stages read, with their types."""
    for stage, of in STAGES.items():
        for name, field in of.model_fields.items():
            key = (field.alias or name).replace("${item.task}", TASK_OF.get(stage, ""))
            is_of_data = key.startswith(f"{DATA_PARAMS}:")
            key = key.removeprefix(f"{DATA_PARAMS}:")
            if is_of_data != (file == DATA_PARAMS) or key == "${data}" or key == f"{PARAMS}:":
                continue
            for variable, shown_as in NAMES.items():
                key = key.replace(variable, shown_as)
            if key == "methods.NAME":
                yield key, MethodSettings, None
                yield f"{key}.{PER_TASK}", dict, FieldInfo(default={}, description="other values for single tasks")
                for method in plugin_names(METHODS):
                    settings = import_module(f"{METHODS}.{method}").Settings
                    if settings is not MethodSettings:
                        yield f"methods.{method}", settings, None
            else:
                yield key, field.annotation, field


def _rows(key: str, kind: Any, field: FieldInfo | None) -> Iterator[Row]:
    """A row for a value, or for each value of a section; a method's own alone, as the others are those of any."""
    if kind is OptimizerSettings and not key.startswith("pretrain."):
        yield key, "a section of keys and values", "", f"the keys of `pretrain.{key.rpartition('.')[2]}`"
    elif isinstance(kind, type) and issubclass(kind, Section):
        is_of_one_method = issubclass(kind, MethodSettings) and kind is not MethodSettings
        for name, inner in kind.model_fields.items():
            if not (is_of_one_method and name in MethodSettings.model_fields):
                yield from _rows(f"{key}.{name}", inner.annotation, inner)
    elif field is not None and not (field.alias and not field.description):  # else it is a part of what another reads
        default = "" if field.is_required() else f"`{_default(field.default)}`"
        yield key, allowed(annotation_of(field) if field.annotation else kind), default, field.description or ""


def _default(value: Any) -> str:
    return str(value) if isinstance(value, str) else shown(list(value) if isinstance(value, tuple) else value)
