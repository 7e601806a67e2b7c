"""How texts are read, whatever the model."""

from dataclasses import dataclass
from typing import Literal

from retrace.core.settings import require


@dataclass(frozen=True)
class ReadingSettings:
    """How passages are read and answers chosen."""

    answers: Literal["spans", "generated"] = "spans"  # marked in the passage, or written token by token after it
    question_match: bool = False  # tell the model which passage words occur in the question
    stride: int = 128  # tokens from the start of one window to the next
    max_answer: int = 30  # tokens of the longest answer considered

    def __post_init__(self) -> None:
        for field in ("stride", "max_answer"):
            require(getattr(self, field) > 0, field, getattr(self, field), "expected a whole number above 0")
        require(
            not (self.question_match and self.answers == "generated"),
            "question_match", True, "it marks words for answers: spans alone",
        )  # fmt: skip
