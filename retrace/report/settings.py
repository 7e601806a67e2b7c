"""What was run on what: data, settings in force, size of the model, times."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from retrace.core.files import read_json
from retrace.core.paths import card_path
from retrace.core.records import RunRecord
from retrace.core.settings import DATA_KEYS, Params, build
from retrace.report.blocks import NOTHING, REPORTS, Section, Table
from retrace.results.grid import Grid

Facts = Mapping[str, Any]  # what a checkpoint's card says
Started = tuple[Facts, Mapping[str, int]]  # what training started from, and the parameters by module


class ReportParams(Params):
    """What stages/report.py reads: all of params.yaml, which it prints, and the settings of the data source."""

    params: dict[str, Any] = Field(alias="params.yaml:")
    source: dict[str, Any] = Field(alias="data/params.yaml:${data}")

    @property
    def data(self) -> str:
        """The data source."""
        return self.params["data"]


def data_section(card: Mapping[str, Any], params: Mapping[str, Any]) -> Section:
    """Counts of every split, and findings such as texts that two splits share.

    `card` is the source's, which may have only some of its parts; those of further tasks are beside their data.
    """
    cards = {task: card_path(task) for task in build(Grid, params, "finetune").all_tasks}
    further = {task: read_json(path) for task, path in cards.items() if path.is_file()}
    findings = [
        *card["findings"],
        *(f"{task}: {finding}" for task, of in further.items() for finding in of["findings"]),
    ]
    parts = {name: of for name, of in card.items() if name not in ("findings", "origin")}
    parts |= {task: of["parts"] for task, of in further.items()}
    return Section("Data", [*(f"Note: {finding}." for finding in findings), counts_table(parts)])


def counts_table(data: Mapping[str, Mapping[str, Any]]) -> Table:
    """Counts of every split, by the name of the data."""
    rows = []
    for name, parts in data.items():
        for part, counts in parts.items():
            if isinstance(counts, Mapping):
                found = {what.replace("_", " "): count for what, count in counts.items() if what != "classes"}
                found |= counts.get("classes", {})
                rows += [(name, part, what, f"{count:,}") for what, count in found.items()]
    return Table(("data", "split", "what", "count"), rows)


def settings_section(params: Mapping[str, Any]) -> Section:
    """Every setting that this run depends on, by its key; of methods and further data those that are listed."""
    grid, methods = params["finetune"], params["methods"]
    listed = dict.fromkeys([*grid["methods"], *grid["squad_methods"]])
    shown = {
        key: value for key, value in params.items() if key not in DATA_KEYS or key in (params["data"], "checkpoints")
    }
    shown["methods"] = {method: methods[method] for method in listed if method in methods}
    return Section("Settings", [settings_table(shown)])


def settings_table(*values: Mapping[str, Any]) -> Table:
    """Settings by dotted key."""
    return Table(("setting", "value"), [(key, _shown(value)) for each in values for key, value in _flat(each)])


def models_section(models: Mapping[str, Started], runs: Mapping[str, RunRecord]) -> Section:
    """What training of each model started from, parameters by module, and how long each training run took on what."""
    blocks: list[str | Table] = []
    for name, (facts, counts) in models.items():
        total = sum(counts.values())
        rows = [(module, f"{count:,}", f"{100 * count / total:.1f}") for module, count in counts.items()]
        blocks.append(f"{name}: {_started(facts)}" if name else _started(facts))
        blocks.append(Table(("module", "parameters", "% of all"), [*rows, ("total", f"{total:,}", "100.0")]))
    records = {run: record.model_dump(exclude={"updates"}) for run, record in runs.items()}
    names = [name for name in RunRecord.model_fields if any(of.get(name) is not None for of in records.values())]
    speeds = [(run, *(_shown(of[name]) for name in names)) for run, of in records.items()]
    blocks.append("Times and memory are of this machine and no part of the metrics.")
    blocks.append(Table(("run", *(name.replace("_", " ") for name in names)), speeds))
    return Section("Model and runs" if len(models) == 1 else "Models and runs", blocks)


def read_runs(params: Mapping[str, Any]) -> dict[str, RunRecord]:
    """Time and memory of pretraining and of each cell of the grid, by name."""
    paths = {path.relative_to(REPORTS / "runs").with_suffix(""): path for path in (REPORTS / "runs").rglob("*.json")}
    listed = build(Grid, params, "finetune").cells  # DVC leaves those of other methods lying
    names = sorted(name for name in paths if len(name.parts) == 1 or name.as_posix() in listed)
    names.sort(key=lambda name: len(name.parts))
    return {" ".join(name.parts): RunRecord.read(paths[name]) for name in names}


def _started(facts: Facts) -> str:
    """What training started from, and under which licence."""
    if facts["from"] is None:
        return "Training started from random weights."
    licence = facts.get("license_name") or facts.get("license")
    what = "random weights of the sizes" if facts.get("random") else "the weights"
    return f"Training started from {what} of {facts['from']}" + (f" (licence: {licence})." if licence else ".")


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        flat += _flat(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return flat


def _shown(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
