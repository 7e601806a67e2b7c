"""The head of the page: the verdict, which is what a run shows in sentences by rule, facts of the run, and its health
flags, which are chips of the page and lines of text elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from retrace.core.records import RunRecord
from retrace.evaluation.records import Details
from retrace.perplexity.measures import PerplexityReport
from retrace.report.blocks import Chip, figure_text, signed
from retrace.report.names import baseline_name, figure_name, method_name, shown, shown_signed, title_of
from retrace.report.results import Task, most_seeds
from retrace.report.runs import commit_text, duration
from retrace.statistics.scales import Figure, Shortfall

FULL, SCRATCH, CHEAP = "full", "scratch", ("lora", "adapter")
DATA, LANGUAGE_MODEL = "data", "language model"  # that have flags, beside methods
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
Sentence = list[tuple[str, bool]]  # parts, and whether each is bold


def verdict(tasks: Sequence[Task], perplexity: PerplexityReport | None, shares: Mapping[str, float]) -> list[Sentence]:
    """What pretraining is worth, what the best cheap method costs, the perplexity, who is not above the baselines.

    `shares` are the percentages of weights that methods train. A rule that does not apply, as where a method is not
    run, says nothing.
    """
    said = [_worth(tasks), _cheap(tasks, shares), _perplexity(perplexity), _baselines(tasks)]
    if most_seeds(tasks) == 1:
        said.append("One seed: differences are of these models, and do not tell the methods apart.")
    return [
        [(part, place % 2 == 1) for place, part in enumerate(sentence.split("**")) if part]
        for sentence in said if sentence
    ]  # fmt: skip


def _worth(tasks: Sequence[Task]) -> str:
    """Full fine-tuning of the pretrained model against that of a model with random weights."""
    shown, nothing = [], []
    for task in tasks:
        gain = task.difference(FULL, SCRATCH)
        if gain and task.sign * gain.value > 0 and not gain.is_tie:
            full, scratch = (figure_text(task.score(method).value, 1) for method in (FULL, SCRATCH))
            points = f"**{signed(gain.value)}{_points(task)}**"
            shown.append(f"{points} of {task.figure} on {task.noun} ({full} against {scratch})")
        elif gain:
            nothing.append(f"{task.noun} ({signed(gain.value)}, {signed(gain.low)} to {signed(gain.high)})")
    parts = [f"Pretraining is worth {_listed(shown)}."] if shown else []
    parts += [f"Pretraining shows **no gain** on {_listed(nothing, 'or')}."] if nothing else []
    return " ".join(parts)


def _cheap(tasks: Sequence[Task], shares: Mapping[str, float]) -> str:
    """The better of LoRA and adapters against full fine-tuning."""
    gains = {method: [(task, gain) for task in tasks if (gain := task.difference(method, FULL))]
             for method in CHEAP if method in shares}  # fmt: skip
    found = [method for method, of in gains.items() if tasks and len(of) == len(tasks)]
    if not found:
        return ""
    best = max(found, key=lambda method: sum(task.sign * task.score(method).value for task in tasks))
    parts = [
        f"{signed(gain.value)}{'' if place else _points(task)} on {task.noun}{' (a tie)' if gain.is_tie else ''}"
        for place, (task, gain) in enumerate(gains[best])
    ]
    trains = f"{method_name(best)} trains **{shares[best]:.1f}% of the weights**"
    return f"{trains}; against full fine-tuning it scores {_listed(parts)}."


def _perplexity(report: PerplexityReport | None) -> str:
    split = report and report.splits.get("valid")
    if not split:
        return ""
    own = next((of.perplexity_per_token for name, of in split.measures.items() if name != "unigram"), None)
    unigram = split.measures["unigram"].perplexity_per_token if "unigram" in split.measures else None
    if own is None or unigram is None:
        return "The language model’s perplexity is not defined on this text."
    beaten = "" if split.beats_unigram else ", which it does not beat"
    start = f"The language model’s perplexity is **{figure_text(own, 1)} per token**"
    return f"{start}; a unigram model’s is {figure_text(unigram, 0)}{beaten}."


def _baselines(tasks: Sequence[Task]) -> str:
    """Who is not above the best baseline."""
    lines = []
    for task in tasks:
        best = task.best_baseline
        low = [method_name(method) for method in task.methods if not task.is_above(method, best)]
        if low:
            who = "all methods" if len(low) == len(task.methods) else _listed(low)
            lines.append(f"{who} on {task.noun} ({baseline_name(best)})")
    if lines:
        return f"**Not above the best baseline:** {'; '.join(lines)}."
    return "Every method is above every baseline." if tasks else ""


def _points(task: Task) -> str:
    return " points" if task.is_share else ""


def _listed(parts: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    *first, end = parts
    return f"{', '.join(first)} {last} {end}" if first else end


def run_facts(params: Mapping[str, Any], runs: Mapping[str, RunRecord], parameters: int) -> dict[str, str]:
    """How large, on how much, how long, where and from which commit, by name."""
    pretraining, model = runs.get("pretrain"), params["model"]
    first = pretraining or next(iter(runs.values()), None)
    facts = {"Parameters": _count(parameters)}
    if not model.get("checkpoint"):
        facts = {"Model": f"{params['family']}, {model['layers']} layers of {model['hidden_size']}", **facts}
    if pretraining and pretraining.tokens:
        facts["Tokens seen"] = _count(pretraining.tokens)
    facts["Seeds"] = str(len(params["finetune"]["seeds"]))
    if first:
        facts["Training"] = duration(sum(run.seconds for run in runs.values()))
        facts["Precision"] = f"{first.precision}, {first.processes} process{'es' if first.processes > 1 else ''}"
    if first and first.origin:
        facts |= {"Machine": first.origin.machine, "Commit": commit_text(first.origin), "Date": first.origin.date}
    return facts


class Found(NamedTuple):
    """A flag where it was seen."""

    task: str  # or a split of the text
    who: str  # a method, DATA or LANGUAGE_MODEL
    seed: str  # of the method; empty where it is of all
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
            yield Found(part, LANGUAGE_MODEL, "", flag, evidence)


def _task_flags(details: Details) -> Iterator[Found]:
    for task, of in details.tasks.items():
        seen = [(method, seed, each.flags) for method, all_of in of.methods.items()
                for seed, each in all_of.seeds.items()]  # fmt: skip
        seen += [(method, "", all_of.flags) for method, all_of in of.methods.items()]
        for who, seed, flags in [*seen, (DATA, "", of.flags)]:
            for flag, evidence in flags.items():
                figure = of.legend.get(evidence.figure) if isinstance(evidence, Shortfall) else None
                yield Found(task, who, seed, flag, evidence, figure)


def flag_chips(flags: Sequence[Found]) -> list[Chip]:
    """A chip for each kind of flag: who has it and where, what it means, and the evidence."""
    by_kind: dict[str, list[Found]] = {}
    for found in flags:
        by_kind.setdefault(found.flag, []).append(found)
    return [_chip(kind, found) for kind, found in by_kind.items()]


def _chip(kind: str, found: Sequence[Found]) -> Chip:
    name, titles = _plain(kind).capitalize(), [title_of(of.task) for of in found]
    places = [f"{title[:1].lower()}{title[1:]}" for title in titles]
    who = dict.fromkeys(f"{_name(of.who)} on {place}" for of, place in zip(found, places, strict=True))
    text = f"{name}: {next(iter(who))}" if len(who) == 1 else f"{name} · {len(found)}"
    means = [MEANINGS[kind]] if kind in MEANINGS else []
    seen = [
        f"{title_of(of.task)}, {_name(of.who)}{f', seed {of.seed}' if of.seed else ''}: {_said(of)}." for of in found
    ]
    return Chip(text, [*means, *seen])


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
    return [f"{of.task} {f'{of.who} {of.seed}'.strip()}: {_plain(of.flag)}: {of.evidence}" for of in flags]


def _plain(flag: str) -> str:
    return flag.replace("_", " ").replace("tfidf", "tf-idf")


def _name(who: str) -> str:
    return f"the {who}" if who in (DATA, LANGUAGE_MODEL) else method_name(who)


def _count(number: int) -> str:
    for size, unit in ((1e9, "B"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.2f} {unit}"
    return f"{number:,}"
