"""The head of the page, which has the verdict and facts of the run; and its first section, which compares methods and
baselines on every task.

The verdict's sentences follow rules; ** stands around what is bold.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from statistics import fmean
from typing import Any, NamedTuple

from markupsafe import Markup

from retrace.core.records import RunRecord
from retrace.perplexity.measures import PerplexityReport
from retrace.report import svg
from retrace.report.blocks import NOTHING, Panel, Panels, Section, Table, TableCell, figure_text
from retrace.report.names import (
    baseline_name,
    checkpoint_text,
    count_text,
    digits_of,
    duration,
    each_once,
    listed,
    machine_text,
    method_name,
    points,
)
from retrace.report.results import Score, TaskResults, judged, most_seeds
from retrace.report.runs import commit_text
from retrace.report.svg import Axes
from retrace.statistics.scales import SHARES

FULL, SCRATCH = "full", "scratch"
ROW = 28  # px, a line of a ranking
TRAINED = {  # what each method of retrace/methods trains
    FULL: "all weights are trained, starting from the pretrained ones",
    SCRATCH: "all weights are trained, starting from random ones",
    "frozen": "only the head is trained",
    "lora": "low-rank updates of frozen matrices are trained, and the head if it is new",
    "adapter": "small layers added to the frozen model are trained, and the head if it is new",
}


def verdict(
    tasks: Sequence[TaskResults], perplexity: PerplexityReport | None, shares: Mapping[str, float]
) -> list[str]:
    """What pretraining gains, what training fewer weights costs, the perplexity, and what does not beat the baselines.

    `shares` are the percentages of weights that are trained by the methods that start from the same model, the largest
    over tasks. A rule that does not apply, for instance because a method was not run, adds no sentence.
    """
    # A model of other sizes from scratch does not tell what pretraining is worth.
    is_alike = SCRATCH in shares or FULL not in shares
    gain, part, baselines = _pretraining(tasks) if is_alike else "", _partial_tuning(tasks, shares), _baselines(tasks)
    said = [gain, part, _perplexity(perplexity), baselines]
    if any((gain, part, baselines)) and most_seeds(tasks) == 1:
        said.append("With one seed, these differences are between trained models and say nothing about the methods.")
    return [sentence for sentence in said if sentence]


def same_start_as_full(shares: Mapping[str, float], methods: Mapping[str, Any]) -> dict[str, float]:
    """The shares of the methods that start from the same checkpoint as full fine-tuning."""
    start = {name: (settings or {}).get("checkpoint") for name, settings in methods.items()}
    return {name: share for name, share in shares.items() if start.get(name) == start.get(FULL)}


def _pretraining(tasks: Sequence[TaskResults]) -> str:
    """Sentences that compare full fine-tuning of the pretrained weights with training from random ones."""
    gains, losses, nothing = [], [], []
    for task in tasks:
        gain = task.difference(FULL, SCRATCH)
        if gain and task.sign * gain.value > 0 and not gain.is_tie:
            full, scratch = (task.score(method).text for method in (FULL, SCRATCH))
            worth = f"**{gain.text}{points(task.figure)}**"
            gains.append(f"{worth} of {task.figure.name} on {task.called} ({full} against {scratch} from scratch)")
        elif gain:
            # The interval is uncorrected and the bootstrap's, so it may contradict the test.
            agrees = gain.is_tie == (gain.low <= 0 <= gain.high)
            ends = f", 95% interval {' to '.join(gain.ends)}" if agrees else ""
            said = f"{task.called} ({gain.text}{points(task.figure)}{ends})"
            (nothing if gain.is_tie else losses).append(said)
    parts = [f"Pretraining is worth {listed(gains)}."] if gains else []
    parts += [f"Pretraining makes full fine-tuning **worse** on {listed(losses)}."] if losses else []
    if nothing:
        parts.append(f"Pretraining shows **no significant gain** for full fine-tuning on {listed(nothing, 'or')}.")
    return " ".join(parts)


def _partial_tuning(tasks: Sequence[TaskResults], shares: Mapping[str, float]) -> str:
    """A sentence that compares the best method that trains only some of the weights with full fine-tuning."""
    gains = {method: [(task, gain) for task in tasks if (gain := task.difference(method, FULL))]
             for method, share in shares.items() if share < 100}  # fmt: skip
    found = [method for method, compared in gains.items() if tasks and len(compared) == len(tasks)]
    if not found:
        return ""
    best = max(found, key=lambda method: sum(task.weight * task.score(method).value for task in tasks))
    parts = [
        f"{gain.text}{points(task.figure)} on {task.called}{' (a tie)' if gain.is_tie else ''}"
        for task, gain in gains[best]
    ]
    most = "at most " if len(tasks) > 1 else ""  # a method may train more on one task than on another
    trains = f"{method_name(best)} trains {most}**{_trained(shares[best])}% of the weights**"
    return f"{trains}; against full fine-tuning it scores {listed(parts)}."


def _perplexity(report: PerplexityReport | None) -> str:
    """A sentence with the perplexity per token of the language model and of the unigram model."""
    if report is None:
        return ""
    split = report.splits["valid"]
    language_model = split.measures.get("masked") or split.measures["causal"]
    own, unigram = (figures.perplexity_per_token for figures in (language_model, split.measures["unigram"]))
    if own is None or unigram is None:
        why = "not defined on this text" if "nothing_scored" in split.flags else "too large for a float"
        return f"The language model’s perplexity is {why}."
    beaten = ""
    if split.beats_unigram is False:  # None: undecided with fewer than two documents
        beaten = f", which it does not beat{' significantly' if own < unigram else ''}"
    start = f"The language model’s perplexity is **{figure_text(own, 1)} per token**"
    return f"{start}; a unigram model’s is {figure_text(unigram, 1)}{beaten}."


def _baselines(tasks: Sequence[TaskResults]) -> str:
    """Sentences on the methods that do not beat a baseline, or not significantly."""
    worse, low, uncertain = (
        "; ".join(line for task in tasks for line in _at_baselines(task, standing))
        for standing in ("below", "not above", "uncertain")
    )
    parts = [f"**Worse than a baseline:** {worse}."] if worse else []
    parts += [f"**No better than a baseline:** {low}."] if low else []
    if uncertain:
        seeds = most_seeds(tasks)
        count = f"{seeds} seed{'s' if seeds > 1 else ''}"
        parts.append(f"Better than a baseline, but not significantly with {count}: {uncertain}.")
    compared = [task.called for task in tasks if task.baselines]
    if not parts and compared:
        where = f" on {listed(compared)}" if len(compared) < len(tasks) else ""
        parts = [f"Every method beats every baseline{where}."]
    return " ".join(parts)


def _at_baselines(task: TaskResults, standing: str) -> list[str]:
    """The methods that have this standing against some baselines, grouped by these baselines."""
    found: dict[str, list[str]] = {}
    for method in task.methods:
        baselines = [baseline_name(name) for name in task.baselines if task.against(method, name) == standing]
        if baselines:
            found.setdefault(listed(baselines), []).append(method_name(method))
    return [
        f"{'all methods' if 1 < len(methods) == len(task.methods) else listed(methods)} on {task.called} ({baselines})"
        for baselines, methods in found.items()
    ]


def run_facts(params: Mapping[str, Any], runs: Mapping[str, RunRecord], parameters: int) -> dict[str, str]:
    """Model, sizes, training time, precision, machine and commit, by name.

    Precision, machine and commit are those of all runs, which may have been computed apart; the number of processes and
    the date are pretraining's.
    """
    first, model = runs["pretrain"], params["model"]
    layers = f"{model['layers']} layer{'' if model['layers'] == 1 else 's'}"
    precisions = each_once(run.precision for run in runs.values())
    shape = f"{layers} of {model['hidden_size']}"
    if given := model.get("checkpoint"):  # its sizes are in force, not those of params.yaml
        start = "from" if model.get("random_seed") is None else "random weights of the sizes of"
        shape = f"{start} {checkpoint_text(given)}"
    facts = {
        "Model": f"{params['family']}, {shape}",
        "Parameters": count_text(parameters), "Tokens seen": count_text(first.tokens),
        "Seeds": str(len(params["finetune"]["seeds"])),
        "Training": duration(sum(run.seconds for run in runs.values())),
        "Precision": f"{precisions}, {first.processes} process{'es' if first.processes > 1 else ''}",
    }  # fmt: skip
    origins = [run.origin for run in runs.values()]
    machines = each_once(machine_text(origin.machine) for origin in origins)
    return facts | {"Machine": machines, "Commit": each_once(map(commit_text, origins)), "Date": first.origin.date}


def summary_sections(
    all_tasks: Sequence[TaskResults], shares: Mapping[str, float], seconds: Mapping[str, float]
) -> list[Section]:
    """The section of results; none if no task has a score.

    `shares` are the percentages of weights that methods train, the largest over tasks; `seconds` their training times,
    means over seeds.
    """
    tasks = [task for task in all_tasks if task.methods]
    if not tasks:
        return []
    seeds = most_seeds(tasks)
    dots = f"Dot: mean of {seeds} seeds, ticks below it: each seed" if seeds > 1 else "Dot: the score"
    grey = " Grey: baselines, which need no language model." if any(task.baselines for task in tasks) else ""
    note = f"{dots}; bar: {reading(tasks)}{grey}"
    ranks = Panels("summary", "", note, [ranked(task) for task in tasks], "rank")
    return [Section("Results", [ranks, summary_table(tasks, shares, seconds)])]


def reading(tasks: Sequence[TaskResults]) -> str:
    """What intervals and marks mean; `tasks` are those with scores."""
    covers = next(iter(tasks[0].details.methods.values())).intervals_of
    best = "Bold: the best method, and those not significantly different from it (≈, paired by example)."
    each = ", the mean over seeds" if most_seeds(tasks) > 1 else ""
    time = f"Time: of fine-tuning alone{each}, summed over the tasks that a method was run on."
    shown = dict.fromkeys(name for task in tasks for name in task.methods)
    trained = "".join(f" {method_name(name)}: {TRAINED[name]}." for name in shown if name in TRAINED)
    several = ""
    if len(tasks) > 1:
        order = "Order of the methods: distance to the best, the mean over the tasks that each was run on."
        several = f" {order} Weights trained: the largest share over these tasks."
    return f"95% interval over {covers}. {best} {time}{several}{trained}"


class RankedScore(NamedTuple):
    """The score of a method or a baseline."""

    name: str  # as readers see it
    score: Score
    method: str | None  # None for a baseline


def _ranked_scores(task: TaskResults) -> list[RankedScore]:
    """All methods, from the best to the worst, then all baselines."""
    methods = [RankedScore(method_name(name), task.score(name), name) for name in task.methods]
    return [*methods, *(RankedScore(baseline_name(name), task.baseline(name), None) for name in task.baselines)]


def _steps(rows: Sequence[RankedScore], seeds: Sequence[float] = ()) -> list[float]:
    """Ticks that span all intervals and the scores of seeds, some of which may lie outside the mean's interval."""
    lowest = min([*(row.score.low for row in rows), *seeds])
    return svg.ticks(lowest, max([*(row.score.high for row in rows), *seeds]), 5)


def ranked(task: TaskResults) -> Panel:
    """Methods and baselines from the best to the worst: a dot, its interval, and the seeds."""
    rows = sorted(_ranked_scores(task), key=lambda row: -task.sign * row.score.value)
    steps = _steps(rows, [value for method in task.methods for value in task.seeds(method)])
    axes = Axes((steps[0], steps[-1]))
    drawn = [svg.upright(axes, step, "axis") for step in steps]
    for i, row in enumerate(rows):
        line = _row(task, axes, row, i * ROW + ROW // 2)
        drawn.append(svg.tag("g", *line, class_=_colour(task, row.method)))
    below = {"y": "100%", "dy": 16, "text_anchor": "middle"}
    drawn += [svg.tag("text", svg.tick_text(step), x=axes.across(step), **below) for step in steps]
    said = "; ".join(f"{row.name} {row.score.said}" for row in rows)
    return Panel(task.title, drawn, f"{task.title}, {task.figure.name}: {said}", ROW * len(rows))


def _row(task: TaskResults, axes: Axes, row: RankedScore, y: int) -> Iterator[Markup]:
    """The line of a method or a baseline, centred at a height in px."""
    name, score, method = row
    if method:
        yield svg.tag("g", svg.mark(task.places[method]), transform=f"translate(-126 {y - 5})")
    yield svg.tag("text", svg.shortened(name), x=-110, y=y, dy=5, class_="name" if method else "grey")
    yield svg.band(axes, score.low, score.high, y)
    seeds = task.seeds(method) if method else []
    each = seeds if len(seeds) > 1 else []
    for value in each:
        yield svg.tag("line", x1=axes.across(value), x2=axes.across(value), y1=y + 6, y2=y + 11, class_="seed")
    yield svg.tag("circle", cx=axes.across(score.value), cy=y, r=3.5, class_="fill" if method else "hollow")
    style = "grey" if not method else "best" if task.is_best(method) else "name"
    yield svg.tag("text", score.text, x="100%", y=y, dx=54, dy=5, text_anchor="end", class_=style)
    if method and task.is_tie(method):
        yield svg.tag("text", "≈", x="100%", y=y, dx=58, dy=5, class_="name")
    tip = f"{name}: {score.said}"
    if each:
        tip += "\nseeds " + ", ".join(figure_text(value, digits_of(task.figure)) for value in each)
    yield svg.tag("rect", x=0, width="100%", y=y - ROW // 2, height=ROW, class_="hit", data_t=tip)


def summary_table(tasks: Sequence[TaskResults], shares: Mapping[str, float], seconds: Mapping[str, float]) -> Table:
    """Methods by how far they are below the best of their tasks, then baselines; `tasks` are those with scores."""
    of_task = ("mean", "95% interval", "sd") if most_seeds(tasks) > 1 else ("score", "95% interval")
    cells = [_columns(task) for task in tasks]

    def row(name: str, method: str | None, absent: str) -> list[str | TableCell]:
        of_tasks = [task.get((name, method), [absent] * len(of_task))[: len(of_task)] for task in cells]
        first: str | TableCell = name if method is None else TableCell(name, tasks[0].places[method])
        trained = "" if method is None else _trained(shares.get(method))
        time = "" if method is None else figure_text(seconds.get(method), 0)
        return [first, trained, *chain(*of_tasks), time]

    methods = dict.fromkeys(method for task in tasks for method in task.methods)
    baselines = dict.fromkeys(name for task in tasks for name in task.baselines)
    rows = [row(method_name(name), name, NOTHING) for name in sorted(methods, key=partial(_behind, judged(tasks)))]
    rows += [row(baseline_name(name), None, "") for name in baselines]
    units = [", %" if task.figure.scale in SHARES else "" for task in tasks]
    above = [(f"{task.title}: {task.figure.name}{unit}", len(of_task)) for task, unit in zip(tasks, units, strict=True)]
    header = ["method", "trained, %", *of_task * len(tasks), "time, s"]
    groups = [("", 1), ("Weights", 1), *above, ("Training", 1)]
    return Table(header, rows, label="Methods and tasks", groups=groups, apart=len(baselines))


def _behind(tasks: Sequence[TaskResults], method: str) -> float:
    """How far a method is below the best, the weighted mean over its tasks."""
    own = [task for task in tasks if method in task.methods]
    return fmean(task.weight * (task.score(task.methods[0]).value - task.score(method).value) for task in own)


def _trained(percent: float | None) -> str:
    """A percentage of weights, with more digits where it is small, and a bound where these are not enough."""
    if percent and percent < 0.001:
        return "<0.001"
    return figure_text(percent, 1 if percent is None or percent >= 1 else 3)


def _columns(task: TaskResults) -> dict[tuple[str, str | None], list[str | TableCell]]:
    """Score, interval and standard deviation over seeds, by name and method (None for a baseline)."""
    rows, found = _ranked_scores(task), dict[tuple[str, str | None], list[str | TableCell]]()
    steps = _steps(rows)
    for name, score, method in rows:
        drawn = svg.strip(Axes((steps[0], steps[-1])), score.low, score.high, score.value)
        value, spread = score.text, ""
        if method is not None:
            value = TableCell(score.text + (" ≈" if task.is_tie(method) else ""), bold=task.is_best(method))
            spread = figure_text(task.std(method), max(2, digits_of(task.figure)))
        interval = TableCell("", small=" – ".join(score.ends), strip=drawn, colour=_colour(task, method))
        found[name, method] = [value, interval, spread]
    return found


def _colour(task: TaskResults, method: str | None) -> str:
    return "mb" if method is None else svg.colour(task.places[method])
