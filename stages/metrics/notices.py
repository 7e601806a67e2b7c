"""What looks wrong about published figures, by the rules that Retrace's own are held to."""

from collections.abc import Mapping, Sequence

from stages.metrics.health import figure_flags
from stages.metrics.scales import SHARES, factor
from stages.metrics.verdicts import Compared

SCORED = ("score", "before", "epoch")
CLASSES: dict[str, str] = dict.fromkeys(("accuracy", "precision", "recall", "f1"), "fraction")
ANSWERS: dict[str, str] = dict.fromkeys(("exact", "f1"), "percentage")


def notices(compared: Mapping[str, Sequence[Compared]]) -> list[str]:
    """One line a flag: the table, of what the figures are, the flag and its evidence.

    Figures belong together where a table has them of one task and one method: at addresses that differ in the end.
    """
    found = []
    for table, cells in compared.items():
        for name, group in _groups(cells).items():
            figures, scales, halves = _figures(group)
            flags = figure_flags(figures, scales)
            if "f1_below_exact" in flags and figures["f1"] + halves["f1"] >= figures["exact"] - halves["exact"]:
                del flags["f1_below_exact"]  # they were printed with other digits and may be equal
            found += [f"{table}: {name}: {flag.replace('_', ' ')}: {evidence}" for flag, evidence in flags.items()]
    return found


def _groups(cells: Sequence[Compared]) -> dict[str, dict[str, Compared]]:
    """The scores that were published, by where they belong and by name."""
    groups: dict[str, dict[str, Compared]] = {}
    for each in cells:
        kind, *parts = (each.cell.address or "").split(".")
        if kind in SCORED and each.cell.published is not None and each.cell.published.end is None:
            what = ("before training", *parts[:-1]) if kind == "before" else parts[:-1]
            groups.setdefault(" ".join(what), {})[parts[-1]] = each
    return groups


def _figures(group: Mapping[str, Compared]) -> tuple[dict[str, float], dict[str, str], dict[str, float]]:
    """Published figures, their scales and halves of their last digits: as the rules that set them side by side ask."""
    figures, scales, halves = {}, {}, {}
    ruled = ANSWERS if "exact" in group else CLASSES
    for name, each in group.items():
        assert each.cell.published is not None
        given = "percentage" if each.cell.scale == "percent" else each.cell.scale
        scales[name] = ruled.get(name, given) if given in SHARES else given
        times = factor(given, scales[name])
        figures[name], halves[name] = each.cell.published.value * times, each.cell.published.half * times
    return figures, scales, halves
