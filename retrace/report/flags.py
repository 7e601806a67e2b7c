"""Health flags in words: warnings on the page, and lines of text elsewhere."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from retrace.core.errors import printable
from retrace.evaluation.records import DATA, Details
from retrace.perplexity.measures import LANGUAGE_MODEL, LIKELIHOOD, PerplexityReport
from retrace.report.blocks import EXACT, figure_text
from retrace.report.names import (
    baseline_name,
    capital,
    digits_beside,
    method_name,
    shown,
    shown_ends,
    shown_signed,
    title_in_text,
    title_of,
)
from retrace.statistics.scales import Figure, Legend, Shortfall

MOST_FLAGS = 10  # in the last lines of a run's output
MOST_NATS = 700.0  # of a loss whose perplexity is printed, above it a bound; exp(710) is too large for a float
LARGE = 1e7  # from which it is printed as a power of ten
LANGUAGE_MODELS: Legend = {LIKELIHOOD: Figure("score", "higher", LIKELIHOOD)}
TEXTS = {"valid": "validation", "test": "test"}  # splits of the text that perplexity is measured on
BEATEN = {  # by name as in a flag: in a title, and in words
    "tfidf": ("TF-IDF", "logistic regression on words and pairs of words (TF-IDF)"),
    "majority": ("the majority class", "always naming the most frequent class"),
    "no_answer": ("never answering", "never answering"),
    "word_overlap": ("word overlap", "an answer picked by the words shared with the question"),
    "before_training": ("the model before training", "the same model before fine-tuning"),
    "scratch": ("training from scratch", "fine-tuning from random weights"),
    "unigram": ("a unigram model", "a model that knows only how frequent each token is"),
}
TITLES = {
    "dev_in_training": "validation examples in the training data",
    "test_in_training": "test examples in the training data",
    "test_in_validation": "test examples in the validation data",
    "dev_given_away": "validation examples overlapping with training texts",
    "test_given_away": "test examples overlapping with training texts",
}
MEANINGS = {
    "one_class_only": "The model predicts the same class for every example.",
    **dict.fromkeys(
        ("dev_in_training", "test_in_training"),
        "Some of these examples are in the training data word for word, so scores may be too high.",
    ),
    "unknown_tokens": "The perplexity is that of the other tokens.",
}


class Found(NamedTuple):
    """A flag, and where it was seen."""

    task: str  # or a split of the running text
    who: str  # a method, DATA or LANGUAGE_MODEL
    seed: str  # of the method; empty if the flag is of all its seeds
    flag: str
    evidence: str | Shortfall
    legend: Legend  # of the task's figures

    @property
    def is_worse(self) -> bool:
        """Whether the evidence shows that the other is better, by the whole interval of the difference.

        Which of two methods is better, their comparison says, by a stricter test.
        """
        evidence = self.evidence
        if not isinstance(evidence, Shortfall) or evidence.other == "scratch":
            return False
        return evidence.low > 0 if self.legend[evidence.figure].better == "lower" else evidence.high < 0

    @property
    def title(self) -> str:
        """The flag as readers see it."""
        other = self.flag.removeprefix("not_above_")
        if other == self.flag:
            return TITLES.get(other, other.replace("_", " "))
        return f"{'worse than' if self.is_worse else 'not above'} {BEATEN.get(other, [baseline_name(other)])[0]}"

    @property
    def said(self) -> str:
        """The evidence with figures as the page prints them: shares as percentages, likelihoods as perplexities."""
        evidence = self.evidence
        if not isinstance(evidence, Shortfall):
            return evidence
        if evidence.figure == LIKELIHOOD:
            return _as_perplexity(evidence)
        figure = self.legend[evidence.figure]
        other = method_name(evidence.other) if evidence.other == "scratch" else baseline_name(evidence.other)
        difference, ends = evidence.value - evidence.against, shown_ends(figure, evidence.low, evidence.high)
        said = f"{figure.name} {shown(figure, evidence.value)}, {other} {shown(figure, evidence.against)}"
        return f"{said}; difference {shown_signed(figure, difference)} (95% interval {ends}) {evidence.note}".strip()


def exp_text(nats: float, digits: int, large: float = EXACT) -> str:
    """e^nats as it is printed; above MOST_NATS a sign that it is more, and the largest that is printed."""
    return (">" if nats > MOST_NATS else "") + figure_text(math.exp(min(nats, MOST_NATS)), digits, large)


def _as_perplexity(shortfall: Shortfall) -> str:
    """The evidence on log likelihoods, whose difference is the logarithm of the ratio of the perplexities."""

    def ratio(nats: float) -> str:
        return exp_text(nats, digits_beside(1, math.exp(min(nats, MOST_NATS)), 2), LARGE)

    own, other = (exp_text(-nats, 1, LARGE) for nats in (shortfall.value, shortfall.against))
    times, low, high = map(ratio, (shortfall.against - shortfall.value, -shortfall.high, -shortfall.low))
    said = f"perplexity per token {own}, a unigram model’s {other}"
    return f"{said}; {times} times as high (95% interval {low} to {high}) {shortfall.note}".strip()


def found_flags(details: Details, perplexity: PerplexityReport | None) -> list[Found]:
    """All flags: the language model's, then those of each task's seeds, methods and data."""
    found = perplexity_flags(perplexity)
    for task, task_details in details.tasks.items():
        methods = task_details.methods.items()
        seen = [(method, seed, each.flags) for method, all_seeds in methods for seed, each in all_seeds.seeds.items()]
        seen += [(method, "", all_seeds.flags) for method, all_seeds in methods]
        for who, seed, flags in [*seen, (DATA, "", task_details.flags)]:
            found += [Found(task, who, seed, flag, evidence, task_details.legend) for flag, evidence in flags.items()]
    return found


def perplexity_flags(report: PerplexityReport | None) -> list[Found]:
    """The language model's flags, by split of the text."""
    splits = report.splits.items() if report else ()
    return [
        Found(part, LANGUAGE_MODEL, "", flag, evidence, LANGUAGE_MODELS)
        for part, split in splits
        for flag, evidence in split.flags.items()
    ]


def flag_warnings(flags: Sequence[Found]) -> dict[str, list[str]]:
    """A warning for each kind of flag: who has it, or how many → what it means, and the evidence."""
    kinds: dict[tuple[str, bool], list[Found]] = {}
    for seen in flags:
        kinds.setdefault((seen.flag, seen.is_worse), []).append(seen)
    warnings = {}
    for (flag, is_worse), found in kinds.items():
        who, name = {_who(seen) for seen in found}, capital(found[0].title)
        lines = list(filter(None, [_meaning(flag, is_worse)]))
        for seen in found:
            model = "" if seen.who in (DATA, LANGUAGE_MODEL) else f", {method_name(seen.who)}"
            where = capital(_place(seen)) if seen.who == LANGUAGE_MODEL else title_of(seen.task)
            lines.append(f"{where}{model}{f', seed {seen.seed}' if seen.seed else ''}: {seen.said}.")
        warnings[f"{name}: {who.pop()}" if len(who) == 1 else f"{name} · {len(found)}"] = lines
    return warnings


def _meaning(flag: str, is_worse: bool) -> str:
    other = flag.removeprefix("not_above_")
    if other == flag or other not in BEATEN:
        return MEANINGS.get(flag, "")
    return f"{'Worse than' if is_worse else 'Not shown to be better than'} {BEATEN[other][1]}."


def _place(found: Found) -> str:
    """The task or the text of a flag, within a sentence."""
    if found.who == LANGUAGE_MODEL:
        return f"{TEXTS.get(found.task, found.task)} text"
    return title_in_text(found.task)


def _who(found: Found) -> str:
    if found.who == DATA:
        return _place(found)
    return f"{'the language model' if found.who == LANGUAGE_MODEL else method_name(found.who)} on {_place(found)}"


def flags_text(flags: Sequence[Found]) -> str:
    """How many flags there are, and all of them or the first of many, a line each."""
    if not flags:
        return "flags: none"
    lines = list(map(printable, flag_lines(flags)))
    if len(flags) > MOST_FLAGS:
        lines[MOST_FLAGS:] = [f"{len(flags) - MOST_FLAGS} more in the report"]
    return "\n  ".join([f"flags: {len(flags)}", *lines])


def flag_lines(flags: Sequence[Found]) -> list[str]:
    """A line for each flag: the task, the model or data, the flag and its evidence."""
    return [f"{_owner(flag)}: {flag.title}: {flag.said}" for flag in flags]


def _owner(found: Found) -> str:
    """A model as commands name it, or the data of a task."""
    if found.who == LANGUAGE_MODEL:
        return f"language model, {_place(found)}"
    return found.task if found.who == DATA else f"{found.task} {found.who} {found.seed}".strip()
