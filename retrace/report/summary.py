"""Methods and baselines of every task in one look: ranked dots, and a table."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from markupsafe import Markup

from retrace.report import svg
from retrace.report.blocks import NOTHING, Cell, Panel, Panels, Section, Table, figure_text
from retrace.report.names import baseline_name, method_name
from retrace.report.results import Score, Task, most_seeds
from retrace.report.svg import Axes, Plot

ROW = 28  # px


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
    note = f"{dots}; bar: {reading(tasks)} Grey: baselines, which need no language model."
    ranks = [Panel(task.title, ranked(task), value="") for task in tasks]
    return [Section("Results", [Panels("summary", "", note, ranks), summary_table(tasks, shares, seconds)])]


def reading(tasks: Sequence[Task]) -> str:
    """What the intervals and marks of tasks with scores mean."""
    covers = next(iter(tasks[0].details.methods.values())).intervals_of
    best = "Bold: the best; ≈: not told apart from it, by pairs of examples."
    return f"95% interval for the choice of {covers}. {best}"


def ranked(task: Task) -> Plot:
    """Methods and baselines from the best to the worst: a dot, its interval, and the seeds."""
    rows: list[tuple[Score, str | None, str]] = [(task.score(name), name, method_name(name)) for name in task.methods]
    rows += [(task.baseline(name), None, baseline_name(name)) for name in task.details.baselines]
    rows.sort(key=lambda row: -task.sign * row[0].value)
    low, high = min(score.low for score, *_ in rows), max(score.high for score, *_ in rows)
    steps = svg.ticks(max(0.0, low) if task.is_share else low, min(100.0, high) if task.is_share else high, 5)
    axes = Axes((steps[0], steps[-1]))
    drawn = [svg.upright(axes, step, "axis") for step in steps]
    for i, (score, method, name) in enumerate(rows):
        shown = _row(task, axes, score, method, name, i * ROW + ROW // 2)
        drawn.append(svg.tag("g", *shown, class_=_colour(task, method)))
    below = {"y": "100%", "dy": 16, "text_anchor": "middle"}
    drawn += [svg.tag("text", svg.tick_text(step), x=axes.across(step), **below) for step in steps]
    said = "; ".join(f"{name} {score.said}" for score, _, name in rows)
    return Plot(svg.joined(drawn), f"{task.title}, {task.figure}: {said}", ROW * len(rows), "rank")


def _row(task: Task, axes: Axes, score: Score, method: str | None, name: str, y: int) -> Iterator[Markup]:
    """The line of a method, or of a baseline where that is None."""
    if method:
        yield svg.tag("g", svg.mark(task.place(method)), transform=f"translate(-126 {y - 5})")
    yield svg.tag("text", name, x=-110, y=y, dy=5, class_="name" if method else "grey")
    yield svg.tag("line", x1=axes.across(score.low), x2=axes.across(score.high), y1=y, y2=y, class_="band")
    seeds = task.seeds(method) if method else {}
    each = list(seeds.values()) if len(seeds) > 1 else []
    for value in each:
        yield svg.tag("line", x1=axes.across(value), x2=axes.across(value), y1=y + 6, y2=y + 11, class_="seed")
    yield svg.tag("circle", cx=axes.across(score.value), cy=y, r=3.5, class_="fill" if method else "hollow")
    style = "grey" if not method else "best" if task.is_best(method) else "name"
    yield svg.tag("text", figure_text(score.value, 1), x="100%", y=y, dx=40, dy=5, text_anchor="end", class_=style)
    if method and task.is_tie(method):
        yield svg.tag("text", "≈", x="100%", y=y, dx=44, dy=5, class_="name")
    tip = f"{name}: {score.said}" + ("\nseeds " + ", ".join(figure_text(value, 1) for value in each) if each else "")
    yield svg.tag("rect", x=0, width="100%", y=y - ROW // 2, height=ROW, class_="hit", data_t=tip)


def summary_table(tasks: Sequence[Task], shares: Mapping[str, float], seconds: Mapping[str, float]) -> Table:
    """Methods by their mean score over tasks, then baselines; of tasks with scores."""
    methods = list(dict.fromkeys(method for task in tasks for method in task.methods))
    methods.sort(key=lambda name: -sum(task.sign * task.score(name).value for task in tasks if name in task.methods))
    baselines = list(dict.fromkeys(name for task in tasks for name in task.details.baselines))
    columns = ("mean", "95% interval", "sd") if most_seeds(tasks) > 1 else ("score", "95% interval")
    rows: list[list[str | Cell]] = []
    for method in methods:
        cells = [
            _cells(task, method, columns) if method in task.methods else [NOTHING] * len(columns) for task in tasks
        ]
        name = Cell(method_name(method), tasks[0].places[method])
        rows.append([name, figure_text(shares.get(method), 1), *chain(*cells), figure_text(seconds.get(method), 0)])
    for name in baselines:
        cells = [_baseline_cells(task, name, columns) for task in tasks]
        rows.append([baseline_name(name), "", *chain(*cells), ""])
    groups = [("", 1), ("Weights", 1), *((f"{task.title}: {task.figure}{_unit(task)}", len(columns)) for task in tasks)]
    header = ["method", "trained, %", *(column for _ in tasks for column in columns), "time, s"]
    return Table(header, rows, label="Methods and tasks", groups=[*groups, ("Training", 1)], apart=len(baselines))


def _cells(task: Task, method: str, columns: Sequence[str]) -> list[str | Cell]:
    score, tie = task.score(method), " ≈" if task.is_tie(method) else ""
    mean = Cell(figure_text(score.value, 1) + tie, bold=task.is_best(method))
    return [mean, _interval(task, score, method), figure_text(task.std(method), 2)][: len(columns)]


def _baseline_cells(task: Task, name: str, columns: Sequence[str]) -> list[str | Cell]:
    if name not in task.details.baselines:
        return ["" for _ in columns]
    score = task.baseline(name)
    return [figure_text(score.value, 1), _interval(task, score), ""][: len(columns)]


def _interval(task: Task, score: Score, method: str | None = None) -> Cell:
    every = [*map(task.score, task.methods), *map(task.baseline, task.details.baselines)]
    steps = svg.ticks(min(of.low for of in every), max(of.high for of in every), 5)
    ends = f"{figure_text(score.low, 1)} – {figure_text(score.high, 1)}"
    drawn = svg.strip(Axes((steps[0], steps[-1])), score.low, score.high, score.value)
    return Cell("", small=ends, strip=drawn, colour=_colour(task, method))


def _colour(task: Task, method: str | None) -> str:
    return "mb" if method is None else f"m{task.place(method) % svg.COLOURS}"


def _unit(task: Task) -> str:
    return ", %" if task.details.legend[task.headline].scale == "fraction" else ""
