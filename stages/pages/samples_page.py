"""Single predictions beside the right answers, so that a reader sees what the scores stand for."""

from collections.abc import Mapping, Sequence

from stages.corpus.glue import Sentence
from stages.corpus.squad import Question
from stages.pages.content import Section, Table

CLASSES = ("unfavourable", "favourable")
NO_ANSWER = "(no answer)"


def samples_section(
    sentences: Sequence[Sentence], classes: Mapping[str, Sequence[int]],
    questions: Sequence[Question], answers: Mapping[str, Mapping[str, str]], count: int,
) -> Section:  # fmt: skip
    """`classes` and `answers` hold each method's decisions; `count` of each task, evenly spread over the data."""
    rows = [
        (sentences[i].text, CLASSES[sentences[i].label], *(CLASSES[decided[i]] for decided in classes.values()))
        for i in _spread(len(sentences), count)
    ]
    read: list[Sequence[str]] = []
    for i in _spread(len(questions), count):
        question = questions[i]
        gold = " / ".join(dict.fromkeys(answer.text for answer in question.answers)) or NO_ANSWER
        decided = [by_id.get(question.id) or NO_ANSWER for by_id in answers.values()]
        read.append((question.text, question.context, gold, *decided))
    return Section(
        "Sample predictions",
        [
            Table(("sentence", "right", *classes), rows),
            Table(("question", "passage", "right", *answers), read),
        ],
    )


def _spread(total: int, count: int) -> list[int]:
    """`count` places evenly spread over `total`, the same every time."""
    count = min(count, total)
    return [i * total // count for i in range(count)]
