"""What the models were trained and scored on, and what is odd about it."""

from collections.abc import Mapping, Sequence
from typing import Any

from stages.pages.content import Section, Table


def data_section(card: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]) -> Section:
    """Counts of every split, and findings such as texts that two splits share; `tasks` holds further tasks' cards.

    The card of a source may have only some of its parts.
    """
    findings = list(card["findings"])
    for name, task in tasks.items():
        findings += [f"{name}: {finding}" for finding in task["findings"]]
    parts = [name for name in ("text", "sst2", "squad") if name in card]
    table = counts_table(card, parts, tasks)
    return Section("Data", [*(f"Note: {finding}." for finding in findings), table])


def counts_table(card: Mapping[str, Any], names: Sequence[str], tasks: Mapping[str, Mapping[str, Any]]) -> Table:
    """What every split holds, of those parts of a source that are named and of further tasks."""
    rows = [
        (name, part, what.replace("_", " "), f"{count:,}")
        for name in names
        for part, counts in card[name].items()
        if isinstance(counts, Mapping)
        for what, count in counts.items()
    ]
    for name, task in tasks.items():
        for part, counts in task["parts"].items():
            found = [("examples", counts["examples"]), *counts["classes"].items()]
            rows += [(name, part, what, f"{count:,}") for what, count in found]
    return Table(("data", "split", "what", "count"), rows)
