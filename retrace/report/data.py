"""The data of the report: counts and findings by split, and sample predictions beside the right answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from retrace.datasets.examples import Example
from retrace.datasets.squad import Question
from retrace.report.blocks import Section, Table


def data_section(card: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]) -> Section:
    """Counts of every split, and findings such as texts that two splits share.

    `card` is the source's, which may have only some of its parts; `tasks` are the cards of further tasks.
    """
    findings = list(card["findings"])
    for name, task in tasks.items():
        findings += [f"{name}: {finding}" for finding in task["findings"]]
    parts = [name for name in ("text", "sst2", "squad") if name in card]
    table = counts_table(card, parts, tasks)
    return Section("Data", [*(f"Note: {finding}." for finding in findings), table])


def counts_table(card: Mapping[str, Any], names: Sequence[str], tasks: Mapping[str, Mapping[str, Any]]) -> Table:
    """Counts of every split, for the named parts of a source and for further tasks."""
    rows = [
        (name, part, what.replace("_", " "), f"{count:,}")
        for name in names
        for part, counts in card[name].items()
        if isinstance(counts, Mapping)
        for what, count in counts.items()
    ]
    for name, task in tasks.items():
        for part, counts in task["parts"].items():
            found = {**counts, **counts.get("classes", {})}
            rows += [(name, part, what, f"{count:,}") for what, count in found.items() if what != "classes"]
    return Table(("data", "split", "what", "count"), rows)


NO_ANSWER = "(no answer)"


def classified_table(
    examples: Sequence[Example], classes: Sequence[str], decided: Mapping[str, Sequence[int]], places: Sequence[int]
) -> Table:
    """The examples at these places, with their class and the one that each method predicted."""
    rows = [
        (" / ".join(filter(None, (examples[i].text, examples[i].pair))),
         classes[examples[i].label], *(classes[given[i]] for given in decided.values()))
        for i in places
    ]  # fmt: skip
    return Table(("text", "right", *decided), rows)


def answered_table(
    questions: Sequence[Question], decided: Mapping[str, Mapping[str, str]], places: Sequence[int]
) -> Table:
    """The questions at these places, with the right answers and each method's, which are by question id."""
    rows: list[Sequence[str]] = []
    for i in places:
        question = questions[i]
        gold = " / ".join(dict.fromkeys(answer.text for answer in question.answers)) or NO_ANSWER
        given = [by_id.get(question.id) or NO_ANSWER for by_id in decided.values()]
        rows.append((question.text, question.context, gold, *given))
    return Table(("question", "passage", "right", *decided), rows)
