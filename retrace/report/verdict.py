"""The verdict: what a run shows, in sentences by rule; parts of a sentence may be bold."""

from collections.abc import Iterable, Mapping, Sequence

from retrace.perplexity.measures import PerplexityReport
from retrace.report.blocks import figure_text, signed
from retrace.report.names import baseline_name, method_name
from retrace.report.results import Difference, Task, most_seeds

FULL, SCRATCH, CHEAP = "full", "scratch", ("lora", "adapter")
Sentence = list[tuple[str, bool]]


def verdict(tasks: Sequence[Task], perplexity: PerplexityReport | None, shares: Mapping[str, float]) -> list[Sentence]:
    """What pretraining is worth, what the best cheap method costs, the perplexity, who is not above the baselines.

    `shares` are the percentages of weights that methods train. A rule that does not apply, as where a method is not
    run, says nothing.
    """
    said = [_worth(tasks), _cheap(tasks, shares), _perplexity(perplexity), _baselines(tasks), _seeds(tasks)]
    return [sentence for sentence in said if sentence]


def _worth(tasks: Sequence[Task]) -> Sentence:
    """Full fine-tuning of the pretrained model against that of a model with random weights."""
    gains = [(task, gain) for task in tasks if (gain := task.difference(FULL, SCRATCH))]
    shown = [(task, gain) for task, gain in gains if gain.value > 0 and not gain.is_tie]
    nothing = [(task, gain) for task, gain in gains if gain.value <= 0 or gain.is_tie]
    sentence: Sentence = []
    if shown:
        sentence += [
            ("Pretraining is worth ", False),
            *_listed([_gain(task, gain) for task, gain in shown]),
            (".", False),
        ]
    if nothing:
        lost = [[(f"{task.noun} ({_with_ends(gain)})", False)] for task, gain in nothing]
        sentence += [(" " if shown else "", False), ("Pretraining shows ", False), ("no gain", True), (" on ", False)]
        sentence += [*_listed(lost, "or"), (".", False)]
    return sentence


def _gain(task: Task, gain: Difference) -> Sentence:
    full, scratch = (figure_text(task.score(method).value, 1) for method in (FULL, SCRATCH))
    unit = " points" if task.is_share else ""
    return [
        (f"{signed(gain.value)}{unit}", True),
        (f" of {task.figure} on {task.noun} ({full} against {scratch})", False),
    ]


def _cheap(tasks: Sequence[Task], shares: Mapping[str, float]) -> Sentence:
    """The better of LoRA and adapters against full fine-tuning."""
    found = [
        method for method in CHEAP
        if method in shares and tasks and all(task.difference(method, FULL) for task in tasks)
    ]  # fmt: skip
    if not found:
        return []
    best = max(found, key=lambda method: sum(task.score(method).value for task in tasks))
    parts: list[Sentence] = []
    for task in tasks:
        gain = task.difference(best, FULL)
        assert gain is not None, "methods that were compared on every task"
        unit = " points" if not parts and task.is_share else ""
        parts.append([(f"{signed(gain.value)}{unit} on {task.noun}{' (a tie)' if gain.is_tie else ''}", False)])
    start: Sentence = [(f"{method_name(best)} trains ", False), (f"{shares[best]:.1f}% of the weights", True)]
    return [*start, ("; against full fine-tuning it scores ", False), *_listed(parts), (".", False)]


def _perplexity(report: PerplexityReport | None) -> Sentence:
    split = report and report.splits.get("valid")
    if not split:
        return []
    own = next((of.perplexity_per_token for name, of in split.measures.items() if name != "unigram"), None)
    unigram = split.measures["unigram"].perplexity_per_token if "unigram" in split.measures else None
    if own is None or unigram is None:
        return [("The language model’s perplexity is not defined on this text.", False)]
    beaten = "" if split.beats_unigram else ", which it does not beat"
    start: Sentence = [("The language model’s perplexity is ", False), (f"{figure_text(own, 1)} per token", True)]
    return [*start, (f"; a unigram model’s is {figure_text(unigram, 0)}{beaten}.", False)]


def _baselines(tasks: Sequence[Task]) -> Sentence:
    """Who is not above the best baseline."""
    lines: list[Sentence] = []
    for task in tasks:
        best = task.best_baseline
        low = [method for method in task.methods if not task.is_above(method, best)]
        who = "all methods" if len(low) == len(task.methods) else _words(method_name(method) for method in low)
        if low:
            lines.append([(f"{who} on {task.noun} ({baseline_name(best)})", False)])
    if not lines:
        return [("Every method is above every baseline.", False)] if tasks else []
    return [("Not above the best baseline:", True), (" ", False), *_listed(lines, "and", "; "), (".", False)]


def _seeds(tasks: Sequence[Task]) -> Sentence:
    said = "One seed: differences are of these models, and do not tell the methods apart."
    return [(said, False)] if most_seeds(tasks) == 1 else []


def _with_ends(gain: Difference) -> str:
    return f"{signed(gain.value)}, {signed(gain.low)} to {signed(gain.high)}"


def _words(names: Iterable[str]) -> str:
    return "".join(text for text, _ in _listed([[(name, False)] for name in names]))


def _listed(parts: Sequence[Sentence], last: str = "and", comma: str = ", ") -> Sentence:
    """a, b and c."""
    out: Sentence = []
    for i, part in enumerate(parts):
        between = "" if not i else f" {last} " if i == len(parts) - 1 and comma == ", " else comma
        out += [(between, False), *part] if between else part
    return out
