"""Single predictions beside the right answers, so that a reader sees what the scores stand for."""

from collections.abc import Mapping, Sequence

from stages.corpus.examples import Example
from stages.corpus.squad import Question
from stages.pages.content import Table

NO_ANSWER = "(no answer)"


def classified_table(
    examples: Sequence[Example], classes: Sequence[str], decided: Mapping[str, Sequence[int]], places: Sequence[int]
) -> Table:
    """The examples at these places, with the class that each method gave them."""
    rows = [
        (" / ".join(filter(None, (examples[i].text, examples[i].pair))),
         classes[examples[i].label], *(classes[given[i]] for given in decided.values()))
        for i in places
    ]  # fmt: skip
    return Table(("text", "right", *decided), rows)


def answered_table(
    questions: Sequence[Question], decided: Mapping[str, Mapping[str, str]], places: Sequence[int]
) -> Table:
    """The questions at these places, with what each method answered by question id."""
    rows: list[Sequence[str]] = []
    for i in places:
        question = questions[i]
        gold = " / ".join(dict.fromkeys(answer.text for answer in question.answers)) or NO_ANSWER
        given = [by_id.get(question.id) or NO_ANSWER for by_id in decided.values()]
        rows.append((question.text, question.context, gold, *given))
    return Table(("question", "passage", "right", *decided), rows)
