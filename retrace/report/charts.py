"""Line charts of several methods in one plot, as published reports have them."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from retrace.report import svg
from retrace.report.blocks import Panel, Panels, figure_text
from retrace.report.svg import Axes, Plot

HEIGHT = 240  # px


def line_chart(name: str, caption: str, points: Sequence[dict[str, Any]], axes: tuple[str, str]) -> Panels:
    """A line for each `run` through points with `x` and `y`, coloured by `series`; `axes` are what x and y are."""
    series = {label: place for place, label in enumerate(dict.fromkeys(point["series"] for point in points))}
    runs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for point in points:
        runs.setdefault((point["series"], point["run"]), []).append((float(point["x"]), float(point["y"])))
    xs, ys = ([float(point[of]) for point in points] for of in ("x", "y"))
    steps, across = svg.ticks(min(ys), max(ys), 6), svg.ticks(min(xs), max(xs), 8)
    box = Axes((min(xs), max(max(xs), min(xs) + 1)), (steps[0], steps[-1]))
    below = [(x, f"{x:g}") for x in across if box.x[0] <= x <= box.x[1]]
    drawn = [svg.grid(box, below, [(y, svg.tick_text(y)) for y in steps])]
    for (label, run), line in runs.items():
        dots = [svg.dot(box, x, y, radius=2.5, tip=f"{run}\n{axes[0]} {x:g}: {figure_text(y, 4)}") for x, y in line]
        shown = svg.joined([svg.line(box, line), *(dots if len(line) < 50 else [])])
        drawn.append(svg.tag("g", shown, class_=f"m{series[label] % svg.COLOURS}"))
    last = "; ".join(f"{run} ends at {figure_text(line[-1][1], 4)}" for (_, run), line in runs.items())
    plot = Plot(svg.joined(drawn), f"{caption} {last}", HEIGHT, "wide")
    note = f"{caption} Across: {axes[0]}; up: {axes[1]}."
    return Panels(name, "", note, [Panel("", plot)], list(series.items()))


def points_by_epoch(curve: pd.DataFrame, score: str) -> list[dict[str, Any]]:
    """Points for `line_chart`: a line for each method and seed, coloured by method."""
    return [
        {
            "x": row["epoch"],
            "y": float(row[score]),
            "series": row["method"],
            "run": f"{row['method']} {row['seed']}".strip(),
        }
        for row in curve.dropna(subset=[score]).to_dict("records")
    ]
