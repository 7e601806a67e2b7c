"""Health flags: as chips of the page, and as lines of text."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from retrace.evaluation.records import Details
from retrace.perplexity.measures import PerplexityReport
from retrace.report.blocks import Chip
from retrace.report.names import baseline_name, figure_name, method_name, shown, shown_signed, title_of
from retrace.statistics.scales import Figure, Shortfall

MOST_FLAGS = 10  # in the last line of a run
MEANINGS = {
    "not_above_tfidf": "No better than a bag of words (tf-idf with logistic regression), which knows no word order.",
    "not_above_majority": "No better than always naming the most frequent class.",
    "not_above_no_answer": "No better than answering no question at all.",
    "not_above_word_overlap": "No better than words of the sentence that shares most words with the question.",
    "not_above_before_training": "Fine-tuning has not moved the score beyond what chance could.",
    "not_above_scratch": "Pretraining has shown no worth for this method: random weights do as well.",
    "one_class_only": "The model gives every example the same class.",
    "test_in_training": "Some of these examples are in the training data word for word, so scores may be too high.",
}


class Found(NamedTuple):
    """A flag where it was seen."""

    task: str  # or a split of the text
    who: str  # "full 1", "full", "data" or "language model"
    flag: str
    evidence: str | Shortfall
    figure: Figure | None = None  # what a shortfall is of


def found_flags(details: Details, perplexity: PerplexityReport | None) -> list[Found]:
    """All flags: of the language model, then of each task's methods, seeds and data."""
    return [*perplexity_flags(perplexity), *_task_flags(details)]


def perplexity_flags(report: PerplexityReport | None) -> Iterator[Found]:
    """Those of the language model, by split of the text."""
    for part, split in (report.splits if report else {}).items():
        for flag, evidence in split.flags.items():
            yield Found(part, "language model", flag, evidence)


def _task_flags(details: Details) -> Iterator[Found]:
    for task, of in details.tasks.items():
        seen = {
            f"{method} {seed}": found.flags
            for method, all_of in of.methods.items()
            for seed, found in all_of.seeds.items()
        }
        seen |= {method: found.flags for method, found in of.methods.items()}
        for who, flags in {**seen, "data": of.flags}.items():
            for flag, evidence in flags.items():
                figure = of.legend.get(evidence.figure) if isinstance(evidence, Shortfall) else None
                yield Found(task, who, flag, evidence, figure)


def flag_chips(flags: Sequence[Found]) -> list[Chip]:
    """A chip for each kind of flag: who has it and where, what it means, and the evidence."""
    by_kind: dict[str, list[Found]] = {}
    for found in flags:
        by_kind.setdefault(found.flag, []).append(found)
    return [_chip(kind, found) for kind, found in by_kind.items()]


def _chip(kind: str, found: Sequence[Found]) -> Chip:
    name = _words(kind).capitalize()
    who = dict.fromkeys(f"{_short(of.who)} on {_on(of.task)}" for of in found)
    text = f"{name}: {next(iter(who))}" if len(who) == 1 else f"{name} · {len(found)}"
    means = [MEANINGS[kind]] if kind in MEANINGS else []
    return Chip(text, [*means, *(f"{title_of(of.task)}, {_who(of.who)}: {_said(of)}." for of in found)])


def _said(found: Found) -> str:
    """The evidence as the page shows figures: shares in points of 100."""
    of, figure = found.evidence, found.figure
    if not isinstance(of, Shortfall) or figure is None:
        return str(of)
    other = method_name(of.other) if of.other == "scratch" else baseline_name(of.other)
    difference, low, high = (shown_signed(figure, each) for each in (of.value - of.against, of.low, of.high))
    said = f"{figure_name(of.figure, figure)} {shown(figure, of.value)}, {other} {shown(figure, of.against)}"
    return f"{said}; difference {difference} (95% interval {low} to {high}) {of.note}".strip()


def flags_line(flags: Sequence[Found]) -> str:
    """What is wrong with the models, in one line."""
    if not flags:
        return "flags: none"
    lines = flag_lines(flags)
    more = [f"and {len(lines) - MOST_FLAGS} more, which the report says"] if len(lines) > MOST_FLAGS else []
    return f"flags: {len(lines)}: " + "; ".join([*lines[:MOST_FLAGS], *more])


def flag_lines(flags: Sequence[Found]) -> list[str]:
    """One line a flag: the task, the model or data, the flag and its evidence."""
    return [f"{of.task} {of.who}: {_words(of.flag)}: {of.evidence}" for of in flags]


def _words(flag: str) -> str:
    return flag.replace("_", " ").replace("tfidf", "tf-idf")


def _short(who: str) -> str:
    return _who(who.split()[0] if who[-1].isdigit() else who)


def _on(task: str) -> str:
    title = title_of(task)
    return title[:1].lower() + title[1:]


def _who(who: str) -> str:
    method, _, seed = who.partition(" ")
    if seed.isdigit():
        return f"{method_name(method)}, seed {seed}"
    return "the data" if who == "data" else "the " + who if seed else method_name(method)
