"""Single predictions beside the right answers, so that a reader sees what the scores stand for."""

from collections.abc import Mapping, Sequence

from stages.corpus.examples import Example
from stages.corpus.squad import Question
from stages.pages.content import Table

NO_ANSWER = "(no answer)"


def classified_table(
    examples: Sequence[Example], classes: Sequence[str], decided: Mapping[str, Sequence[int]], count: int
) -> Table:
    """`count` examples, evenly spread over the data, with the class that each method gave them."""
    rows = [
        (" / ".join(filter(None, (examples[i].text, examples[i].pair))),
         classes[examples[i].label], *(classes[given[i]] for given in decided.values()))
        for i in _spread(len(examples), count)
    ]  # fmt: skip
    return Table(("text", "right", *decided), rows)


def answered_table(questions: Sequence[Question], decided: Mapping[str, Mapping[str, str]], count: int) -> Table:
    """`count` questions, evenly spread over the data, with what each method answered by question id."""
    rows: list[Sequence[str]] = []
    for i in _spread(len(questions), count):
        question = questions[i]
        gold = " / ".join(dict.fromkeys(answer.text for answer in question.answers)) or NO_ANSWER
        given = [by_id.get(question.id) or NO_ANSWER for by_id in decided.values()]
        rows.append((question.text, question.context, gold, *given))
    return Table(("question", "passage", "right", *decided), rows)


def _spread(total: int, count: int) -> list[int]:
    """`count` places evenly spread over `total`, the same every time."""
    count = min(count, total)
    return [i * total // count for i in range(count)]
