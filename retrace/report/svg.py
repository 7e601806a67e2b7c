"""Plots as SVG: in the page they fill the box that they stand in, as files they have a size of their own.

Marks stand at percentages of the box, so that a plot is as wide as its place and its text stays 12 px. A class m0 to m7
gives a colour, `mark` the shape that goes with it. `data-t` is a tooltip, which the page's script shows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup

STYLE = (Path(__file__).parent / "figures.css").read_text(encoding="utf-8")
COLOURS = 8
SHAPES = (
    Markup('<circle cx="5" cy="5" r="4.5"/>'),
    Markup('<path d="M1 1h8v8H1z"/>'),
    Markup('<path d="M5 0 10 9H0z"/>'),
    Markup('<path d="M5 0 10 5 5 10 0 5z"/>'),
    Markup('<path d="M0 3.5h3.5V0h3v3.5H10v3H6.5V10h-3V6.5H0z"/>'),
)
Form = Literal["small", "list", "wide", "rank"]  # of a plot; the margins in page.css are these
MARGINS: dict[Form, tuple[int, int, int, int]] = {  # px: top, right, bottom, left
    "small": (4, 6, 20, 30), "list": (4, 8, 20, 46), "wide": (12, 12, 24, 44), "rank": (0, 56, 22, 128),
}  # fmt: skip
WIDTHS: dict[Form, int] = {
    "small": 164,
    "list": 164,
    "wide": 760,
    "rank": 430,
}  # px of a panel in a file, margins included
FILE_WIDTH, GAP, HEAD = 900, 20, 24  # px of a file: its width at most, between panels, of a panel's caption


@dataclass(frozen=True)
class Plot:
    """A drawing without its frame, and what it shows, in words and figures."""

    body: Markup
    label: str
    height: int = 104  # px, without margins
    form: Form = "small"


@dataclass(frozen=True)
class Axes:
    """The ends of both axes; what lies beyond is drawn at the end."""

    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)

    def across(self, value: float) -> float:
        """Percent from the left."""
        return _percent(value, self.x)

    def down(self, value: float) -> float:
        """Percent from the top."""
        return 100 - _percent(value, self.y)


def tag(name: str, *children: Markup | str, **attributes: Any) -> Markup:
    """An element; text is escaped, attributes that are None are left out, `class_` is class and `data_t` data-t."""
    shown = "".join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _short(value))
        for key, value in attributes.items() if value is not None
    )  # fmt: skip
    return Markup(f"<{name}{shown}>{joined(children)}</{name}>") if children else Markup(f"<{name}{shown}/>")


def joined(parts: Iterable[Markup | str]) -> Markup:
    """Elements, one after the other."""
    return Markup("").join(parts)


def mark(place: int) -> Markup:
    """The shape of a method, by its place among the methods, 10 px wide."""
    return tag("g", SHAPES[place % len(SHAPES)], class_=f"fill m{place % COLOURS}")


def ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round values from at most `low` to at least `high`: up to about `most` steps of 1, 2, 2.5 or 5."""
    if high - low <= 1e-6 * abs(low):  # equal but for rounding
        high = low + (abs(low) or 1.0)
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * by for by in (1, 2, 2.5, 5, 10, 20) if (high - low) / (power * by) <= most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{number * step:.10g}") for number in range(first, last + 1)]


def tick_text(value: float) -> str:
    """A value beside an axis, with a true minus sign."""
    return f"{value:g}".replace("-", "−")


def line(axes: Axes, points: Sequence[tuple[float, float]], style: str = "stroke") -> Markup:
    """A line, as wide on the screen however much its box is stretched."""
    places = " ".join(f"{_short(axes.across(x))},{_short(axes.down(y))}" for x, y in points)
    drawn = tag("polyline", points=places, class_=style)
    return tag("svg", drawn, viewBox="0 0 100 100", preserveAspectRatio="none", width="100%", height="100%")


def level(axes: Axes, y: float, style: str = "dash") -> Markup:
    """A horizontal line."""
    at = placed(axes.down(y))
    return tag("line", x1=0, x2="100%", y1=at, y2=at, class_=style)


def upright(axes: Axes, x: float, low: float | None = None, high: float | None = None, style: str = "dash") -> Markup:
    """A vertical line, from one value to another or over the whole height."""
    ends = ("100%", "0%") if low is None or high is None else (placed(axes.down(low)), placed(axes.down(high)))
    return tag("line", x1=placed(axes.across(x)), x2=placed(axes.across(x)), y1=ends[0], y2=ends[1], class_=style)


def dot(axes: Axes, x: float, y: float, style: str = "fill", radius: float = 3.5, tip: str | None = None) -> Markup:
    """A circle."""
    return tag("circle", cx=placed(axes.across(x)), cy=placed(axes.down(y)), r=radius, class_=style, data_t=tip)


def text(axes: Axes, x: float, y: float, said: str, anchor: str = "start", style: str | None = None, dy: int = 4,
         dx: int = 0) -> Markup:  # fmt: skip
    """Text beside a place."""
    at = {"x": placed(axes.across(x)), "y": placed(axes.down(y)), "dx": dx, "dy": dy}
    return tag("text", said, **at, text_anchor=anchor, class_=style)


def grid(axes: Axes, across: Sequence[tuple[float, str]], up: Sequence[tuple[float, str]]) -> Markup:
    """Values with their text below the box, and to its left with a line for each."""
    lines = (level(axes, value, "axis") + text(axes, axes.x[0], value, said, "end", dx=-6) for value, said in up)
    below = [
        tag("text", said, x=placed(place), y="100%", dy=16,
            text_anchor="start" if place < 4 else "end" if place > 96 else "middle")
        for place, said in ((axes.across(value), said) for value, said in across)
    ]  # fmt: skip
    return joined([*lines, *below])


def tips(axes: Axes, points: Sequence[tuple[float, str]]) -> Markup:
    """Tooltips over the whole height, each around its value."""
    places = [axes.across(value) for value, _ in points]
    ends = [0.0, *((a + b) / 2 for a, b in pairwise(places)), 100.0]
    return joined(
        tag(
            "rect",
            x=placed(ends[i]),
            y=0,
            width=placed(ends[i + 1] - ends[i]),
            height="100%",
            class_="hit",
            data_t=said,
        )
        for i, (_, said) in enumerate(points)
    )


def strip(axes: Axes, low: float, high: float, value: float) -> Markup:
    """An interval and its value, for a cell of a table."""
    at = placed(axes.across(value))
    band = tag("line", x1=placed(axes.across(low)), x2=placed(axes.across(high)), y1=8, y2=8, class_="band tall")
    return level(axes, 0.5, "axis") + band + tag("line", x1=at, x2=at, y1=2, y2=14, class_="tick")


def picture(
    title: str, panels: Sequence[tuple[str, int | None, str, Plot]], legend: Sequence[tuple[str, int]] = ()
) -> str:
    """A file with plots side by side, each under its name, which goes with a colour and a value beside it.

    `legend` names the lines of a plot that has several, by their colours.
    """
    form = panels[0][3].form
    top, right, bottom, left = MARGINS[form]
    width, height = WIDTHS[form], HEAD + top + max(plot.height for *_, plot in panels) + bottom
    columns = max(1, min(len(panels), (FILE_WIDTH + GAP) // (width + GAP)))
    drawn = []
    for i, (name, place, value, plot) in enumerate(panels):
        x, y = i % columns * (width + GAP), 28 + i // columns * (height + GAP)
        shape = "" if place is None else tag("g", mark(place), transform=f"translate({x} {y + 2})")
        head = tag("text", name, x=x + (0 if place is None else 16), y=y + 12, class_="ink")
        beside = tag("text", value, x=x + width - right, y=y + 12, text_anchor="end", class_="ink")
        box = tag("svg", plot.body, x=x + left, y=y + HEAD + top, width=width - left - right, height=plot.height)
        drawn.append(
            joined([shape, head, beside, tag("g", box, class_=None if place is None else f"m{place % COLOURS}")])
        )
    size = {"width": columns * (width + GAP) - GAP, "height": 28 - (-len(panels) // columns) * (height + GAP)}
    frame = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria_label": title, **size}
    head = tag("text", title, x=0, y=14, class_="ink")
    for i, (name, place) in enumerate(legend):
        x = FILE_WIDTH * i // max(6, len(legend))
        drawn.append(tag("g", mark(place), tag("text", name, x=16, y=9), transform=f"translate({x} 30)"))
    return str(
        tag("svg", tag("style", Markup(STYLE)), head, *drawn, **frame, viewBox="0 0 {width} {height}".format(**size))
    )


def _percent(value: float, ends: tuple[float, float]) -> float:
    return min(100.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0]) * 100))


def placed(percent: float) -> str:
    """A place in the box."""
    return f"{_short(percent)}%"


def _short(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
