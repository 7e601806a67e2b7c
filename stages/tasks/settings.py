"""How questions are read, whatever the model."""

from dataclasses import dataclass

from stages.harness.settings import require


@dataclass(frozen=True)
class ReadingSettings:
    """How passages are read and answers chosen."""

    question_match: bool = False  # tell the model which passage words occur in the question
    stride: int = 128  # tokens from the start of one window to the next
    max_answer: int = 30  # tokens of the longest answer considered

    def __post_init__(self) -> None:
        for field in ("stride", "max_answer"):
            require(getattr(self, field) > 0, field, getattr(self, field), "expected a whole number above 0")
