"""Line charts as SVG, drawn by Vega-Lite."""

from collections.abc import Sequence
from typing import Any

import vl_convert as vlc

from retrace.report.blocks import Figure

VERSION = "5.20"  # of Vega-Lite
WIDTH, HEIGHT = 560, 240  # pixels
MOST_TICKS = 12  # on the x axis, about


def line_chart(
    name: str,
    caption: str,
    points: Sequence[dict[str, Any]],
    axes: tuple[str, str],
    levels: dict[str, float] | None = None,
) -> Figure:
    """A line for each `series` through points with `x` and `y`; `levels` are named horizontal lines.

    Ticks on the x axis are values of points, so that no half epochs are shown.
    """
    ticks = sorted({point["x"] for point in points})
    color = {"field": "series", "type": "nominal", "title": None, "scale": {"scheme": "tableau10"}}
    axis = {"values": ticks[:: 1 + len(ticks) // MOST_TICKS], "format": "~g", "grid": False}
    lines = {
        "data": {"values": list(points)},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": axes[0], "axis": axis},
            "y": {"field": "y", "type": "quantitative", "title": axes[1], "scale": {"zero": False}},
            "color": color,
            "detail": {"field": "run", "type": "nominal"},
        },
    }
    rules = {
        "data": {"values": [{"series": series, "y": y} for series, y in (levels or {}).items()]},
        "mark": {"type": "rule", "strokeDash": [4, 3]},
        "encoding": {"y": {"field": "y", "type": "quantitative"}, "color": color},
    }
    layer = [lines, rules] if levels else [lines]
    spec = {"width": WIDTH, "height": HEIGHT, "layer": layer, "config": {"font": "sans-serif"}}
    return Figure(name, vlc.vegalite_to_svg(spec, vl_version=VERSION), caption)
