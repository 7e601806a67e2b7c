"""What the models were trained and scored on, and what is odd about it."""

from collections.abc import Mapping
from typing import Any

from stages.pages.content import Section, Table


def data_section(card: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]) -> Section:
    """Counts of every split, and findings such as texts that two splits share; `tasks` holds further tasks' cards."""
    rows = [
        (name, part, what, f"{count:,}")
        for name in ("text", "sst2", "squad")
        for part, counts in card[name].items()
        if isinstance(counts, Mapping)
        for what, count in counts.items()
    ]
    rows = [(name, part, what.replace("_", " "), count) for name, part, what, count in rows]
    findings = list(card["findings"])
    for name, task in tasks.items():
        findings += [f"{name}: {finding}" for finding in task["findings"]]
        for part, counts in task["parts"].items():
            found = [("examples", counts["examples"]), *counts["classes"].items()]
            rows += [(name, part, what, f"{count:,}") for what, count in found]
    return Section("Data", [*(f"Note: {finding}." for finding in findings),
                            Table(("data", "split", "what", "count"), rows)])  # fmt: skip
