"""Methods and baselines of every task in one look: ranked dots, and a table."""

from collections.abc import Mapping, Sequence

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
    rows.sort(key=lambda row: -row[0].value)
    low, high = min(score.low for score, *_ in rows), max(score.high for score, *_ in rows)
    steps = svg.ticks(max(0.0, low) if task.is_share else low, min(100.0, high) if task.is_share else high, 5)
    axes, height = Axes((steps[0], steps[-1]), (0.0, 1.0)), ROW * len(rows)
    drawn = [svg.upright(axes, step, style="axis") for step in steps]
    for i, (score, method, name) in enumerate(rows):
        drawn.append(
            svg.tag("g", *_row(task, axes, score, method, name, i * ROW + ROW // 2), class_=_colour(task, method))
        )
    for step in steps:
        drawn.append(
            svg.tag("text", svg.tick_text(step), x=f"{axes.across(step):.2f}%", y="100%", dy=16, text_anchor="middle")
        )
    said = "; ".join(f"{name} {_range(score)}" for score, _, name in rows)
    return Plot(svg.joined(drawn), f"{task.title}, {task.figure}: {said}", height, "rank")


def _row(task: Task, axes: Axes, score: Score, method: str | None, name: str, y: int) -> list[Markup]:
    low, at, high = (f"{axes.across(value):.2f}%" for value in (score.low, score.value, score.high))
    shape = [] if method is None else [svg.tag("g", svg.mark(task.place(method)), transform=f"translate(-126 {y - 5})")]
    label = svg.tag("text", name, x=-110, y=y, dy=5, class_="name" if method else "grey")
    band = svg.tag("line", x1=low, x2=high, y1=y, y2=y, class_="band")
    seeds = task.seeds(method) if method else {}
    each = [f"{axes.across(value):.2f}%" for value in seeds.values()] if len(seeds) > 1 else []
    below = [svg.tag("line", x1=x, x2=x, y1=y + 6, y2=y + 11, class_="seed") for x in each]
    centre = svg.tag("circle", cx=at, cy=y, r=3.5, class_="fill" if method else "hollow")
    tie, best = (task.is_tie(method), method == task.methods[0]) if method else (False, False)
    style = "best" if tie or best else "name" if method else "grey"
    value = svg.tag("text", figure_text(score.value, 1), x="100%", y=y, dx=40, dy=5, text_anchor="end", class_=style)
    sign = [svg.tag("text", "≈", x="100%", y=y, dx=44, dy=5, class_="name")] if tie else []
    tip = f"{name}: {_range(score)}"
    if each:
        tip += "\nseeds " + ", ".join(figure_text(value, 1) for value in seeds.values())
    over = svg.tag("rect", x=0, width="100%", y=y - ROW // 2, height=ROW, class_="hit", data_t=tip)
    return [*shape, label, band, *below, centre, value, *sign, over]


def summary_table(tasks: Sequence[Task], shares: Mapping[str, float], seconds: Mapping[str, float]) -> Table:
    """Methods by their mean score over tasks, then baselines; of tasks with scores."""
    methods = list(dict.fromkeys(method for task in tasks for method in task.methods))
    methods.sort(key=lambda name: -sum(task.score(name).value for task in tasks if name in task.methods))
    baselines = list(dict.fromkeys(name for task in tasks for name in task.details.baselines))
    columns = ("mean", "95% interval", "sd") if most_seeds(tasks) > 1 else ("score", "95% interval")
    rows: list[list[str | Cell]] = []
    for method in methods:
        row: list[str | Cell] = [Cell(method_name(method), tasks[0].places[method]), _number(shares.get(method))]
        for task in tasks:
            row += _cells(task, method, columns) if method in task.methods else [NOTHING] * len(columns)
        rows.append([*row, _number(seconds.get(method), 0)])
    for name in baselines:
        row = [baseline_name(name), ""]
        for task in tasks:
            score = task.baseline(name) if name in task.details.baselines else None
            found = [figure_text(score.value, 1), _interval(task, score, "mb")] if score else ["", ""]
            row += [*found, *[""] * (len(columns) - 2)]
        rows.append([*row, ""])
    groups = [("", 1), ("Weights", 1), *((f"{task.title}: {task.figure}{_unit(task)}", len(columns)) for task in tasks)]
    header = ["method", "trained, %", *(column for _ in tasks for column in columns), "time, s"]
    return Table(header, rows, label="Methods and tasks", groups=[*groups, ("Training", 1)], apart=len(baselines))


def _cells(task: Task, method: str, columns: Sequence[str]) -> list[str | Cell]:
    score, tie = task.score(method), task.is_tie(method)
    mean = Cell(figure_text(score.value, 1) + (" ≈" if tie else ""), bold=tie or method == task.methods[0])
    found = [mean, _interval(task, score, f"m{task.place(method) % svg.COLOURS}")]
    return [*found, _number(task.std(method), 2)] if "sd" in columns else [*found]


def _interval(task: Task, score: Score, colour: str) -> Cell:
    lows = [task.score(name).low for name in task.methods] + [
        task.baseline(name).low for name in task.details.baselines
    ]
    highs = [task.score(name).high for name in task.methods] + [
        task.baseline(name).high for name in task.details.baselines
    ]
    steps = svg.ticks(min(lows), max(highs), 5)
    ends = f"{figure_text(score.low, 1)} – {figure_text(score.high, 1)}"
    drawn = svg.strip(Axes((steps[0], steps[-1])), score.low, score.high, score.value)
    return Cell("", small=ends, strip=drawn, colour=colour)


def _colour(task: Task, method: str | None) -> str:
    return "mb" if method is None else f"m{task.place(method) % svg.COLOURS}"


def _range(score: Score) -> str:
    return f"{figure_text(score.value, 1)} (95% interval {figure_text(score.low, 1)} to {figure_text(score.high, 1)})"


def _number(value: float | None, digits: int = 1) -> str:
    return figure_text(value, digits)


def _unit(task: Task) -> str:
    return ", %" if task.details.legend[task.headline].scale == "fraction" else ""
