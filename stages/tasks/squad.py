"""SQuAD (Rajpurkar et al. 2016, 2018): which words of a passage answer a question, if any do."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from stages.corpus.source import questions_path, splits_of
from stages.corpus.squad import read_questions
from stages.corpus.tokenizer import SubwordTokenizer
from stages.nets.heads import Head
from stages.nets.reader import Reader
from stages.nets.vocabulary import Vocabulary
from stages.tasks.matching import KINDS, NONE, WordFrequencies, match_kinds
from stages.tasks.padding import mask_of, padded
from stages.tasks.settings import ReadingSettings
from stages.tasks.spans import best_over_windows, best_span
from stages.tasks.task import Row, Tensors
from stages.tasks.windows import Window, window_questions


@dataclass(frozen=True)
class EncodedWindow:
    """A window and how each of its tokens matches the question."""

    window: Window
    match: np.ndarray  # (T,), int8


class Reading:
    """Extractive question answering."""

    name = "squad"
    head: Head = "spans"
    classes = ()

    def __init__(self, source: Path, tokenizer: SubwordTokenizer, max_length: int, settings: ReadingSettings) -> None:
        self._tokenizer, self._max_length, self._settings = tokenizer, max_length, settings
        self._pad = Vocabulary.of(tokenizer).pad
        self._questions = {part: read_questions(questions_path(source, part)) for part in splits_of(source, self.name)}
        self.has_test = "test" in self._questions
        # Training without unanswerable questions teaches nothing about when not to answer.
        self._may_abstain = any(not question.answers for question in self._questions["train"])
        contexts = {question.context for question in self._questions["train"]} if settings.question_match else ()
        self._frequencies = WordFrequencies(sorted(contexts))

    def examples(self, part: str) -> list[EncodedWindow]:
        """Every window of the part's questions, in the order of the data."""
        windows = window_questions(self._tokenizer, self._questions[part], self._max_length, self._settings.stride)
        return [EncodedWindow(window, self._match(window)) for window in windows]

    def length(self, example: EncodedWindow) -> int:
        """Tokens of a window."""
        return len(example.window.ids)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model as a reader, with question matches where they are switched on."""
        return Reader(cast(PreTrainedModel, model), KINDS if self._settings.question_match else 0)

    def collate(self, examples: Sequence[EncodedWindow]) -> Tensors:
        """ids, mask, segments and match (B, T); start and end (B,)."""
        windows = [example.window for example in examples]
        ids = [window.ids for window in windows]
        return {
            "ids": padded(ids, self._pad),
            "mask": mask_of(ids),
            "segments": padded([window.segments for window in windows], 0),
            "match": padded([example.match for example in examples], NONE),
            "start": torch.tensor([window.start for window in windows]),
            "end": torch.tensor([window.end for window in windows]),
        }

    def scores(self, model: nn.Module, batch: Tensors) -> Tensor:
        """Start and end scores, (B, T, 2), the lowest possible at padding."""
        scores = model(batch["ids"], batch["mask"], batch["segments"], batch["match"]).float()
        return scores.masked_fill(batch["mask"][..., None] == 0, torch.finfo(torch.float32).min)

    def loss(self, scores: Tensor, batch: Tensors) -> tuple[Tensor, int]:
        """The mean of start and end cross-entropy, summed over the windows."""
        start = functional.cross_entropy(scores[..., 0], batch["start"], reduction="sum")
        end = functional.cross_entropy(scores[..., 1], batch["end"], reduction="sum")
        return (start + end) / 2, len(scores)

    def rows(self, examples: Sequence[EncodedWindow], scores: Sequence[np.ndarray]) -> list[Row]:
        """Question id, best answer, its score and the null score (absent where the model may not abstain)."""
        found = [
            (example.window.question.id, best_span(example.window, score, self._settings.max_answer))
            for example, score in zip(examples, scores, strict=True)
        ]
        best = {
            key: best_over_windows([s for _, s in group]) for key, group in groupby(found, key=lambda item: item[0])
        }
        return [
            {"id": key, "text": s.text, "score": s.score, "null_score": s.null_score if self._may_abstain else None}
            for key, s in best.items()
        ]

    def _match(self, window: Window) -> np.ndarray:
        """A token matches as its first character does; tokens outside the passage match nothing."""
        match = np.full(len(window.ids), NONE, dtype=np.int8)
        if self._settings.question_match:
            kinds = match_kinds(window.question.text, window.question.context, self._frequencies)
            match[window.passage] = np.append(kinds, NONE)[window.spans[window.passage, 0]]  # spaces may come last
        return match
