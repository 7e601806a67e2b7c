"""Plots as SVG that stretch to the width of their box.

Marks are placed in percent of the box, so a plot is as wide as its container while text stays 12 px. A class m0 to m7
gives a colour, `mark` the shape that goes with it. `data-t` is a tooltip, which the page's script shows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from markupsafe import Markup

STYLE = (Path(__file__).parent / "figures.css").read_text(encoding="utf-8")
COLOURS = 8
LONGEST = 14  # characters of a method's name that have room beside a plot
SHAPES = (
    Markup('<circle cx="5" cy="5" r="4.5"/>'),
    Markup('<path d="M1 1h8v8H1z"/>'),
    Markup('<path d="M5 0 10 9H0z"/>'),
    Markup('<path d="M5 0 10 5 5 10 0 5z"/>'),
    Markup('<path d="M0 3.5h3.5V0h3v3.5H10v3H6.5V10h-3V6.5H0z"/>'),
)


class Percent(float):
    """A position in the box, or a part of its width or height."""


@dataclass(frozen=True)
class Axes:
    """The ends of both axes; values beyond them are drawn at the end."""

    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)

    def across(self, value: float) -> Percent:
        """From the left."""
        return _between(value, self.x)

    def down(self, value: float) -> Percent:
        """From the top."""
        return Percent(100 - _between(value, self.y))


def tag(name: str, *children: Markup | str, **attributes: Any) -> Markup:
    """An element; text is escaped, attributes that are None are omitted, `class_` is class and `data_t` data-t."""
    shown = "".join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _short(value))
        for key, value in attributes.items() if value is not None
    )  # fmt: skip
    return Markup(f"<{name}{shown}>{joined(children)}</{name}>") if children else Markup(f"<{name}{shown}/>")


def joined(parts: Iterable[Markup | str]) -> Markup:
    """The elements in one string."""
    return Markup("").join(parts)


def colour(place: int) -> str:
    """The class that colours a method, by its place among the methods."""
    return f"m{place % COLOURS}"


def mark(place: int) -> Markup:
    """The shape of a method, by its place among the methods, 10 px wide."""
    return tag("g", SHAPES[place % len(SHAPES)], class_=f"fill {colour(place)}")


def ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round values that span `low` to `high` in up to about `most` steps of 1, 2, 2.5 or 5 times a power of ten."""
    if high - low <= 1e-6 * abs(low):  # equal but for rounding
        high = low + (abs(low) or 1.0)
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * by for by in (1, 2, 2.5, 5, 10, 20) if (high - low) / (power * by) <= most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{number * step:.10g}") for number in range(first, last + 1)]


def tick_text(value: float) -> str:
    """A tick's label, with a true minus sign."""
    return f"{value:g}".replace("-", "−")


def shortened(name: str, most: int = LONGEST) -> str:
    """The name, without its middle if it has more than `most` characters: names differ at either end."""
    if len(name) <= most:
        return name
    behind = (most - 1) // 2
    return f"{name[: most - 1 - behind]}…{name[-behind:]}"


def line(axes: Axes, points: Sequence[tuple[float, float]], style: str = "stroke") -> Markup:
    """A polyline, whose stroke keeps its width however much the box is stretched."""
    places = " ".join(f"{_short(float(axes.across(x)))},{_short(float(axes.down(y)))}" for x, y in points)
    drawn = tag("polyline", points=places, class_=style)
    return tag("svg", drawn, viewBox="0 0 100 100", preserveAspectRatio="none", width="100%", height="100%")


def level(axes: Axes, y: float, style: str = "dash") -> Markup:
    """A horizontal line."""
    return tag("line", x1=0, x2="100%", y1=axes.down(y), y2=axes.down(y), class_=style)


def upright(axes: Axes, x: float, style: str = "dash") -> Markup:
    """A vertical line."""
    return tag("line", x1=axes.across(x), x2=axes.across(x), y1="100%", y2="0%", class_=style)


def band(axes: Axes, low: float, high: float, y: float, style: str = "band") -> Markup:
    """A horizontal interval; `y` in px or as a part of the box."""
    return tag("line", x1=axes.across(low), x2=axes.across(high), y1=y, y2=y, class_=style)


def dot(axes: Axes, x: float, y: float, style: str = "fill", radius: float = 3.5, tip: str | None = None) -> Markup:
    """A circle."""
    return tag("circle", cx=axes.across(x), cy=axes.down(y), r=radius, class_=style, data_t=tip)


def text(axes: Axes, x: float, y: float, said: str, anchor: str = "start", style: str | None = None, dy: int = 4,
         dx: int = 0) -> Markup:  # fmt: skip
    """Text at a point, shifted by `dx` and `dy` px."""
    return tag("text", said, x=axes.across(x), y=axes.down(y), dx=dx, dy=dy, text_anchor=anchor, class_=style)


def grid(axes: Axes, across: Sequence[tuple[float, str]], up: Sequence[tuple[float, str]]) -> Markup:
    """Labels `across` below the box, and `up` on its left, each of these with a line."""
    drawn = [level(axes, value, "axis") + text(axes, axes.x[0], value, said, "end", dx=-6) for value, said in up]
    for value, said in across:
        place = axes.across(value)
        anchor = "start" if place < 4 else "end" if place > 96 else "middle"
        drawn.append(tag("text", said, x=place, y="100%", dy=16, text_anchor=anchor))
    return joined(drawn)


def tips(axes: Axes, points: Sequence[tuple[float, str]]) -> Markup:
    """Tooltips as high as the box, each centred on its value."""
    middles = [(a + b) / 2 for a, b in pairwise(axes.across(value) for value, _ in points)]
    places = pairwise([0.0, *middles, 100.0])  # one too many where there are no points
    return joined(
        tag("rect", x=Percent(left), y=0, width=Percent(right - left), height="100%", class_="hit", data_t=said)
        for (_, said), (left, right) in zip(points, places, strict=False)
    )


def strip(axes: Axes, low: float, high: float, value: float) -> Markup:
    """An interval and its value, for a table cell."""
    at = axes.across(value)
    bar = band(axes, low, high, 8, "band tall")
    return level(axes, 0.5, "axis") + bar + tag("line", x1=at, x2=at, y1=2, y2=14, class_="tick")


def _between(value: float, ends: tuple[float, float]) -> Percent:
    return Percent(min(100.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0]) * 100)))


def _short(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    unit = "%" if isinstance(value, Percent) else ""
    return f"{value:.2f}".rstrip("0").rstrip(".") + unit
