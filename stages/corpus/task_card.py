"""What a classification task holds: examples of every split by class, and texts that splits share."""

from collections import Counter
from itertools import combinations
from typing import Any

from stages.corpus.classification import TaskData


def make_task_card(data: TaskData) -> dict[str, Any]:
    """Counts, and what a user should know of them, one line each; `shared` counts the later split's examples."""
    parts = {}
    for part, examples in data.parts.items():
        counts = Counter(example.label for example in examples)
        by_class = {name: counts[number] for number, name in enumerate(data.classes)}
        parts[part] = {"examples": len(examples), "classes": by_class}
    shared = {f"{later} in {earlier}": _shared(data, earlier, later) for earlier, later in combinations(data.parts, 2)}
    return {"parts": parts, "shared": shared, "dropped": data.dropped, "findings": _findings(parts, shared)}


def _shared(data: TaskData, earlier: str, later: str) -> int:
    known = {(example.text, example.pair) for example in data.parts[earlier]}
    return sum((example.text, example.pair) in known for example in data.parts[later])


def _findings(parts: dict[str, Any], shared: dict[str, int]) -> list[str]:
    found = []
    for name, count in shared.items():
        later, _, earlier = name.split()
        if count:
            found.append(f"{count} of {parts[later]['examples']} examples of {later} are in {earlier} too")
    for part, counts in parts.items():
        found += [f"{part} has no example of {name}" for name, count in counts["classes"].items() if not count]
    return found
