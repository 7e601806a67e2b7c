"""What the stages of a study wrote: figures to look up, and the sections of its page that show the run."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from retrace.core.errors import InputError
from retrace.core.files import read_json
from retrace.core.paths import CHECKPOINT, checkpoint_facts, named_checkpoint, on_test, source_folder
from retrace.core.settings import build
from retrace.core.weights import parameters_by_module
from retrace.evaluation.records import DETAILS, METRICS, Details, Metrics
from retrace.finetuning.method import PRETRAINED
from retrace.finetuning.settings import method_settings
from retrace.perplexity.measures import PERPLEXITY, PerplexityReport
from retrace.report.blocks import REPORTS, Section
from retrace.report.perplexity import perplexity_section
from retrace.report.samples import PREDICTIONS, samples_section
from retrace.report.scores import read_curve, score_sections, title_of
from retrace.report.settings import data_section, models_section, read_runs, settings_section
from retrace.results.grid import Grid
from retrace.results.predictions import read_updates
from retrace.statistics.scales import SCALES
from retrace.study.addresses import Reports
from retrace.study.page import CURVES, Drawing, curves_section
from retrace.study.published import BETWEEN, PUBLISHED, Form, PublishedStudy
from retrace.study.verdicts import evidence

NO_CARD: Mapping[str, Any] = {"findings": []}  # of a study whose tasks bring their own data
NO_CURVE = pd.DataFrame({"method": []})


def pretrains(params: Mapping[str, Any]) -> bool:
    """Whether the study pretrains a model: some method starts from no checkpoint."""
    listed = build(Grid, params, "finetune").every_method
    return any(method_settings(params, label)[1].checkpoint is None for label in listed)


def read_reports(params: Mapping[str, Any]) -> Reports:
    """What the stages wrote of what params.yaml lists."""
    grid, has_language_model = build(Grid, params, "finetune"), pretrains(params)
    tasks = [*params.get("classification", {}), *params.get("hub", {}).get("classification", {}),
             *params.get("question_answering", {}), "sst2", "squad"]  # fmt: skip
    scores = read_json(REPORTS / "scores.json")
    tasks += [on_test(task) for task in tasks if task not in scores]  # of one that was run it is known
    return Reports(
        metrics=read_json(REPORTS / "metrics.json") | {task: details["metrics"] for task, details in scores.items()},
        scores=scores,
        curves={task: read_curve(f"tasks/{task}") for task in grid.all_tasks},
        pretraining=read_curve("pretrain") if has_language_model else None,
        perplexity=read_json(REPORTS / "perplexity.json") if has_language_model else None,
        runs=read_runs(params),
        named={*tasks, *grid.all_tasks, *grid.every_method, *params.get("methods", {}), "pretrain"},
        params=params,
    )


def evidence_texts(study: PublishedStudy, reports: Reports) -> list[dict[str, str]]:
    """The figures shown beside each doubt; no text of what was not run."""
    return [
        {
            what: BETWEEN.join(Form(SCALES[end.scale].digits).text(end.value, interval=end.interval) for end in ends)
            for what, ends in evidence(doubt, place, reports).items()
        }
        for place, doubt in enumerate(study.doubts)
    ]


def run_sections(study: PublishedStudy, params: Mapping[str, Any], reports: Reports) -> Iterator[Section]:
    """Curves, scores, samples, data, models and settings of the run."""
    source = source_folder(build(str, params, "data"))
    yield curves_section(list(_drawings(study, reports)), reports.pretraining)
    yield from score_sections(Details.read(DETAILS), Metrics.read(METRICS).flags)
    if reports.pretraining is not None:
        yield perplexity_section(PerplexityReport.read(PERPLEXITY), reports.pretraining)
    yield samples_section(params, source, study.first_samples)
    card = source / "card.json"
    yield data_section(read_json(card) if card.is_file() else NO_CARD, params)
    yield _models(params, reports)
    yield settings_section(params)


def study_inputs(params: Mapping[str, Any]) -> list[Path]:
    """The folders that the page is made from, beside reports and predictions."""
    named = [named_checkpoint(name) for name in params.get("checkpoints", {})]
    own = [CHECKPOINT, PRETRAINED] if pretrains(params) else []
    return [source_folder(build(str, params, "data")), *own, *named]


def _drawings(study: PublishedStudy, reports: Reports) -> Iterator[Drawing]:
    """The learning curves that the report shows, of what was run; those of each classification task where none."""
    for place, shown in enumerate(study.curves):
        for name in (shown.task, *shown.methods):
            if name not in reports.named:
                raise InputError(f"{PUBLISHED}: curves[{place}]: params.yaml has neither task nor method {name!r}")
        curve = reports.curves.get(shown.task, NO_CURVE)
        curve = curve.loc[curve["method"].isin(shown.methods)]
        if not curve.empty:
            absent = [name for name in shown.figures if name not in curve]
            if absent:
                raise InputError(f"{PUBLISHED}: curves[{place}]: no {absent[0]!r}; there is: {', '.join(curve)}")
            yield Drawing(f"curve-{place + 1}", shown.title, curve, shown.figures, _updates(shown.task, curve))
    if not study.curves:
        for task, curve in reports.curves.items():
            if build(Grid, reports.params, "finetune").kind_of(task) == "classification":
                figures = [name for name in CURVES if name in curve]
                yield Drawing(f"curve-{task}", title_of(task), curve, figures, _updates(task, curve))


def _updates(task: str, curve: pd.DataFrame) -> dict[tuple[str, str], list[tuple[int, float]]]:
    cells = dict.fromkeys(zip(curve["method"], curve["seed"], strict=True))
    return {(method, seed): read_updates(PREDICTIONS / task / method / seed) for method, seed in cells}


def _models(params: Mapping[str, Any], reports: Reports) -> Section:
    named = {name: named_checkpoint(name) for name in params.get("checkpoints", {})}
    models = {name: (checkpoint_facts(folder), parameters_by_module(folder)) for name, folder in named.items()}
    if pretrains(params):
        name = PRETRAINED.name if named else ""
        models = {name: (checkpoint_facts(), parameters_by_module(PRETRAINED)), **models}
    return models_section(models, reports.runs)
