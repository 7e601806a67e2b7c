"""Who made the data that models are trained on, and under which licence it is.

The card of a published model: what it was trained on, how, how well it does, its limits, and how to load it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from huggingface_hub import EvalResult, EvalResultEntry, ModelCard, ModelCardData, eval_result_entries_to_yaml

from retrace.report.blocks import Code, Section, Table
from retrace.report.perplexity import INTERVALS, perplexity_table
from retrace.report.render import as_markdown
from retrace.report.scores import with_interval


@dataclass(frozen=True)
class Origin:
    """Where a part of the data is from; what is not known is None."""

    name: str  # of the part: text, sst2, squad or a further task
    title: str
    dataset: str | None = None  # of the hub: ORG/NAME
    config: str | None = None
    commit: str | None = None
    split: str = "validation"  # that the figures are of
    licence: str | None = None
    citation: str | None = None


@dataclass(frozen=True)
class Work:
    """A published data set."""

    title: str
    licence: str | None  # None: its authors give none
    citation: str


# By repository and config of the hub; a config of None stands for all.
WORKS = {
    ("Salesforce/wikitext", None): Work(
        "WikiText",
        "CC BY-SA 3.0 and GFDL",
        "Stephen Merity, Caiming Xiong, James Bradbury and Richard Socher: Pointer Sentinel Mixture Models. 2016, "
        "arXiv:1609.07843",
    ),
    ("nyu-mll/glue", "sst2"): Work(
        "SST-2",
        None,
        "Richard Socher, Alex Perelygin, Jean Wu, Jason Chuang, Christopher D. Manning, Andrew Ng and Christopher "
        "Potts: Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank. EMNLP 2013",
    ),
    ("rajpurkar/squad", None): Work(
        "SQuAD 1.1",
        "CC BY-SA 4.0",
        "Pranav Rajpurkar, Jian Zhang, Konstantin Lopyrev and Percy Liang: SQuAD: 100,000+ Questions for Machine "
        "Comprehension of Text. EMNLP 2016, arXiv:1606.05250",
    ),
    ("rajpurkar/squad_v2", None): Work(
        "SQuAD 2.0",
        "CC BY-SA 4.0",
        "Pranav Rajpurkar, Robin Jia and Percy Liang: Know What You Don't Know: Unanswerable Questions for SQuAD. "
        "ACL 2018, arXiv:1806.03822",
    ),
}


def sample_origin(name: str) -> Origin:
    """A part of the embedded sample."""
    return Origin(name, "the embedded sample of Retrace, on an invented country", licence="Apache-2.0")


def files_origin(name: str) -> Origin:
    """A part that somebody had in files."""
    return Origin(name, "files of the publisher's own")


def hub_origin(name: str, dataset: str, commit: str, config: str, split: str, licence: str | None) -> Origin:
    """A data set of the hub, with the licence that its card gives where it is none of WORKS."""
    work = WORKS.get((dataset, config)) or WORKS.get((dataset, None))
    if work is None:
        return Origin(name, dataset, dataset, config, commit, split, licence)
    return Origin(name, work.title, dataset, config, commit, split, work.licence or licence, work.citation)


PIPELINES = {
    "classifier": "text-classification", "spans": "question-answering", "masked": "fill-mask",
    "causal": "text-generation",
}  # fmt: skip
SPLITS = {
    "validation": "On the validation data, at the epoch that was kept.",
    "test": "On the test data, which chose nothing: the epoch was chosen, if at all, on the validation data.",
}
NOT_ON_HUB = "not-on-the-hub"  # where the metadata must name a data set of the hub and there is none


@dataclass(frozen=True)
class Scores:
    """The figures of one trial; mappings of figures are by score, intervals have a low and a high end."""

    figures: Mapping[str, float]
    intervals: Mapping[str, Any]
    before: Mapping[str, float]  # those of the model before it was tuned
    baselines: Mapping[str, Mapping[str, float]]
    baseline_intervals: Mapping[str, Mapping[str, Any]]
    scales: Mapping[str, str]
    headlines: Sequence[str]
    split: Literal["validation", "test"] = "validation"  # that they are of; the test data chose no epoch


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
    perplexity: Mapping[str, Any] | None  # of a language model
    flags: Sequence[str]  # one line each
    limits: Sequence[str]


def model_card(facts: ModelFacts) -> ModelCard:
    """The card as Markdown under the metadata that the hub reads."""
    task = facts.origins[-1]
    data = ModelCardData(
        library_name=facts.library,
        pipeline_tag=PIPELINES[facts.use],
        tags=list(facts.tags),
        datasets=list(dict.fromkeys(origin.dataset for origin in facts.origins if origin.dataset)) or None,
        base_model=facts.base,
        model_name=facts.repository.rpartition("/")[2],
        eval_results=[
            EvalResult(
                task_type=PIPELINES[facts.use], dataset_type=task.dataset or NOT_ON_HUB, dataset_name=task.title,
                dataset_config=task.config, dataset_revision=task.commit, dataset_split=task.split,
                metric_type=name, metric_value=value, metric_name=name.replace("_", " "),
            )
            for name, value in headline_figures(facts).items()
        ],
    )  # fmt: skip
    body = as_markdown(facts.repository, _sections(facts), "")
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{body}")


def eval_results(facts: ModelFacts) -> list[dict[str, Any]]:
    """The first headline figure as `.eval_results/*.yaml` has it; none where the data is not on the hub."""
    task = facts.origins[-1]
    figures = headline_figures(facts)
    if task.dataset is None or task.config is None or not figures:
        return []
    name, value = next(iter(figures.items()))
    notes = f"{name.replace('_', ' ')}, {task.split} split"
    if facts.scores:
        notes += ", 95% interval {low:.6g} to {high:.6g}".format(**facts.scores.intervals[name])
    return eval_result_entries_to_yaml(
        [EvalResultEntry(task.dataset, task.config, value, dataset_revision=task.commit, notes=notes)]
    )


def headline_figures(facts: ModelFacts) -> dict[str, float]:
    """The figures that the model is judged by."""
    if facts.scores:
        return {name: facts.scores.figures[name] for name in facts.scores.headlines}
    part = (facts.perplexity or {})["valid"]
    found = {name: part[name]["per_token"] for name in ("masked", "causal", "pseudo") if name in part}
    return {f"{name}_perplexity": value for name, value in found.items() if value is not None}


def _sections(facts: ModelFacts) -> list[Section]:
    warnings = [f"Warning: {line}." for line in facts.flags] or ["Health: no flags."]
    what = [f"{origin.name}: {_from(origin)}." for origin in facts.origins]
    return [
        Section("What it is", [facts.summary, *_started(facts), *warnings]),
        Section("How to load it", [Code("\n".join(facts.lines))]),
        Section("Scores", _scores(facts)),
        Section("What it was trained on", [*what, facts.counts]),
        Section("How it was trained", [facts.training]),
        Section("Limits", facts.limits),
        Section("Licence and citation of the data", [f"{origin.name}: {_rights(origin)}" for origin in facts.origins]),
    ]


def _started(facts: ModelFacts) -> list[str]:
    return [f"Training started from {facts.started}."] if facts.started else []


def _scores(facts: ModelFacts) -> list[str | Table]:
    blocks: list[str | Table] = []
    if facts.scores:
        blocks += [
            f"{SPLITS[facts.scores.split]} In brackets: 95% intervals for the choice of examples.",
            _score_table(facts.scores),
        ]
    if facts.perplexity:
        blocks += [f"Of text that was not trained on. {INTERVALS}", perplexity_table(facts.perplexity)]
    return blocks


def _score_table(scores: Scores) -> Table:
    names = [name for name in scores.figures if name in scores.scales]
    columns = [(scores.figures, scores.intervals), (scores.before, {})]
    columns += [(scores.baselines[name], scores.baseline_intervals[name]) for name in scores.baselines]
    rows = [
        (name, scores.scales[name], *(with_interval(of, {}, ends, name, scores.scales) for of, ends in columns))
        for name in names
    ]
    baselines = (name.replace("_", " ") for name in scores.baselines)
    return Table(("score", "scale", "this model", "before tuning", *baselines), rows)


def _from(origin: Origin) -> str:
    if origin.dataset is None:
        return origin.title
    of = "" if origin.title == origin.dataset else f"{origin.title}, "
    return f"{of}{origin.dataset} at commit {origin.commit}, config {origin.config}"


def _rights(origin: Origin) -> str:
    licence = origin.licence or "the licence is not known to Retrace"
    return f"{licence}. {origin.citation}." if origin.citation else f"{licence}."
