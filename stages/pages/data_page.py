"""What the models were trained and scored on, and what is odd about it."""

from collections.abc import Mapping
from typing import Any

from stages.pages.content import Section, Table


def data_section(card: Mapping[str, Any]) -> Section:
    """Counts of every split, and findings such as texts that two splits share."""
    rows = [
        (name, part, what, f"{count:,}")
        for name in ("text", "sst2", "squad")
        for part, counts in card[name].items()
        if isinstance(counts, Mapping)
        for what, count in counts.items()
    ]
    rows = [(name, part, what.replace("_", " "), count) for name, part, what, count in rows]
    return Section(
        "Data",
        [*(f"Note: {finding}." for finding in card["findings"]), Table(("data", "split", "what", "count"), rows)],
    )
