"""Questions on passages: what was answered, beside no answer ever and words in common."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from stages.corpus.overlap import keys_of, known_rows
from stages.corpus.squad import Question
from stages.metrics.baselines import no_answer, word_overlap
from stages.metrics.groups import length_groups
from stages.metrics.health import Flags, answer_flags
from stages.metrics.outcomes import Answered, answered

Row = Mapping[str, Any]


class ReadingTask:
    """The questions of a reading task, for scoring."""

    headlines: tuple[str, ...] = ("f1", "exact")

    notes: Mapping[str, str] = MappingProxyType({})
    given_how = "are on a passage of train"

    def __init__(
        self, train: Sequence[Question], dev: Sequence[Question], test: Sequence[Question] | None = None
    ) -> None:
        self._questions = dev if test is None else test
        self.split = "dev" if test is None else "test"
        keys, of_train, of_dev = (
            keys_of((question.context, question.text) for question in of)
            for of in (self._questions, train, [] if test is None else dev)
        )
        self.shared, self.shared_with_dev = known_rows(keys, of_train), known_rows(keys, of_dev)
        self.given = known_rows(*([passage for passage, _ in of] for of in (keys, of_train)))
        self.groups: Mapping[str, np.ndarray] = length_groups(
            [question.context for question in self._questions], "words of passage"
        )

    def outcome(self, rows: Sequence[Row]) -> Answered:
        """Rows of predictions, one a question: the answer, or none where that scores higher."""
        answers = {row["id"]: row["text"] for row in rows}
        rather_not = {row["id"]: row["null_score"] - row["score"] for row in rows if row["null_score"] is not None}
        return answered(self._questions, answers, rather_not or None)

    def baselines(self) -> dict[str, Answered]:
        """No answer ever, and word overlap."""
        decided = {"no_answer": no_answer(self._questions), "word_overlap": word_overlap(self._questions)}
        return {name: answered(self._questions, given) for name, given in decided.items()}

    def flags(self, outcome: Answered) -> Flags:
        """Empty answers, or the same to every question."""
        return answer_flags(outcome)

    def breakdown(self, outcome: Answered) -> dict[str, Any]:
        """How often there is an answer, in the data and by the model."""
        return {
            "answered": sum(map(bool, outcome.answers)),
            "answerable": sum(map(bool, outcome.golds)),
            "questions": len(outcome.answers),
        }
