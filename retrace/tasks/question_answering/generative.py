"""Generative question answering: a causal language model generates the answer after the passage and the question.

A prompt is the token that begins a text, the passage, "Question:", the question and "Answer:" (as in Radford et al.
2019, section 3.5). It is followed by the answer and the token that ends a text, or only by the latter if there is no
answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn import functional
from transformers import GenerationConfig, PreTrainedModel

from retrace.compute.tensors import IGNORED, mask_of, padded, rounded_up
from retrace.core.errors import InputError
from retrace.datasets.squad import Question, stripped
from retrace.finetuning.task import Tensors
from retrace.models.heads import Head, read_config
from retrace.models.language_model import LanguageModel
from retrace.tasks.question_answering.extractive import ExtractiveTask, split_words
from retrace.tasks.question_answering.settings import SHORTEST_PROMPT, AnswerSettings, check_generative
from retrace.tasks.question_answering.windows import QuestionAnswering, Span, Window, ids_after_space, window_questions
from retrace.tokens.tokenizer import SubwordTokenizer


class Generator(LanguageModel):
    """A language model that generates with greedy decoding."""

    def generate(self, prompts: Tensor, mask: Tensor, most: int, end: int) -> Tensor:
        """Prompts (B, T), padded on the left, and their attention mask → up to `most` tokens, the last one `end`.

        Returns (B, 2 + most), float: the log-probability of the tokens up to and including the end, that of the end as
        the first token, and the ids; all ids after the first end are ends.
        """
        how = GenerationConfig(
            max_new_tokens=most, do_sample=False, num_beams=1, eos_token_id=end, pad_token_id=end,
            return_dict_in_generate=True, output_logits=True,
        )  # fmt: skip
        own, self.body.generation_config = self.body.generation_config, GenerationConfig()
        try:  # the checkpoint's own config would fill in what is not set above
            found = cast(Any, self.body).generate(prompts, attention_mask=mask, generation_config=how)
        finally:
            self.body.generation_config = own
        ids = found.sequences[:, prompts.shape[1] :]  # (B, L)
        steps = zip(found.logits, ids.T, strict=True)  # (B, V) and (B,) each
        logs = torch.stack([-functional.cross_entropy(scores, chosen, reduction="none") for scores, chosen in steps], 1)
        ends = ids == end
        after = ends.cumsum(1) > ends
        filled = functional.pad(ids, (0, most - ids.shape[1]), value=end)
        score, null_score = logs.masked_fill(after, 0.0).sum(1), found.logits[0].log_softmax(-1)[:, end]
        return torch.cat([score[:, None], null_score[:, None], filled], dim=1)


QUESTION, ANSWER = "Question:", "Answer:"
COUNTS = 4  # for how many numbers of labels per batch a model is compiled


@dataclass(frozen=True)
class Prompt:
    """A question with a part of its passage, and its answer."""

    window: Window
    ids: np.ndarray  # (P,)
    answer: list[int]  # tokens of the first gold answer, if any, and the end
    generates: bool  # whether the model generates an answer, as in evaluation


class GenerativeTask(QuestionAnswering):
    """Questions for generative models."""

    head: Head = "language_model"

    def __init__(self, folder: Path, tokenizer: SubwordTokenizer, settings: AnswerSettings) -> None:
        super().__init__(folder, tokenizer, settings)
        self._cues = [ids_after_space(tokenizer, cue) for cue in (QUESTION, ANSWER)]
        room = settings.max_length - settings.max_answer_length - sum(map(len, self._cues)) - 1  # 1: the begin token
        if room < SHORTEST_PROMPT:
            raise InputError(
                f"params.yaml: {self.name}.max_answer_length: {settings.max_answer_length} is not allowed; "
                f"of {self.name}.max_length ({settings.max_length}) it leaves {max(0, room)} tokens to read, "
                f"fewer than {SHORTEST_PROMPT}"
            )
        self._window = room + tokenizer.num_special_tokens_to_add(True)  # tokens of a window with as much to read

    @classmethod
    def read(cls, folder: Path, base: Path, settings: AnswerSettings) -> Self:
        """The task for the model saved in `base`.

        Raises InputError if its family is not causal, or if there is no room to read.
        """
        check_generative(read_config(base).model_type, folder.name)
        return super().read(folder, base, settings)

    def examples(self, part: str) -> list[Prompt]:
        """A prompt for each of the part's questions, in the order of the data.

        A long passage is cut to the window that shares the most words with the question, in training to one with the
        answer.
        """
        return self.encoded(self._questions[part], training=part == "train")

    def encoded(self, questions: Sequence[Question], training: bool = False) -> list[Prompt]:
        """A prompt for each of these questions, in their order, to generate an answer or to train on it."""
        stride = self._settings.doc_stride
        windows = window_questions(self.name, self._tokenizer, questions, self._window, stride, after_space=True)
        by_question = groupby(windows, key=lambda window: window.question.id)
        return [self._prompt(chosen_window(list(group), training), not training) for _, group in by_question]

    def length(self, example: Prompt) -> int:
        """Tokens of the prompt and the gold answer."""
        return len(example.ids) + len(example.answer) - 1

    def wrap(self, model: nn.Module) -> nn.Module:
        """A model that generates."""
        return Generator(cast(PreTrainedModel, model))

    def collate(self, examples: Sequence[Prompt], length: int | None = None) -> Tensors:
        """ids and labels (the next tokens), (B, T); the positions of labels in the flattened ids, (N,).

        With a `length`, N is rounded up by entries at position 0, without a label. For generation also prompt and mask
        (B, P), padded on the left.
        """
        prompts = [example.ids for example in examples]
        inputs = [np.append(example.ids, example.answer[:-1]) for example in examples]  # the end is a label only
        labels = [[IGNORED] * (len(example.ids) - 1) + example.answer for example in examples]
        batch = {"ids": padded(inputs, self._vocabulary.pad, length), "labels": padded(labels, IGNORED, length)}
        at = (batch["labels"] != IGNORED).flatten().nonzero()[:, 0]
        most = len(examples) * (self._settings.max_answer_length + 1)
        batch["at"] = functional.pad(at, (0, rounded_up(len(at), most, COUNTS) - len(at))) if length else at
        if examples[0].generates:
            batch["prompt"] = padded([prompt[::-1] for prompt in prompts], self._vocabulary.pad).flip(1)
            batch["mask"] = mask_of(prompts).flip(1)
        return batch

    def scores(self, model: nn.Module, batch: Tensors) -> Tensor:
        """The log-probability of the gold answer, (B, 1).

        With a prompt, (B, 3 + max_answer): also those of the generated answer and of no answer, and the ids of the
        generated answer, padded with ends. With sharded weights, which raises InputError, every process would have to
        generate the same number of tokens.
        """
        labels, at = batch["labels"], batch["at"]
        logits = model(batch["ids"], at).float()  # (N, V), N labels
        found = -functional.cross_entropy(logits, labels.flatten()[at], reduction="none")
        right = torch.zeros(labels.numel(), device=at.device).scatter(0, at, found).view_as(labels).sum(1, keepdim=True)
        if "prompt" not in batch:
            return right
        if isinstance(model, FSDPModule):
            raise InputError(f"params.yaml: {self.name}.answers: generative is not allowed with sharded weights (FSDP)")
        most = self._settings.max_answer_length
        own = cast(Generator, model).generate(batch["prompt"], batch["mask"], most, self._vocabulary.end)
        return torch.cat([right, own], dim=1)

    def targets(self, example: Prompt) -> int:
        """Tokens of the gold answer."""
        return len(example.answer)

    def loss(self, scores: Tensor, batch: Tensors) -> Tensor:
        """Cross-entropy summed over the tokens of the gold answers."""
        return -scores[:, 0].sum()

    def answers(self, examples: Sequence[Prompt], scores: Sequence[np.ndarray]) -> dict[str, Span]:
        """The generated answer to each question, by id."""
        found = {}
        for example, score in zip(examples, scores, strict=True):
            text, start = self._text(example.window, score[3:].astype(np.int64))
            found[example.window.question.id] = Span(text, start, float(score[1]), float(score[2]))
        return found

    def _prompt(self, window: Window, generates: bool) -> Prompt:
        passage, question = window.ids[window.passage], window.ids[window.asked]
        ids = np.concatenate([[self._vocabulary.begin], passage, self._cues[0], question, self._cues[1]])
        answers = window.question.answers
        gold = ids_after_space(self._tokenizer, answers[0].text) if answers else []
        answer = [*gold[: self._settings.max_answer_length], self._vocabulary.end]
        return Prompt(window, ids.astype(np.int64), answer, generates)

    def _text(self, window: Window, ids: np.ndarray) -> tuple[str, int | None]:
        """The text of the tokens before the end, as spelt in the passage if they occur there, and its start there.

        Tokenizers are lossy: `$2.2 Billion` may come back as `$ 2. 2 billion`.
        """
        end = self._vocabulary.end
        ids = ids[: np.append(ids, end).tolist().index(end)]
        passage, spans = window.ids[window.passage], window.spans[window.passage]
        if 0 < len(ids) <= len(passage):
            places = np.flatnonzero((sliding_window_view(passage, len(ids)) == ids).all(axis=1))
            if len(places):
                start, last = places[0], places[0] + len(ids) - 1
                found = window.question.context[spans[start, 0] : spans[last, 1]]
                return stripped(found, int(spans[start, 0]))
        return self._tokenizer.decode(ids.tolist()).strip(), None


ANSWERING = {"extractive": ExtractiveTask, "generative": GenerativeTask}  # values of `answers` in params.yaml


def chosen_window(windows: Sequence[Window], holding: bool) -> Window:
    """The window that shares most words with the question; with `holding`, of those with the whole answer, if any."""
    answered = [window for window in windows if window.start] if holding else []
    return max(answered or windows, key=_words_in_common)


def _words_in_common(window: Window) -> int:
    spans = window.spans[window.passage]
    part = window.question.context[int(spans[0, 0]) : int(spans[-1, 1])] if len(spans) else ""
    return len(set(split_words(window.question.text)[0]) & set(split_words(part)[0]))
