"""The folds about the run: data, settings, model size, times and provenance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from retrace.core.files import read_json
from retrace.core.paths import CARD, TEXT
from retrace.core.records import STAGES, Origin, RunRecord, StageRecord
from retrace.core.settings import DATA_KEYS, Params
from retrace.report import svg
from retrace.report.blocks import NOTHING, Fold, Panel, Panels, Table
from retrace.report.names import duration, each_once, method_name, title_of
from retrace.report.svg import Axes
from retrace.results.grid import RUNS, Grid

HEADINGS = {
    "updates": "updates", "seconds": "time, s", "evaluation_seconds": "evaluation, s",
    "tokens": "tokens", "tokens_per_second": "tokens per s",
    "waiting_percent": "waiting for data, %", "teraflops_per_second": "TFLOP per s",
    "utilisation_percent": "MFU, %", "peak_memory_mib": "peak memory, MiB", "gpu_memory_mib": "GPU memory, MiB",
    "parameters": "parameters",
    "trained_parameters": "trained", "processes": "processes", "device": "device", "precision": "precision",
}  # fmt: skip
ROW = 26  # px
LONGEST = 18  # characters of a name beside a bar
BEFORE = ("source", "model", "tokenize")  # stages before pretraining


class ReportParams(Params):
    """What stages/report.py reads and prints: params.yaml, the data source, further tasks and checkpoints."""

    params: dict[str, Any] = Field(alias="params.yaml:")
    source: dict[str, Any] = Field(alias="data/params.yaml:${data}")
    classification: dict[str, Any] = Field(alias="data/params.yaml:classification")
    question_answering: dict[str, Any] = Field(alias="data/params.yaml:question_answering")
    hub_classification: dict[str, Any] = Field(alias="data/params.yaml:hub.classification")
    checkpoints: dict[str, Any] = Field(alias="data/params.yaml:checkpoints")

    @property
    def all(self) -> dict[str, Any]:
        """These settings by key."""
        data = {
            "classification": self.classification, "question_answering": self.question_answering,
            "hub": {"classification": self.hub_classification}, "checkpoints": self.checkpoints,
        }  # fmt: skip
        return self.params | data | {self.params["data"]: self.source}


def data_fold(params: Mapping[str, Any], text: bool = True) -> Fold:
    """Counts of every split, and findings such as texts that two splits share; `text`: of the running text too."""
    grid = Grid.read(params)
    folders = ({TEXT.name: TEXT} if text else {}) | {task: grid.data_of(task) for task in grid.all_tasks}
    cards = {name: read_json(folder / CARD) for name, folder in folders.items()}
    findings = [f"{name}: {finding}" for name, card in cards.items() for finding in card["findings"]]
    gist = f"{cards[TEXT.name]['parts']['train']['words']:,} words of running text to train on; " if text else ""
    gist += f"{len(findings) or 'no'} finding{'s' if len(findings) != 1 else ''}"
    return Fold("Data", gist, [*(f"Note: {finding}." for finding in findings), counts_table(cards)])


def counts_table(cards: Mapping[str, Mapping[str, Any]]) -> Table:
    """Counts of every split, by the name of the data."""
    rows = []
    for name, card in cards.items():
        for part, counts in card["parts"].items():
            found = [(what.replace("_", " "), count) for what, count in counts.items() if what != "classes"]
            found += counts.get("classes", {}).items()
            rows += [(name, part, what, f"{count:,}") for what, count in found]
    return Table(("data", "split", "what", "count"), rows, label="Data")


def settings_fold(params: Mapping[str, Any]) -> Fold:
    """Every setting that this run depends on, by its key; only the methods and further tasks that are listed."""
    grid, methods, hub = Grid.read(params), params["methods"], params.get("hub", {})
    data = (params["data"], "checkpoints")
    used = {key: value for key, value in params.items() if key not in DATA_KEYS or key in data}
    used["methods"] = {method: methods[method] for method in grid.every_method if method in methods}
    used |= {kind: _listed(params.get(kind, {}), grid.all_tasks) for kind in ("classification", "question_answering")}
    used["hub"] = used.get("hub", {}) | {"classification": _listed(hub.get("classification", {}), grid.all_tasks)}
    table = settings_table(used)
    return Fold("Settings", f"{len(table.rows)} settings", [table])


def _listed(defined: Mapping[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
    return {name: settings for name, settings in defined.items() if name in tasks}


def settings_table(*values: Mapping[str, Any]) -> Table:
    """Settings by dotted key."""
    rows = [(key, _shown(value)) for each in values for key, value in flat(each).items()]
    return Table(("setting", "value"), rows, label="Settings")


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings by dotted key; an empty section has none."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return found


def models_folds(
    models: Mapping[str, tuple[Mapping[str, Any], Mapping[str, int]]], runs: Mapping[str, RunRecord]
) -> list[Fold]:
    """A fold for each model, and one for time and memory of the training runs.

    A model has the facts of the checkpoint that training started from, and its parameters by module.
    """
    folds = []
    for name, (facts, counts) in models.items():
        total = sum(counts.values())
        rows = [
            (module, f"{count:,}", f"{100 * count / total:.1f}")
            for module, count in (*counts.items(), ("total", total))
        ]
        table = Table(("module", "parameters", "% of all"), rows, label=f"Parameters {name}")
        folds.append(Fold(f"Model {name}".strip(), f"{total:,} parameters", [_started(facts), table]))
    names = [name for name in HEADINGS if any(getattr(record, name) is not None for record in runs.values())]
    rows = [(run, *(_shown(getattr(record, name)) for name in names)) for run, record in runs.items()]
    table = Table(("run", *(HEADINGS[name] for name in names)), rows, label="Runs")
    most = max((record.peak_memory_mib for record in runs.values()), default=0)
    note = (
        "Times and memory depend on the machine and are not part of the metrics. Memory is the peak of the process, "
        "including evaluation."
    )
    return [*folds, Fold("Runs and memory", f"{len(runs)} runs, at most {most:,} MiB", [note, table])]


def time_fold(runs: Mapping[str, RunRecord], stages: Mapping[str, StageRecord], params: Mapping[str, Any]) -> Fold:
    """Seconds of every stage; for training those of the updates, summed over seeds."""
    methods = Grid.read(params).every_method
    bars = {(name, "bar"): stages[name].seconds for name in BEFORE if name in stages}  # by name and class
    for run, record in runs.items():
        task, *method = run.split()
        bar = ("pretraining", "bar")
        if method:
            colour = svg.colour(methods.index(method[0]))
            bar = (f"{title_of(task)}, {method_name(method[0])}", f"bar {colour}")
        bars[bar] = bars.get(bar, 0.0) + record.seconds
    bars |= {(name, "bar"): record.seconds for name, record in stages.items()}  # listed stages keep their place
    axes, drawn = Axes((0, max(bars.values()) or 1.0)), []
    for i, ((name, colour), value) in enumerate(bars.items()):
        box, text = {"y": i * ROW + 5, "height": 12}, {"y": i * ROW + 15, "text_anchor": "end"}
        drawn += [svg.tag("text", svg.shortened(name, LONGEST), x=-8, **text),
                  svg.tag("rect", x=0, width="100%", **box, class_="track"),
                  svg.tag("rect", x=0, width=axes.across(value), **box, class_=colour),
                  svg.tag("text", f"{value:,.0f} s", x="100%", dx=50, **text)]  # fmt: skip
    label = "Seconds: " + ", ".join(f"{name} {value:.0f}" for (name, _), value in bars.items())
    note = (
        "Seconds by stage; training counts only the updates, summed over seeds. The report’s own time is not included."
    )
    panels = Panels("time", "", note, [Panel("", drawn, label, ROW * len(bars))], "rank")
    return Fold("Time", duration(sum(bars.values())), [panels])


def origin_fold(origins: Mapping[str, Origin], digests: Mapping[str, str]) -> Fold:
    """Where results came from: commit, machine and versions of each stage, and SHA-256 of models and scores."""
    names = list(dict.fromkeys(name for origin in origins.values() for name in origin.versions))
    rows = [
        (run, commit_text(origin), origin.date, origin.machine, *(origin.versions.get(name, NOTHING) for name in names))
        for run, origin in origins.items()
    ]
    table = Table(("result", "commit", "date", "machine", *names), rows, label="Origin")
    hashes = Table(("file", "SHA-256"), list(digests.items()), label="Hashes")
    note = (
        "The commits are those of the code. dvc.lock, which pins every file of this run, changes during the run and is "
        "committed after it: to restore the files, check out that later commit and run dvc checkout."
    )
    return Fold("Provenance", f"commit {each_once(map(commit_text, origins.values()))}", [note, table, hashes])


def commit_text(origin: Origin) -> str:
    """The commit, and whether code or settings had uncommitted changes."""
    return NOTHING if origin.commit is None else origin.commit[:12] + ("" if origin.clean else " (with changes)")


def read_runs(params: Mapping[str, Any]) -> dict[str, RunRecord]:
    """Time and memory of pretraining and of each cell of the grid, by name."""
    # Not all files in the folder, as DVC leaves those of other methods there.
    listed = sorted(cell.path for cell in Grid.read(params).cells)
    paths = {name: RUNS / f"{name}.json" for name in (Path("pretrain"), *listed)}
    return {" ".join(name.parts): RunRecord.read(path) for name, path in paths.items() if path.is_file()}


def read_stages(folder: Path = STAGES) -> dict[str, StageRecord]:
    """Time and origin of the stages that train nothing, by name."""
    return {path.stem: StageRecord.read(path) for path in sorted(folder.glob("*.json"), reverse=True)}


def _started(facts: Mapping[str, Any]) -> str:
    """What training started from, and its licence."""
    if facts["from"] is None:
        return "Training started from random weights."
    licence = facts.get("license_name") or facts.get("license")
    what = "random weights of the sizes" if "random" in facts else "the weights"  # the seed, which may be 0
    return f"Training started from {what} of {facts['from']}" + (f" (licence: {_shown(licence)})." if licence else ".")


def _shown(value: Any) -> str:
    """A value as in YAML, with thousands separators."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
