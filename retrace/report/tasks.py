"""A task's section: rows of small plots, and below them its tables in folds.

A row has a plot for each method, from the best to the worst, all on the same axes.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from markupsafe import Markup

from retrace.core.paths import on_test, task_and_part
from retrace.evaluation.records import AnswerBreakdown, ClassBreakdown
from retrace.report import svg
from retrace.report.blocks import NOTHING, Form, Panel, Panels, Section, figure_text
from retrace.report.folds import task_folds
from retrace.report.names import (
    baseline_name,
    capital,
    digits_of,
    listed,
    method_name,
    never_answers,
    shown,
    shown_factor,
)
from retrace.report.results import Curve, Score, TaskResults, curve_of, most_seeds, thinned
from retrace.report.svg import Axes, Percent

T = TypeVar("T")
Drawn = tuple[Sequence[Markup], str]  # what a plot shows, and the same in words
Draw = Callable[[str], Drawn]  # by method

BEST = "Scores on the validation set, which also chose the epoch: the one with the lowest loss on it was kept."
LAST = "Scores on the validation set, which did not choose the epoch: the last one was kept."
TESTED = (
    "Scores on the test set, which played no part in choosing the epoch. It was scored twice: before training and with "
    "the weights that were kept."
)
MOST_TIPS, MOST_POINTS = 40, 60  # in a plot
PRINTED = 6  # classes up to which every cell of a confusion matrix has its percentage
GROUPS = {  # title, and how the examples are grouped
    "length": ("By length", "by words of the {text}, in groups of {sizes} {noun}"),
    "answer": ("Answerable or not", "where the passage has an answer, and where only “no answer” is right. "
               "A model that never answers scores 0 and 100"),
    "question word": ("By question word", "by question word, such as who or when"),
    "overlap": ("Without overlap", "on {noun} that are not also in the training data"),
}  # fmt: skip
SHORT = {"has an answer": "answer", "has none": "none", "not in the training data": "new"}  # beside a plot


def task_section(task: TaskResults, names: Sequence[str]) -> Section:
    """The section of a task; `names` are those of all tasks, and may include the task's test set."""
    split = "test" if task_and_part(task.name)[1] == "test" else "validation"
    note = f"{task.name}: {task.examples:,} {split} {task.noun}. Methods are ordered from best to worst."
    follows = " Scores on the test set follow." if on_test(task.name) in names else ""
    chosen = TESTED if split == "test" else f"{LAST if task.keeps_last else BEST}{follows}"
    return Section(task.title, [note, chosen, *task_panels(task), *task_folds(task)])


def task_panels(task: TaskResults) -> list[Panels]:
    """All rows of plots that the task's results allow."""
    if not task.methods:
        return []
    found = {method: task.details.methods[method].breakdown for method in task.methods}
    classes = {method: breakdown for method, breakdown in found.items() if isinstance(breakdown, ClassBreakdown)}
    answers = {method: breakdown for method, breakdown in found.items() if isinstance(breakdown, AnswerBreakdown)}
    kinds = dict.fromkeys(kind for details in task.details.methods.values() for kind in details.groups)
    return [
        *learning(task, task.headline),
        *([confusion(task, classes), calibration(task, classes)] if classes else thresholds(task, answers)),
        *(row for kind in sorted(kinds, key=lambda kind: kind == "length") for row in groups(task, kind)),
        *losses(task),
    ]


def _row(
    task: TaskResults, name: str, title: str, note: str, draw: Draw, value: Callable[[str], str] = lambda _: "",
    height: int = 104, form: Form = "small",
) -> Panels:  # fmt: skip
    """A plot for each method, with what `value` says beside its name."""
    panels = []
    for method in task.methods:
        (drawn, said), shown_as = draw(method), method_name(method)
        panels.append(Panel(shown_as, drawn, f"{shown_as}: {said}", height, task.places[method], value(method)))
    return Panels(f"{task.name}-{name}", title, note, panels, form)


def learning(task: TaskResults, key: str, title: str = "Learning curves") -> list[Panels]:
    """A figure by epoch, next to the best baseline if it is the headline; nothing if the task has no such curve."""
    figure, curves = task.curve_legend.get(key), task.epochs(key)
    if figure is None or curves.empty:
        return []
    curves, digits = shown_factor(figure) * curves, digits_of(figure)
    baselines = task.baselines if key == task.headline else []
    best = max(baselines, key=lambda name: task.sign * task.baseline(name).value, default=None)
    also = [] if best is None else [task.baseline(best).value]
    axes, grid = epoch_axes(curves, also)
    levels = [svg.level(axes, value) for value in also]

    def draw(method: str) -> Drawn:
        seeds, mean = curves[method], curve_of(curves[method].mean(axis=1, skipna=False))  # where all seeds have one
        thin = [svg.line(axes, curve_of(seeds[seed]), "thin") for seed in seeds] if len(seeds.columns) > 1 else []
        return _mean_line(axes, [grid, *levels, *thin], mean, figure.name, digits)

    def kept(method: str) -> str:
        value = task.details.methods[method].figures.get(key)
        return "" if value is None else shown(figure, value)

    split = "" if key == "training_loss" else " on validation"
    seeds = _of_seeds(task, "; thick: mean of the seeds, thin: each seed")
    note = f"{capital(figure.name)}{split} by epoch{seeds}."
    if best is not None:
        note += f" Dashed: the best baseline ({baseline_name(best)}, {task.baseline(best).text})."
    return [_row(task, key, title, note, draw, kept)]


def confusion(task: TaskResults, found: Mapping[str, ClassBreakdown]) -> Panels:
    """The confusion matrices."""
    names = list(next(iter(found.values())).classes)  # the task's, which all methods share
    short, digits = _short(names), 1 if most_seeds([task]) > 1 else 0

    def draw(method: str) -> Drawn:
        counts = np.array(found[method].confusion)
        shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
        drawn = [*_matrix(names, counts, shares, digits), *_class_labels([short[name] for name in names])]
        if len(names) > PRINTED:
            right = [f"{name} {100 * shares[i, i]:.0f}% right" for i, name in enumerate(names) if counts[i].any()]
            return drawn, "; ".join(right)
        return drawn, "; ".join(
            f"true {names[i]}, predicted {names[j]}: {figure_text(float(counts[i, j]), digits)}"
            for i, j in np.ndindex(*counts.shape)
        )

    shade = "Bold: % of the row" if len(names) <= PRINTED else "The darker, the larger the share of the row"
    note = f"Rows: true class; columns: predicted class. {shade}{_of_seeds(task, '; means of the seeds')}."
    numbers = {name: number for name, number in short.items() if number.isdecimal() and number != name}
    if numbers:  # words between numbers and names keep them apart also where a name is written from right to left
        note += f" {capital('; '.join(f'class {number}: {name}' for name, number in numbers.items()))}."
    return _row(task, "confusion", "Confusion", note, draw, height=max(96, 24 * len(names)))


def _matrix(names: Sequence[str], counts: np.ndarray, shares: np.ndarray, digits: int) -> Iterator[Markup]:
    """The cells of a confusion matrix, (C, C); with many classes only those that are not empty."""
    size = 100 / len(names)
    for (i, j), share in np.ndenumerate(shares):
        if len(names) > PRINTED and not share:
            continue  # a task may have 150 classes, and so 22,500 cells
        count = figure_text(float(counts[i, j]), digits)
        tip = f"true {names[i]}\npredicted {names[j]}\n{count} of {counts[i].sum():,.0f}"
        box = {"x": Percent(j * size), "y": Percent(i * size), "width": Percent(size), "height": Percent(size)}
        yield svg.tag("rect", **box, fill_opacity=f"{0.04 + 0.4 * share:.2f}", class_="cell", data_t=tip)
        at = {"x": Percent((j + 0.5) * size), "y": Percent((i + 0.5) * size), "text_anchor": "middle"}
        if len(names) <= PRINTED:
            said = f"{100 * share:.0f}" if counts[i].any() else NOTHING  # of a class without examples
            yield svg.tag("text", said, **at, dy=-1 if size >= 33 else 4, class_="ink")
        if size >= 33:
            yield svg.tag("text", count, **at, dy=13, class_="count")


def _class_labels(labels: Sequence[str]) -> Iterator[Markup]:
    """The classes beside the rows and, if they are few, below the columns."""
    for i, label in enumerate(labels):
        at = Percent((i + 0.5) * 100 / len(labels))
        yield svg.tag("text", label, x=-6, y=at, dy=4, text_anchor="end")
        if len(labels) <= 4:
            yield svg.tag("text", label, x=at, y="100%", dy=16, text_anchor="middle")


def _short(names: Sequence[str]) -> dict[str, str]:
    """Names of up to four characters for the axes; numbers where cut names would be alike."""
    cut = {name: name if len(name) <= 4 else f"{name[:3]}." for name in names}
    return cut if len(set(cut.values())) == len(names) else {name: str(i) for i, name in enumerate(names)}


def calibration(task: TaskResults, found: Mapping[str, ClassBreakdown]) -> Panels:
    """Reliability diagrams: accuracy by confidence."""
    low = min([0.5, *(sure for breakdown in found.values() for sure in breakdown.reliability.get("confidence", ()))])
    axes, digits = Axes((100 * low, 100), (0, 100)), 1 if most_seeds([task]) > 1 else 0

    def draw(method: str) -> Drawn:
        columns = (found[method].reliability.get(name, ()) for name in ("confidence", "accuracy", "examples"))
        bins = list(zip(*columns, strict=True))
        total = sum(count for *_, count in bins) or 1
        dots = [
            svg.dot(axes, 100 * sure, 100 * right, "pale", round(2 + 7 * (count / total) ** 0.5, 1),
                    f"confidence {100 * sure:.0f}%, accuracy {100 * right:.0f}%\n"
                    f"{figure_text(count, digits)} {task.noun}")
            for sure, right, count in bins
        ]  # fmt: skip
        frame = svg.grid(axes, [(v, f"{v:.0f}") for v in axes.x], [(v, f"{v}") for v in (0, 50, 100)])
        drawn = [frame, svg.line(axes, [(100 * low, 100 * low), (100, 100)], "dash"), *dots]
        said = ", ".join(f"confidence {100 * sure:.0f}% accuracy {100 * right:.0f}%" for sure, right, _ in bins)
        return drawn, said

    def error(method: str) -> str:
        value = task.details.methods[method].figures.get("expected_calibration_error")
        return "" if value is None else figure_text(100 * value, 1)

    note = (
        "Across: confidence, %; up: accuracy at that confidence, %. Dashed: perfect calibration; below it the method "
        "is overconfident. Larger dots: more examples"
    )
    note += _of_seeds(task, ", of all seeds together")
    if any(map(error, task.methods)):
        note += f"; the figure is the expected calibration error, in points{_of_seeds(task, ', the mean over seeds')}"
    return _row(task, "calibration", "Calibration", f"{note}.", draw, error)


def thresholds(task: TaskResults, found: Mapping[str, AnswerBreakdown]) -> list[Panels]:
    """The headline by the threshold for abstaining; none if a method never abstains."""
    columns = {method: breakdown.threshold_curve for method, breakdown in found.items()}
    if not all(task.headline in points for points in columns.values()):
        return []
    curves = {
        method: list(zip(points["threshold"], points[task.headline], strict=True)) for method, points in columns.items()
    }
    best = {method: _best_point(task, method, curve) for method, curve in curves.items()}
    curves = {method: sorted({*curve, best[method]}) for method, curve in curves.items()}
    ends = np.quantile([x for curve in curves.values() for x, _ in curve], (0.05, 0.95))
    at_best = [best[method][0] for method, curve in curves.items() if best[method] != curve[0]]
    low = min(-1.0, math.floor(min([ends[0], *at_best])))
    high = max(1.0, math.ceil(max([ends[1], *at_best])))
    steps = svg.ticks(0, max(y for _, y in best.values()))
    axes = Axes((low, high), (steps[0], steps[-1]))
    # An end near 0 has no label, as it would overlap the label of 0.
    across = [(v, figure_text(v, 0)) for v in (low, 0, high) if not v or abs(v) > (high - low) / 6]

    def draw(method: str) -> Drawn:
        inside = [(x, y) for x, y in curves[method] if low <= x <= high] or curves[method]
        texts = [(x, f"threshold {figure_text(x, 1)}: {figure_text(y, 1)}") for x, y in _some(inside, MOST_TIPS)]
        drawn = [svg.grid(axes, across, _every_other(steps)), svg.upright(axes, 0), svg.line(axes, inside)]
        drawn += [svg.dot(axes, *best[method], "hollow", 4), svg.tips(axes, texts)]
        x, y = (figure_text(at, 1) for at in best[method])
        where = "without any answer" if best[method][0] == curves[method][0][0] else f"at threshold {x}"
        return drawn, f"at best {y} {where}"

    note = (
        f"{capital(task.figure.name)} by the threshold: the method abstains where the score of “no answer” is above "
        "that of its best span by more than the threshold. Dashed: 0, the threshold used. Ring, and number beside the "
        "name: the best score, which is optimistic, as its threshold was chosen on these same questions"
    )
    note += _of_seeds(task, "; one of these thresholds for all seeds; under “Every score” each seed has its own") + "."
    return [_row(task, "threshold", "When to answer", note, draw, lambda method: figure_text(best[method][1], 1))]


def _best_point(task: TaskResults, method: str, curve: Curve) -> tuple[float, float]:
    """The best threshold and its score; with one seed those under “Every score”, which may lie between the points."""
    details, name = task.details.methods[method], f"best_{task.headline}"
    if len(details.seeds) == 1 and name in details.figures:
        at = curve[0][0] if never_answers(details.figures, name) else details.figures[f"{name}_thresh"]
        return at, details.figures[name]
    return max(curve, key=lambda point: point[1])


def groups(task: TaskResults, kind: str) -> list[Panels]:
    """The headline by groups of examples, with intervals; a single group is shown next to all examples."""
    found = {method: _by_group(task, method, kind) for method in task.methods}
    names = list(dict.fromkeys(name for by_group in found.values() for name in by_group))
    if not names:
        return []
    sizes = {name: count for by_group in found.values() for name, (count, _) in by_group.items()}
    title, note = _group_text(task, kind, sizes)
    if len(names) == 1:
        names = ["all", *names]
        found = {method: {"all": (task.examples, task.score(method)), **by_group} for method, by_group in found.items()}
    scores = [score for by_group in found.values() for _, score in by_group.values()]
    steps = svg.ticks(min(score.low for score in scores), max(score.high for score in scores))
    axes = Axes((steps[0], steps[-1]), (len(names) - 0.5, -0.5))

    def draw(method: str) -> Drawn:
        drawn = [svg.upright(axes, step, "axis") for step in steps]
        drawn += [
            svg.text(axes, axes.x[0], i, SHORT.get(name, name.partition(" words")[0]), "end", dx=-6)
            for i, name in enumerate(names)
        ]
        drawn.append(svg.grid(axes, [(step, svg.tick_text(step)) for step in axes.x], []))
        for name, (count, score) in found[method].items():
            i = names.index(name)
            row = {"y": axes.down(i - 0.5), "height": Percent(100 / len(names))}
            tip = f"{name}: {score.said}\n{count:,} {task.noun}"
            drawn += [svg.band(axes, score.low, score.high, axes.down(i)), svg.dot(axes, score.value, i, radius=3),
                      svg.tag("rect", x=0, width="100%", **row, class_="hit", data_t=tip)]  # fmt: skip
        said = ", ".join(f"{name} {score.said}" for name, (_, score) in found[method].items())
        return drawn, said

    return [_row(task, kind.replace(" ", "-"), title, note, draw, height=max(48, 18 * len(names)), form="list")]


def _by_group(task: TaskResults, method: str, kind: str) -> dict[str, tuple[int, Score]]:
    """The number of examples and the score of each group that is not all examples and has a score."""
    return {
        name: (group.examples, task.score_of(group))
        for name, group in task.details.methods[method].groups.get(kind, {}).items()
        if group.examples < task.examples and task.headline in group.figures
    }


def _group_text(task: TaskResults, kind: str, sizes: Mapping[str, int]) -> tuple[str, str]:
    """The title and the note; `sizes` has the number of examples of each group."""
    title, what = GROUPS.get(kind, (f"By {kind}", f"by {kind}"))
    text = next(iter(sizes)).partition(" words of ")[2] or "text"  # whose words are counted
    what = what.format(text=text, sizes=listed([f"{count:,}" for count in sizes.values()]), noun=task.noun)
    return title, f"{capital(task.figure.name)} {what}. Bars: 95% intervals."


def losses(task: TaskResults) -> list[Panels]:
    """Training loss by update, and validation loss by epoch."""
    valid = task.epochs("validation_loss")
    if valid.empty:
        return []
    train = {method: _by_epoch(task, method, valid[method]) for method in task.methods}
    axes, grid = epoch_axes(valid, also=[0.0, *(y for curve in train.values() for _, y in curve)])

    def draw(method: str) -> Drawn:
        mean, thin = curve_of(valid[method].mean(axis=1)), svg.line(axes, thinned(train[method], MOST_POINTS), "thin")
        return _mean_line(axes, [grid, thin], mean, "validation loss", 3, "validation ")

    trained = task.curve_legend["training_loss"].name
    note = (
        f"In nats{_of_seeds(task, '; means of the seeds')}. Thin: {trained}, by update; thick: validation, by epoch. "
        "A widening gap suggests overfitting."
    )
    return [_row(task, "loss", "Loss", note, draw)]


def epoch_axes(curves: pd.DataFrame, also: Sequence[float] = ()) -> tuple[Axes, Markup]:
    """Axes that span all curves by epoch and other values, and their grid."""
    values = [*curves.min(), *curves.max(), *also]
    steps = svg.ticks(np.nanmin(values), np.nanmax(values))
    axes = Axes((0, max(1.0, *curves.index)), (steps[0], steps[-1]))
    return axes, svg.grid(axes, [(0, "0"), (axes.x[1], f"epoch {axes.x[1]:g}")], _every_other(steps))


def _every_other(steps: Sequence[float]) -> list[tuple[float, str]]:
    return [(value, svg.tick_text(value)) for value in _some(steps, 5)]


def _some(values: Sequence[T], most: int) -> Sequence[T]:
    """At most this many of them, evenly spaced."""
    return values[:: 1 + (len(values) - 1) // most]


def _mean_line(axes: Axes, behind: Sequence[Markup], mean: Curve, name: str, digits: int, before: str = "") -> Drawn:
    """A figure's mean over seeds in front of the rest; the tooltip of an epoch has the words `before` its figure."""
    texts = [figure_text(y, digits) for _, y in mean]
    tips = [(x, f"epoch {x:g}: {before}{text}") for (x, _), text in zip(mean, texts, strict=True)]
    dots = [svg.dot(axes, x, y, radius=2.5) for x, y in mean]  # a single epoch has no line
    return [*behind, svg.line(axes, mean), *dots, svg.tips(axes, tips)], f"{name} by epoch, {', '.join(texts)}"


def _by_epoch(task: TaskResults, method: str, valid: Any) -> Curve:
    """The mean training loss over seeds of each update, placed by epoch; the index of `valid` has the epochs."""
    losses = pd.DataFrame({seed: dict(curve) for (name, seed), curve in task.updates.items() if name == method})
    points, epochs = curve_of(losses.mean(axis=1).sort_index()), valid.dropna(how="all").index.max()
    return [(x * epochs / points[-1][0], y) for x, y in points]


def _of_seeds(task: TaskResults, text: str) -> str:
    return text if most_seeds([task]) > 1 else ""
