"""The card of a published model: what it was trained on, how, how well it does, its limits, and how to load it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from huggingface_hub import EvalResult, EvalResultEntry, ModelCard, ModelCardData, eval_result_entries_to_yaml

from retrace.core.records import Record
from retrace.evaluation.records import BaselineDetails, SeedDetails
from retrace.hub.pins import Pin
from retrace.perplexity.measures import PerplexityReport
from retrace.report.blocks import Code, Table
from retrace.report.names import baseline_name
from retrace.report.page import fill_markdown
from retrace.report.pretraining import INTERVALS, perplexity_table
from retrace.report.summary import Sentence
from retrace.report.tasks import score_rows
from retrace.statistics.scales import Legend

FOLDER = Path(__file__).parent
# Title, licence (null where the authors give none) and citation of data sets, by repository of the hub and config.
WORKS: dict[str, dict[str, str | None]] = json.loads((FOLDER / "works.json").read_text(encoding="utf-8"))
PIPELINES = {
    "classifier": "text-classification", "spans": "question-answering", "masked": "fill-mask",
    "causal": "text-generation",
}  # fmt: skip
NOT_ON_HUB = "not-on-the-hub"  # where the metadata must name a data set of the hub and there is none


@dataclass(frozen=True)
class Origin:
    """Where a part of the data is from; what is not known is None."""

    name: str  # of the part: text, sst2, squad or a further task
    title: str
    pin: Pin | None = None  # of a data set of the hub
    config: str | None = None
    split: str = "validation"  # that the figures are of
    licence: str | None = None
    citation: str | None = None


def hub_origin(name: str, pin: Pin, config: str, split: str, licence: str | None) -> Origin:
    """A data set of the hub, with the licence that its card gives where it is none of WORKS."""
    work = WORKS.get(f"{pin.repository} {config}") or WORKS.get(pin.repository) or {}
    title, licence = work.get("title") or pin.repository, work.get("licence") or licence
    return Origin(name, title, pin, config, split, licence, work.get("citation"))


class Scores(Record):
    """The figures of one trial, and those of baselines."""

    SPREAD: ClassVar[str] = "trial"
    trial: SeedDetails
    baselines: dict[str, BaselineDetails]
    legend: Legend
    headlines: list[str]
    split: Literal["validation", "test"]  # that they are of; the test data chose no epoch


@dataclass(frozen=True)
class RunResults:
    """What the report says of the run that a model is of."""

    verdict: Sequence[Sentence]
    note: str  # from how many seeds, and how the table is read
    table: Table | None  # of methods and tasks; None without scores


@dataclass(frozen=True)
class ModelFacts:
    """All that a card says."""

    repository: str
    summary: str  # one sentence: what the model is
    use: str  # a key of PIPELINES
    library: str
    lines: Sequence[str]  # of Python, that load it
    base: str | None  # ORG/NAME of what it goes onto or was trained from
    started: str | None  # the weights that training started from, and their licence; random ones where None
    tags: Sequence[str]
    origins: Sequence[Origin]  # of the data; that of the task is the last
    counts: Table  # of the data
    training: Table
    scores: Scores | None  # of a tuned model
    perplexity: PerplexityReport | None  # of a language model
    flags: Sequence[str]  # one line each
    limits: Sequence[str]
    results: RunResults


def model_card(facts: ModelFacts) -> ModelCard:
    """The card as Markdown under the metadata that the hub reads."""
    task, pin = facts.origins[-1], facts.origins[-1].pin
    repositories = [origin.pin.repository for origin in facts.origins if origin.pin]
    data = ModelCardData(
        library_name=facts.library, pipeline_tag=PIPELINES[facts.use], tags=list(facts.tags),
        datasets=list(dict.fromkeys(repositories)) or None, base_model=facts.base,
        model_name=facts.repository.rpartition("/")[2],
        eval_results=[
            EvalResult(
                task_type=PIPELINES[facts.use], dataset_type=pin.repository if pin else NOT_ON_HUB,
                dataset_name=task.title, dataset_config=task.config, dataset_revision=pin and pin.commit,
                dataset_split=task.split, metric_type=name, metric_value=value, metric_name=name.replace("_", " "),
            )
            for name, value in headline_figures(facts).items()
        ],
    )  # fmt: skip
    body = fill_markdown(
        "card.md.j2", FOLDER, facts=facts, code=Code("\n".join(facts.lines)), intervals=INTERVALS,
        scores=facts.scores and _score_table(facts.scores),
        perplexity=facts.perplexity and perplexity_table(facts.perplexity),
    )  # fmt: skip
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{body.strip()}\n")


def eval_results(facts: ModelFacts) -> list[dict[str, Any]]:
    """The first headline figure as `.eval_results/*.yaml` has it; none where the data is not on the hub."""
    task, figures = facts.origins[-1], headline_figures(facts)
    if task.pin is None or task.config is None or not figures:
        return []
    name, value = next(iter(figures.items()))
    notes = f"{name.replace('_', ' ')}, {task.split} split"
    if facts.scores:
        notes += ", 95% interval {low:.6g} to {high:.6g}".format(**facts.scores.trial.intervals[name])
    entry = EvalResultEntry(task.pin.repository, task.config, value, dataset_revision=task.pin.commit, notes=notes)
    return eval_result_entries_to_yaml([entry])


def headline_figures(facts: ModelFacts) -> dict[str, float]:
    """The figures that the model is judged by."""
    if facts.scores:
        return {name: facts.scores.trial.figures[name] for name in facts.scores.headlines}
    assert facts.perplexity is not None, "a model without scores is a language model"
    found = {
        name: of.perplexity_per_token
        for name, of in facts.perplexity.splits["valid"].measures.items()
        if name != "unigram"
    }
    return {f"{name}_perplexity": value for name, value in found.items() if value is not None}


def _score_table(scores: Scores) -> Table:
    trial = scores.trial
    columns = [(trial.figures, trial.intervals, {}), (trial.before, {}, {})]
    columns += [(of.figures, of.intervals, {}) for of in scores.baselines.values()]
    header = ("score", "unit", "this model", "before tuning", *map(baseline_name, scores.baselines))
    return Table(header, score_rows(trial.figures, scores.legend, columns))
