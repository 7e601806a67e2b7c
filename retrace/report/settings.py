"""What was run: the settings in force and the size of the model."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from retrace.core.records import RunRecord
from retrace.core.settings import DATA_KEYS, Params
from retrace.report.blocks import NOTHING, Section, Table

SAMPLES = 6  # predictions shown of each task


class ReportParams(Params):
    """What stages/report.py reads: all of params.yaml, which it prints, and the settings of the data source."""

    params: dict[str, Any] = Field(alias="params.yaml:")
    source: dict[str, Any] = Field(alias="data/params.yaml:${data}")

    @property
    def data(self) -> str:
        """The data source."""
        return self.params["data"]


def sample_places(total: int, first: int | None = None) -> list[int]:
    """Which of `total` examples are shown: the first ones, or where that is None SAMPLES of them, evenly spread."""
    if first is not None:
        return list(range(min(first, total)))
    count = min(SAMPLES, total)
    return [i * total // count for i in range(count)]


MEASURES = (
    "seconds", "tokens_per_second", "waiting_percent", "teraflops_per_second", "utilisation_percent",
    "peak_memory_mib", "gpu_memory_mib", "parameters", "trained_parameters", "processes", "device", "precision",
)  # fmt: skip


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


def model_section(facts: Mapping[str, Any], counts: Mapping[str, int], runs: Mapping[str, RunRecord]) -> Section:
    """What training started from, parameters by module, and how long each training run took on what."""
    return Section("Model and runs", [_started(facts), sizes_table(counts), *runs_blocks(runs)])


def models_section(
    models: Mapping[str, tuple[Mapping[str, Any], Mapping[str, int]]], runs: Mapping[str, RunRecord]
) -> Section:
    """The same of several models that training started from, facts and parameters by name."""
    blocks: list[str | Table] = []
    for name, (facts, counts) in models.items():
        blocks += [f"{name}: {_started(facts)}", sizes_table(counts)]
    return Section("Models and runs", [*blocks, *runs_blocks(runs)])


def sizes_table(counts: Mapping[str, int]) -> Table:
    """Parameters by module."""
    total = sum(counts.values())
    rows = [(module, f"{count:,}", f"{100 * count / total:.1f}") for module, count in counts.items()]
    return Table(("module", "parameters", "% of all"), [*rows, ("total", f"{total:,}", "100.0")])


def runs_blocks(runs: Mapping[str, RunRecord]) -> list[str | Table]:
    """How long each run took on what."""
    names = [name for name in MEASURES if any(getattr(record, name) is not None for record in runs.values())]
    speeds = Table(
        ("run", *(name.replace("_", " ") for name in names)),
        [(run, *(_shown(getattr(record, name)) for name in names)) for run, record in runs.items()],
    )
    return ["Times and memory are of this machine and no part of the metrics.", speeds]


def _started(facts: Mapping[str, Any]) -> str:
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
