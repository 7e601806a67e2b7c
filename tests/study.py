"""A study in a folder of its own, its reports written by hand: one task, one method from two seeds, nothing trained."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

from retrace.core.files import write_json, write_text
from retrace.core.records import Origin, RunRecord
from retrace.datasets.examples import Example, TaskData, write_task
from retrace.evaluation.records import Details
from retrace.study.published import ComparedCell, Verdict

EVIL = "<script>good</script>"
PARAMS: dict[str, Any] = {
    "precision": "auto", "data": "hub",
    "hub": {"classification": {"mood": {"repository": "org/mood"}}},
    "checkpoints": {"tiny": {"family": "bert", "checkpoint": "org/tiny"}},
    "finetune": {"tasks": ["mood"], "methods": ["full"], "squad_methods": [], "seeds": [1, 2]},
    "methods": {"full": {"checkpoint": "tiny"}, "lora": {"checkpoint": "tiny"}},
    "mood": {"lr": 0.001},
}  # fmt: skip
PUBLISHED: dict[str, Any] = {
    "title": EVIL, "source": "A report",
    "tables": [
        {"name": "accuracy", "title": "Accuracy (%)", "section": "Results", "scale": "percent", "best": "column",
         "columns": {"Mood": "mood"},
         "rows": {
             "Full": {"figures": "score.{column}.full.accuracy", "published": ["77.41 ± 2.81"]},
             "LoRA": {"figures": "score.{column}.lora.accuracy", "published": [None]},
         }},
        {"name": "scores", "title": "Scores", "scale": {"figure": "fraction"}, "columns": ["figure"],
         "rows": {
             "accuracy": {"figures": ["score.mood.full.accuracy"], "published": ["0.5092"]},
             "precision": {"figures": ["score.mood.full.precision"], "published": ["0.5092"]},
             "recall": {"figures": ["score.mood.full.recall"], "published": ["1.0"]},
         }},
        {"name": "cost", "title": "Cost", "columns": ["time", "parameters", "memory"],
         "scale": {"time": "seconds", "parameters": "count", "memory": "mebibytes"},
         "rows": {"it": {
             "figures": ["run.mood.full.1.seconds", "parameters.bert-base.none.full.total", "memory.adapter.constant"],
             "published": ["60", "109,482,240", "1.3e4"],
         }}},
    ],
    "doubts": [{"about": "scores/accuracy", "says": EVIL, "finding": "It is the majority's.",
                "figures": {"majority": "baseline.mood.majority.accuracy"}}],
    "choices": ["Batch: 16."],
    "first_samples": 1,
}  # fmt: skip
SEEDS = {
    "1": {"accuracy": 0.75, "precision": 0.6, "recall": 0.8, "validation_loss": 0.6},
    "2": {"accuracy": 0.75, "precision": 0.7, "recall": 0.9, "validation_loss": 0.6},
}
MEAN = {name: (SEEDS["1"][name] + SEEDS["2"][name]) / 2 for name in SEEDS["1"]}

RUN = RunRecord(
    updates=686, seconds=46.3, tokens_per_second=900, waiting_percent=1.0, teraflops_per_second=0.1,
    utilisation_percent=None, peak_memory_mib=673, gpu_memory_mib=None, parameters=8, trained_parameters=8,
    processes=1, device="cpu", precision="fp32", tokens=9000,
    origin=Origin(commit="c" * 40, clean=True, date="2026-11-23", machine="two cores", versions={"python": "3.11"}),
)  # fmt: skip


def details_of(
    scales: dict[str, str], methods: dict[str, dict[str, Any]], baseline: dict[str, float], ends: dict[str, float]
) -> Details:
    """What scores.json says of SST-2.

    A method has `seeds` and `before`, figures by seed, `mean`, and may have `std` and `intervals`; the baseline is the
    majority, `ends` the interval of its accuracy.
    """
    found: dict[str, Any] = {}
    for name, of in methods.items():
        before = of.get("before", {})
        seeds = {seed: {"epoch": 1, "figures": values, "intervals": {}, "before": before.get(seed, {})}
                 for seed, values in of["seeds"].items()}  # fmt: skip
        found[name] = method_of(of["mean"], seeds, of.get("intervals", {}), of.get("std", {}))
    majority = {"figures": baseline, "intervals": {"accuracy": ends}}
    return Details.from_json({"sst2": _task_of(scales, found, majority)})


def _task_of(scales: dict[str, str], methods: dict[str, Any], majority: dict[str, Any], *headlines: str) -> Any:
    legend = {name: {"scale": scale, "better": "higher", "name": name} for name, scale in scales.items()}
    legend["validation_loss"] = {"scale": "loss", "better": "lower", "name": "validation loss"}
    baselines = {"majority": majority}
    return {
        "headlines": [*headlines], "legend": legend, "comparisons": [], "baselines": baselines, "methods": methods,
    }  # fmt: skip


def method_of(
    figures: dict[str, float], seeds: dict[str, Any], intervals: dict[str, Any], std: dict[str, float], **more: Any
) -> dict[str, Any]:
    """What scores.json says of a method that answers questions, or of a method whose breakdown `more` replaces."""
    more = more or {"answered": 1, "answerable": 1, "questions": 1, "threshold_curve": {}}
    found = {"figures": figures, "std": std, "intervals": intervals, "seeds": seeds}
    return {**found, "intervals_of": "both", "groups": {}, **more}


def cell_of(
    verdict: str, scale: str, printed: str | None = None, shown: str | None = None, **values: Any
) -> ComparedCell:
    """A cell of a compared table."""
    values = {"published": None, "reproduced": None, **values}
    return ComparedCell(verdict=Verdict(verdict), scale=scale, printed=printed, shown=shown, **values)


def write_study(folder: Path) -> None:
    """Write all that the study's stage reads."""
    write_json(folder / "params.yaml", PARAMS)  # json is YAML too
    write_json(folder / "published.yaml", PUBLISHED)
    _write_data(folder / "data")
    for seed in (1, 2):
        _write_predictions(folder / f"predictions/mood/full/{seed}")
        write_json(folder / f"reports/runs/mood/full/{seed}.json", RUN.to_json() | {"seconds": 12.5 * seed})
    _write_scores(folder / "reports")


def _write_data(data: Path) -> None:
    task = data / "classification/mood"
    write_task(task, TaskData(("bad", "good"), {"dev": [Example(EVIL, None, 1), Example("bad ale", None, 0)]}))
    parts = {"dev": {"examples": 2, "classes": {"bad": 1, "good": 1}}}
    write_json(task / "card.json", {"parts": parts, "shared": {}, "dropped": {}, "findings": []})
    write_json(data / "checkpoints/tiny/source.json", {"from": "org/tiny@0123", "license": "mit"})
    save_file({"bert.embeddings.weight": np.zeros((4, 2), np.float32)}, data / "checkpoints/tiny/model.safetensors")


def _write_predictions(folder: Path) -> None:
    folder.mkdir(parents=True)
    rows = [{"epoch": epoch, "id": i, "label": 1 - i, "logit_0": float(i), "logit_1": 0.5}
            for epoch in (0, 1) for i in (0, 1)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), folder / "predictions.parquet")
    losses = [{"epoch": epoch, "training_loss": (epoch and 0.5) or None, "validation_loss": 0.7 - 0.1 * epoch,
               "kept": epoch == 1} for epoch in (0, 1)]  # fmt: skip
    write_json(folder / "losses.json", losses)
    write_json(folder / "updates.json", [[20, 0.6], [40, 0.5]])


def _write_scores(reports: Path) -> None:
    ends = {"low": 0.69, "high": 0.81, "low_examples": 0.7, "high_examples": 0.8}
    seeds = {seed: {"epoch": 1, "figures": of, "intervals": {"accuracy": ends}, "before": {"accuracy": 0.25},
                    "flags": {"not_above_majority": "accuracy 0.75, majority 0.5"}}
             for seed, of in SEEDS.items()}  # fmt: skip
    classes = {name: {"precision": 0.5, "recall": 0.25, "f1": 0.75, "examples": 1} for name in ("bad", "good")}
    std = {name: SEEDS["2"][name] - MEAN[name] for name in MEAN}
    more = {"confusion": [[1, 0], [0, 1]], "classes": classes, "reliability": {}}
    groups = {"length": {"1–4 words": {"examples": 2, "figures": {"accuracy": 0.5}, "intervals": {}}}}
    method = method_of(MEAN, seeds, {"accuracy": ends}, std, **more, groups=groups)
    majority = {"figures": {"accuracy": 0.5}, "intervals": {"accuracy": {"low": 0.4, "high": 0.6}}}
    task = _task_of(dict.fromkeys(MEAN, "fraction"), {"full": method}, majority, "accuracy")
    write_json(reports / "scores.json", {"mood": task})
    curve = [f"full,{seed},{epoch},{'' if epoch == 0 else 0.5},0.7,0.75" for seed in (1, 2) for epoch in (0, 1)]
    header = "method,seed,epoch,training_loss,validation_loss,accuracy"
    write_text(reports / "curves/tasks/mood.csv", "\n".join([header, *curve, ""]))
