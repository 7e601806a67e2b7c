"""What a run shows at first sight: the verdict, facts of the run and its health flags, which are the head of the page,
and its first section, where methods and baselines of every task stand in one look.

The verdict is in sentences by rule. Flags are chips of the page and lines of text elsewhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from markupsafe import Markup

from retrace.core.records import RunRecord
from retrace.evaluation.records import Details
from retrace.perplexity.measures import PerplexityReport
from retrace.report import svg
from retrace.report.blocks import NOTHING, Cell, Chip, Panel, Panels, Section, Table, figure_text
from retrace.report.names import (
    LANGUAGE_MODEL,
    baseline_name,
    figure_name,
    listed,
    method_name,
    shown,
    shown_signed,
    title_of,
)
from retrace.report.results import Score, Task, most_seeds
from retrace.report.runs import commit_text, duration
from retrace.report.svg import Axes, Plot
from retrace.statistics.scales import Figure, Shortfall

FULL, SCRATCH, CHEAP = "full", "scratch", ("lora", "adapter")
DATA = "data"  # that has flags, as methods and the language model have
MOST_FLAGS = 10  # in the last line of a run
ROW = 28  # px, of the ranks
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
            full, scratch = (task.score(method).text for method in (FULL, SCRATCH))
            points = f"**{gain.text}{_points(task)}**"
            shown.append(f"{points} of {task.figure} on {task.noun} ({full} against {scratch})")
        elif gain:
            nothing.append(f"{task.noun} ({gain.text}, {' to '.join(gain.ends)})")
    parts = [f"Pretraining is worth {listed(shown)}."] if shown else []
    parts += [f"Pretraining shows **no certain gain** on {listed(nothing, 'or')}."] if nothing else []
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
        f"{gain.text}{'' if place else _points(task)} on {task.noun}{' (a tie)' if gain.is_tie else ''}"
        for place, (task, gain) in enumerate(gains[best])
    ]
    trains = f"{method_name(best)} trains **{shares[best]:.1f}% of the weights**"
    return f"{trains}; against full fine-tuning it scores {listed(parts)}."


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
    """Who is not above a baseline, and who is in the mean, where so few seeds or examples do not show it."""
    low = "; ".join(line for task in tasks for line in _at_baselines(task, task.falls_short))
    uncertain = "; ".join(line for task in tasks for line in _at_baselines(task, task.is_uncertain))
    seeds = most_seeds(tasks)
    parts = [f"**Not above a baseline:** {low}."] if low else []
    if uncertain:
        count = f"{seeds} seed{'s' if seeds > 1 else ''}"
        parts.append(f"Above a baseline in the mean, but not shown to be with {count}: {uncertain}.")
    if not parts and any(task.baselines for task in tasks):
        parts = ["Every method is above every baseline."]
    return " ".join(parts)


def _at_baselines(task: Task, is_so: Callable[[str, str], bool]) -> list[str]:
    """Methods of which something is so of a baseline, together where it is of the same ones."""
    found: dict[str, list[str]] = {}
    for method in task.methods:
        of = [baseline_name(name) for name in task.baselines if is_so(method, name)]
        if of:
            found.setdefault(listed(of), []).append(method_name(method))
    return [
        f"{'all methods' if len(methods) == len(task.methods) else listed(methods)} on {task.noun} ({of})"
        for of, methods in found.items()
    ]


def _points(task: Task) -> str:
    return " points" if task.is_share else ""


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
    found = [*perplexity_flags(perplexity)]
    for task, of in details.tasks.items():
        methods = of.methods.items()
        seen = [(method, seed, each.flags) for method, all_of in methods for seed, each in all_of.seeds.items()]
        seen += [(method, "", all_of.flags) for method, all_of in methods]
        for who, seed, flags in [*seen, (DATA, "", of.flags)]:
            for flag, evidence in flags.items():
                figure = of.legend.get(evidence.figure) if isinstance(evidence, Shortfall) else None
                found.append(Found(task, who, seed, flag, evidence, figure))
    return found


def perplexity_flags(report: PerplexityReport | None) -> Iterator[Found]:
    """Those of the language model, by split of the text."""
    for part, split in (report.splits if report else {}).items():
        for flag, evidence in split.flags.items():
            yield Found(part, LANGUAGE_MODEL, "", flag, evidence)


def flag_chips(flags: Sequence[Found]) -> list[Chip]:
    """A chip for each kind of flag: who has it and where, what it means, and the evidence."""
    kinds = dict.fromkeys(of.flag for of in flags)
    return [_chip(kind, [of for of in flags if of.flag == kind]) for kind in kinds]


def _chip(kind: str, found: Sequence[Found]) -> Chip:
    name, titles = _plain(kind).capitalize(), [title_of(of.task) for of in found]
    who = {f"{_name(of.who)} on {title[:1].lower()}{title[1:]}" for of, title in zip(found, titles, strict=True)}
    text = f"{name}: {who.pop()}" if len(who) == 1 else f"{name} · {len(found)}"
    means = [MEANINGS[kind]] if kind in MEANINGS else []
    seen = [
        f"{title}, {_name(of.who)}{f', seed {of.seed}' if of.seed else ''}: {_said(of)}."
        for of, title in zip(found, titles, strict=True)
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


def summary_sections(
    all_tasks: Sequence[Task], shares: Mapping[str, float], seconds: Mapping[str, float]
) -> list[Section]:
    """None where no task has a score.

    `shares` are the percentages of weights that methods train, `seconds` of training are means over seeds.
    """
    tasks = [task for task in all_tasks if task.methods]
    if not tasks:
        return []
    seeds = most_seeds(tasks)
    dots = f"Dot: mean of {seeds} seeds, ticks below it: each seed" if seeds > 1 else "Dot: one seed"
    grey = " Grey: baselines, which need no language model." if any(task.baselines for task in tasks) else ""
    note = f"{dots}; bar: {reading(tasks)}{grey}"
    ranks = [Panel(task.title, ranked(task)) for task in tasks]
    return [Section("Results", [Panels("summary", "", note, ranks), summary_table(tasks, shares, seconds)])]


def reading(tasks: Sequence[Task]) -> str:
    """What the intervals and marks of tasks with scores mean."""
    covers = next(iter(tasks[0].details.methods.values())).intervals_of
    best = "Bold: the best; ≈: not told apart from it, by pairs of examples."
    return f"95% interval for the choice of {covers}. {best}"


class Standing(NamedTuple):
    """A score and whose it is."""

    name: str  # that readers see
    score: Score
    method: str | None  # None of a baseline


def _standings(task: Task) -> list[Standing]:
    """All methods, from the best to the worst, then all baselines."""
    methods = [Standing(method_name(name), task.score(name), name) for name in task.methods]
    return [*methods, *(Standing(baseline_name(name), task.baseline(name), None) for name in task.baselines)]


def ranked(task: Task) -> Plot:
    """Methods and baselines from the best to the worst: a dot, its interval, and the seeds."""
    rows = sorted(_standings(task), key=lambda row: -task.sign * row.score.value)
    low, high = min(row.score.low for row in rows), max(row.score.high for row in rows)
    steps = svg.ticks(max(0.0, low) if task.is_share else low, min(100.0, high) if task.is_share else high, 5)
    axes = Axes((steps[0], steps[-1]))
    drawn = [svg.upright(axes, step, "axis") for step in steps]
    for i, row in enumerate(rows):
        shown = _row(task, axes, row, i * ROW + ROW // 2)
        drawn.append(svg.tag("g", *shown, class_=_colour(task, row.method)))
    below = {"y": "100%", "dy": 16, "text_anchor": "middle"}
    drawn += [svg.tag("text", svg.tick_text(step), x=axes.across(step), **below) for step in steps]
    said = "; ".join(f"{row.name} {row.score.said}" for row in rows)
    return Plot(svg.joined(drawn), f"{task.title}, {task.figure}: {said}", ROW * len(rows), "rank")


def _row(task: Task, axes: Axes, row: Standing, y: int) -> Iterator[Markup]:
    """The line of a method or a baseline."""
    name, score, method = row
    if method:
        yield svg.tag("g", svg.mark(task.places[method]), transform=f"translate(-126 {y - 5})")
    yield svg.tag("text", name, x=-110, y=y, dy=5, class_="name" if method else "grey")
    yield svg.band(axes, score.low, score.high, y)
    seeds = task.seeds(method) if method else {}
    each = list(seeds.values()) if len(seeds) > 1 else []
    for value in each:
        yield svg.tag("line", x1=axes.across(value), x2=axes.across(value), y1=y + 6, y2=y + 11, class_="seed")
    yield svg.tag("circle", cx=axes.across(score.value), cy=y, r=3.5, class_="fill" if method else "hollow")
    style = "grey" if not method else "best" if task.is_best(method) else "name"
    yield svg.tag("text", score.text, x="100%", y=y, dx=40, dy=5, text_anchor="end", class_=style)
    if method and task.is_tie(method):
        yield svg.tag("text", "≈", x="100%", y=y, dx=44, dy=5, class_="name")
    tip = f"{name}: {score.said}" + (
        "\nseeds " + ", ".join(figure_text(value, task.digits) for value in each) if each else ""
    )
    yield svg.tag("rect", x=0, width="100%", y=y - ROW // 2, height=ROW, class_="hit", data_t=tip)


def summary_table(tasks: Sequence[Task], shares: Mapping[str, float], seconds: Mapping[str, float]) -> Table:
    """Methods by their mean score over tasks, then baselines; of tasks with scores."""
    methods = list(dict.fromkeys(method for task in tasks for method in task.methods))
    methods.sort(key=lambda name: -sum(task.sign * task.score(name).value for task in tasks if name in task.methods))
    baselines = list(dict.fromkeys(name for task in tasks for name in task.baselines))
    columns = ("mean", "95% interval", "sd") if most_seeds(tasks) > 1 else ("score", "95% interval")
    count = len(columns)
    found = [{(row.name, row.method): _cells(task, row)[:count] for row in _standings(task)} for task in tasks]
    rows: list[list[str | Cell]] = []
    for method in methods:
        name = method_name(method)
        cells = chain(*(of.get((name, method), [NOTHING] * count) for of in found))
        cost = figure_text(shares.get(method), 1), figure_text(seconds.get(method), 0)
        rows.append([Cell(name, tasks[0].places[method]), cost[0], *cells, cost[1]])
    for name in map(baseline_name, baselines):
        rows.append([name, "", *chain(*(of.get((name, None), [""] * count) for of in found)), ""])
    units = [", %" if task.details.legend[task.headline].scale == "fraction" else "" for task in tasks]
    above = [(f"{task.title}: {task.figure}{unit}", count) for task, unit in zip(tasks, units, strict=True)]
    header = ["method", "trained, %", *columns * len(tasks), "time, s"]
    groups = [("", 1), ("Weights", 1), *above, ("Training", 1)]
    return Table(header, rows, label="Methods and tasks", groups=groups, apart=len(baselines))


def _cells(task: Task, row: Standing) -> list[str | Cell]:
    """The score, its interval, and a method's spread over seeds."""
    value, method = row.score.text, row.method
    if method is None:
        return [value, _interval(task, row), ""]
    best = Cell(value + (" ≈" if task.is_tie(method) else ""), bold=task.is_best(method))
    return [best, _interval(task, row), figure_text(task.std(method), max(2, task.digits))]


def _interval(task: Task, row: Standing) -> Cell:
    every, score = [of.score for of in _standings(task)], row.score
    steps = svg.ticks(min(of.low for of in every), max(of.high for of in every), 5)
    drawn = svg.strip(Axes((steps[0], steps[-1])), score.low, score.high, score.value)
    return Cell("", small=" – ".join(score.ends), strip=drawn, colour=_colour(task, row.method))


def _colour(task: Task, method: str | None) -> str:
    return "mb" if method is None else f"m{task.places[method] % svg.COLOURS}"
