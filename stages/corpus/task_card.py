"""What a classification task holds: examples of every split by class, and texts that splits share."""

from collections import Counter
from itertools import combinations
from typing import Any

from stages.corpus.classification import TaskData
from stages.corpus.overlap import (
    INSIDE,
    INSIDE_FIRST,
    given_away,
    given_away_finding,
    keys_of,
    known_rows,
    shared_finding,
)


def make_task_card(data: TaskData) -> dict[str, Any]:
    """Counts, and what a user should know of them, one line each.

    `shared` counts the later split's examples, `given_away` those whose text is in one of the training data or half so.
    """
    parts, findings = {}, [*data.notes]
    for part, examples in data.parts.items():
        counts = Counter(example.label for example in examples)
        by_class = {name: counts[number] for number, name in enumerate(data.classes)}
        parts[part] = {"examples": len(examples), "classes": by_class}
    shared, given = {}, {}
    held: list[str] = []
    keys = {part: keys_of((example.text, example.pair) for example in of) for part, of in data.parts.items()}
    for earlier, later in combinations(data.parts, 2):
        known = known_rows(keys[later], keys[earlier])
        shared[f"{later} in {earlier}"] = int(known.sum())
        findings += shared_finding(known, "examples", later, earlier)
        if earlier == "train":
            away = given_away(*([text for text, _ in keys[part]] for part in (later, earlier)))
            given[later] = int(away.sum())
            how = INSIDE if data.parts[later][0].pair is None else INSIDE_FIRST
            held += given_away_finding(away, known, "examples", later, how)
    findings += held
    for part, counts in parts.items():
        findings += [f"{part} has no example of {name}" for name, count in counts["classes"].items() if not count]
    return {"parts": parts, "shared": shared, "given_away": given, "dropped": data.dropped, "findings": findings}
