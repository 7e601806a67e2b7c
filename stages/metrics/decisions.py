"""From what a model wrote down to what it decided."""

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def decided_class(row: Row) -> int:
    """The class with the largest logit, the first of equals."""
    logits = [value for name, value in row.items() if name.startswith("logit_")]
    return logits.index(max(logits))


def decided_answer(row: Row) -> str:
    """The span, or "" where no answer scores higher; a model that may not abstain has no null score."""
    abstains = row["null_score"] is not None and row["null_score"] > row["score"]
    return "" if abstains else row["text"]


def answers_of(rows: Sequence[Row]) -> dict[str, str]:
    """Question id → decided answer."""
    return {row["id"]: decided_answer(row) for row in rows}
