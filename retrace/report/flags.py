"""Flags, signs that a model has learned nothing or that a figure is wrong, as lines of text."""

from collections.abc import Mapping

from retrace.evaluation.records import Metrics
from retrace.perplexity.measures import PerplexityReport
from retrace.statistics.scales import Flags

MOST_FLAGS = 10  # in the last line of a run


def flag_lines(flags: Mapping[str, Mapping[str, Flags]]) -> list[str]:
    """One line a flag: the task, the model or data, the flag and its evidence."""
    return [
        f"{task} {name}: {flag.replace('_', ' ')}: {evidence}"
        for task, found in flags.items()
        for name, of in found.items()
        for flag, evidence in of.items()
    ]


def perplexity_lines(report: PerplexityReport) -> list[str]:
    """The same of the language model, by split."""
    return flag_lines({part: {"language model": split.flags} for part, split in report.splits.items()})


def flags_line(metrics: Metrics, perplexity: PerplexityReport | None) -> str:
    """What is wrong with the models, in one line; `perplexity` is None where there is no language model."""
    lines = [*(perplexity_lines(perplexity) if perplexity else []), *flag_lines(metrics.flags)]
    if not lines:
        return "flags: none"
    more = [f"and {len(lines) - MOST_FLAGS} more, which the report says"] if len(lines) > MOST_FLAGS else []
    return f"flags: {len(lines)}: " + "; ".join([*lines[:MOST_FLAGS], *more])
