"""Extractive question answering, as on SQuAD (Rajpurkar et al. 2016, 2018): an answer is a span of the passage or none.

The model may have an extra embedding that marks the words of the passage that occur in the question: the "exact match"
feature of Chen et al. 2017 (Reading Wikipedia to Answer Open-Domain Questions, section 3.2). Matches are graded: a
common word is a weak hint, a rare word a strong one, and words with the same beginning are often forms of one word.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import cast
from unicodedata import category, normalize

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from retrace.compute.tensors import mask_of, padded, ragged
from retrace.datasets.squad import Question, stripped
from retrace.datasets.words import WORD
from retrace.finetuning.task import Tensors
from retrace.models.heads import Head, objective_of, takes_segments
from retrace.tasks.question_answering.windows import QuestionAnswering, Span, Window, draw_windows, window_questions

FILE = "question_match.safetensors"
# Initial scale of the match embeddings relative to the token embeddings. If they started at zero, a short training run
# would be almost over before they had an effect.
EMPHASIS = 3.0
LOWEST = float(np.finfo(np.float32).min)  # the lowest score; finite, as json has no infinity
KINDS = 5  # kinds of match
NONE, COMMON, MIDDLING, RARE, SAME_BEGINNING = range(KINDS)
BEGINNING = 5  # letters
SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE10)))  # variation selectors of emoji: category Mn, but no accents
COMMON_SHARE, RARE_SHARE = 1e-3, 1e-5  # of all words in the training passages


def word_shares(passages: Iterable[str]) -> dict[str, float]:
    """The relative frequency of each word; a passage with several questions counts once."""
    counts = Counter(_composed(word) for passage in set(passages) for word in WORD.findall(passage))
    total = counts.total()
    return {word: count / total for word, count in counts.items()}


@lru_cache(maxsize=4096)
def split_words(text: str) -> tuple[list[str], np.ndarray]:
    """The words of a text, lower-cased, accents and letters composed; each character's word, or -1."""
    owner = np.full(len(text), -1, dtype=np.int32)
    words = []
    for number, match in enumerate(WORD.finditer(text)):
        words.append(_composed(match.group()))
        owner[match.start() : match.end()] = number
    return words, owner


def _composed(word: str) -> str:
    return normalize("NFC", word.lower())


def match_kinds(question: str, passage: str, shares: Mapping[str, float]) -> np.ndarray:
    """For each character of the passage, how its word matches the question: (characters,), int8.

    `shares` are the words' relative frequencies.
    """
    asked = set(split_words(question)[0])
    beginnings = {word[:BEGINNING] for word in asked if len(word) >= BEGINNING}
    words, owner = split_words(passage)
    kinds = np.array([*(_kind(word, asked, beginnings, shares) for word in words), NONE], dtype=np.int8)
    return kinds[owner]  # -1 takes the last one, NONE


def _kind(word: str, asked: set[str], beginnings: set[str], shares: Mapping[str, float]) -> int:
    if word in asked:
        share = shares.get(word, 0.0)
        return COMMON if share > COMMON_SHARE else MIDDLING if share > RARE_SHARE else RARE
    return SAME_BEGINNING if len(word) >= BEGINNING and word[:BEGINNING] in beginnings else NONE


class SpanModel(nn.Module):
    """Start and end scores for each token, from a body and, with `question_match`, an embedding of match kinds."""

    def __init__(self, body: PreTrainedModel, question_match: bool = False) -> None:
        super().__init__()
        self.body = body
        self._sees_padding = objective_of(body.config) == "masked"  # tokens of causal models do not attend to it
        self.match = nn.Embedding(KINDS, body.config.hidden_size) if question_match else None
        if self.match is not None:
            spread = cast(nn.Embedding, body.get_input_embeddings()).weight.std().item()
            nn.init.normal_(self.match.weight, std=EMPHASIS * spread)
            nn.init.zeros_(self.match.weight[0])  # no match

    def forward(self, ids: Tensor, mask: Tensor | None, segments: Tensor, match: Tensor) -> Tensor:
        """Token ids, mask of the padding on the right, segments and match kinds, all (B, T) → scores (B, T, 2)."""
        given: dict[str, Tensor | None] = {"input_ids": ids}
        if self.match is not None:
            given = {"inputs_embeds": self.body.get_input_embeddings()(ids) + self.match(match)}
        if takes_segments(self.body.config):
            given["token_type_ids"] = segments
        if self._sees_padding:
            given["attention_mask"] = mask
        output = self.body(**given)
        return torch.stack([output.start_logits, output.end_logits], dim=-1)

    def save_pretrained(self, folder: Path, state_dict: Mapping[str, Tensor]) -> None:
        """Write these weights: the body in transformers' format, and the match embedding beside it."""
        body = {name.removeprefix("body."): state_dict[name] for name in state_dict if name.startswith("body.")}
        # By default transformers would write the names that the pretrained weights had.
        self.body.save_pretrained(folder, state_dict=body, save_original_format=False)
        if self.match is not None:
            save_file({"weight": state_dict["match.weight"].cpu().contiguous()}, folder / FILE)

    def load_match(self, folder: Path) -> None:
        """Load the match embedding that `save_pretrained` wrote."""
        if self.match is not None:
            self.match.load_state_dict(load_file(folder / FILE))


def best_span(window: Window, scores: np.ndarray, max_tokens: int) -> Span:
    """The span of whole words, of at most `max_tokens` tokens, with the largest start plus end score.

    `scores` is (T, 2). A span cuts a word only if no other is possible, as in a window within one word. A window
    without any of the passage has an empty span with the lowest score. The null score is that of the first token, [CLS]
    (Devlin et al. 2018, section 4.3).
    """
    starts, ends = scores[window.passage, 0], scores[window.passage, 1]
    null = float(scores[0, 0] + scores[0, 1])
    if len(starts) == 0:
        return Span("", 0, LOWEST, null)
    count = len(starts)
    last_tokens = np.arange(count)[:, None] + np.arange(min(max_tokens, count))  # of each span: (T, at most max_tokens)
    allowed, last_tokens = last_tokens < count, np.minimum(last_tokens, count - 1)
    sums = starts[:, None] + ends[last_tokens]
    spans = window.spans[window.passage]
    within = inside_word(window.question.context)
    whole = allowed & ~within[spans[:, 0]][:, None] & ~within[spans[:, 1]][last_tokens]
    start, more = np.unravel_index(np.where(whole if whole.any() else allowed, sums, -np.inf).argmax(), sums.shape)
    first, last = int(spans[start, 0]), int(spans[start + more, 1])
    text, first = stripped(window.question.context[first:last], first)  # byte-level tokens may be white space
    return Span(text, first, float(sums[start, more]), null)


@lru_cache(maxsize=64)  # the windows and epochs of a passage follow one another
def inside_word(text: str) -> np.ndarray:
    """Whether a cut before each character, and at the end, would be inside a word: (characters + 1,), bool.

    A word is a run of digits, letters with cases, and accents; scripts without cases, such as Chinese, may not
    separate words.
    """
    in_word = np.array([False, *map(_is_of_word, text), False])
    return in_word[:-1] & in_word[1:]


@cache
def _is_of_word(character: str) -> bool:
    is_accent = category(character) == "Mn" and character not in SELECTORS
    return character.isdigit() or character.lower() != character.upper() or is_accent


def best_over_windows(found: list[Span]) -> Span:
    """The best span over a question's windows, with their lowest null score: one window with an answer is enough."""
    best = max(found, key=lambda span: span.score)
    return replace(best, null_score=min(span.null_score for span in found))


class ExtractiveTask(QuestionAnswering):
    """Questions for extractive models."""

    head: Head = "spans"

    def examples(self, part: str) -> list[Window]:
        """The windows of the part's questions, in the order of the data."""
        questions, length = self._questions[part], self._settings.train_length
        if part != "train" or length is None:
            return self.encoded(questions)
        return self._marked(draw_windows(self.name, self._tokenizer, questions, length))

    def encoded(self, questions: Sequence[Question]) -> list[Window]:
        """Every window of these questions, in their order."""
        stride = self._settings.doc_stride
        return self._marked(window_questions(self.name, self._tokenizer, questions, self._settings.max_length, stride))

    def length(self, example: Window) -> int:
        """Tokens of a window."""
        return len(example.ids)

    def wrap(self, model: nn.Module) -> nn.Module:
        """A span model, with match embeddings if they are switched on."""
        return SpanModel(cast(PreTrainedModel, model), self._settings.question_match)

    def collate(self, examples: Sequence[Window], length: int | None = None) -> Tensors:
        """ids, segments, match and, if there is padding, its mask, (B, T); start and end (B,)."""
        ids = [window.ids for window in examples]
        mask = {"mask": mask_of(ids, length)} if length or ragged(ids) else {}
        return {
            **mask,
            "ids": padded(ids, self._vocabulary.pad, length),
            "segments": padded([window.segments for window in examples], 0, length),
            "match": padded([window.match for window in examples], NONE, length),
            "start": torch.tensor([window.start for window in examples]),
            "end": torch.tensor([window.end for window in examples]),
        }

    def scores(self, model: nn.Module, batch: Tensors) -> Tensor:
        """Start and end scores, (B, T, 2), the lowest possible at padding."""
        mask = batch.get("mask")
        scores = model(batch["ids"], mask, batch["segments"], batch["match"]).float()
        return scores if mask is None else scores.masked_fill(mask[..., None] == 0, LOWEST)

    def logits(self, scores: Tensor) -> Tensor:
        """Scores (B, T, 2) → (B, 2, T)."""
        return scores.transpose(1, 2)

    def loss(self, scores: Tensor, batch: Tensors) -> Tensor:
        """The mean of start and end cross-entropy, summed over the windows."""
        start = functional.cross_entropy(scores[..., 0], batch["start"], reduction="sum")
        end = functional.cross_entropy(scores[..., 1], batch["end"], reduction="sum")
        return (start + end) / 2

    def answers(self, examples: Sequence[Window], scores: Sequence[np.ndarray]) -> dict[str, Span]:
        """The best span of each question over its windows, by id."""
        spans: dict[str, list[Span]] = {}
        for window, score in zip(examples, scores, strict=True):
            span = best_span(window, score, self._settings.max_answer_length)
            spans.setdefault(window.question.id, []).append(span)
        return {question: best_over_windows(found) for question, found in spans.items()}

    @cached_property
    def _shares(self) -> dict[str, float]:
        return word_shares(question.context for question in self._questions["train"])

    def _marked(self, windows: Iterable[Window]) -> list[Window]:
        """The windows with each token's match, that of its first character, if matches are switched on.

        White space, which is a token in byte-level vocabularies, matches nothing.
        """
        marked = list(windows)
        for window in marked if self._settings.question_match else []:
            kinds = match_kinds(window.question.text, window.question.context, self._shares)
            has_text = window.spans[:, 0] < window.spans[:, 1]
            window.match[has_text] = kinds[window.spans[has_text, 0]]
        return marked
