"""Classification of texts or pairs of texts, such as the sentiment of sentences in SST-2 (Socher et al. 2013; GLUE)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from retrace.compute.tensors import mask_of, padded, ragged
from retrace.core.paths import has_test
from retrace.datasets.examples import Example, read_classes, read_examples
from retrace.finetuning.settings import FineTuneSettings, check_room
from retrace.finetuning.task import Row, Task, Tensors
from retrace.models.heads import Head, objective_of, read_config, takes_segments
from retrace.results.grid import Kind
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, load_tokenizer


@dataclass(frozen=True)
class EncodedExample:
    """Token ids, [CLS] text [SEP] or [CLS] text [SEP] pair [SEP] in the tokenizer's own format, and the class."""

    ids: list[int]
    length: int  # tokens; unchanged when a feature's index replaces the ids
    second: int  # where the second text begins; the number of tokens if there is none, or the tokenizer has no segments
    label: int
    is_truncated: bool

    @property
    def segments(self) -> np.ndarray:
        """0 before the second text, then 1: (T,)."""
        return (np.arange(len(self.ids)) >= self.second).astype(np.int8)


class Classification(Task[EncodedExample]):
    """One of C classes for each text or pair of texts.

    `segments`: whether the model has segment ids, which tell the two texts apart; `causal`: whether the model is
    causal, so that it needs no padding mask.
    """

    kind: Kind = "classification"
    head: Head = "classifier"
    reads = "text"

    def __init__(
        self, folder: Path, tokenizer: SubwordTokenizer, max_length: int, segments: bool = False,
        causal: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.classes, self.has_test = folder.name, read_classes(folder), has_test(folder)
        self._folder, self._tokenizer, self._max_length = folder, tokenizer, max_length
        self._segments, self._causal = segments, causal
        self._pad = Vocabulary.of(tokenizer).pad

    @classmethod
    def read(cls, folder: Path, base: Path, settings: FineTuneSettings) -> Self:
        """The task whose data is in `folder`, for the model saved in `base`."""
        tokenizer, config = load_tokenizer(base), read_config(base)
        segments, causal = takes_segments(config), objective_of(config) == "causal"
        return cls(folder, tokenizer, settings.max_length, segments, causal)

    def examples(self, part: str) -> list[EncodedExample]:
        return self.encoded(read_examples(self._folder, part))

    def encoded(self, examples: Sequence[Example]) -> list[EncodedExample]:
        """These examples, cut to the maximum length, the longer text of a pair first."""
        self._check_length(in_pairs=any(example.pair is not None for example in examples))
        self._tokenizer.enable_truncation(self._max_length, strategy="longest_first")
        texts = [example.text if example.pair is None else (example.text, example.pair) for example in examples]
        encoded = []
        for encoding, example in zip(self._tokenizer.encode_batch(texts), examples, strict=True):
            ids = encoding.ids
            second = next((place for place, segment in enumerate(encoding.type_ids) if segment), len(ids))
            encoded.append(EncodedExample(ids, len(ids), second, example.label, bool(encoding.overflowing)))
        return encoded

    def _check_length(self, in_pairs: bool) -> None:
        """Raise InputError if special tokens leave no room: the tokenizer would not cut anything then."""
        special = self._tokenizer.num_special_tokens_to_add(in_pairs)
        least, holds = (special + 2, "a token of each text") if in_pairs else (special + 1, "a token of the text")
        check_room(f"{self.name}.max_length", self._max_length, least, holds)

    def length(self, example: EncodedExample) -> int:
        return example.length

    def is_truncated(self, example: EncodedExample) -> bool:
        return example.is_truncated

    def collate(self, examples: Sequence[EncodedExample], length: int | None = None) -> Tensors:
        """ids (B, T), labels (B,); if the model needs them, padding mask and segments, (B, T)."""
        ids = [example.ids for example in examples]
        labels = torch.tensor([example.label for example in examples])
        tensors = {"ids": padded(ids, self._pad, length), "labels": labels}
        if (length or ragged(ids)) and not self._causal:
            tensors["mask"] = mask_of(ids, length)
        if self._segments:
            tensors["segments"] = padded([example.segments for example in examples], 0, length)
        return tensors

    def scores(self, model: nn.Module, batch: Tensors) -> Tensor:
        """Logits of the classes, (B, C)."""
        given = {"input_ids": batch["ids"], "attention_mask": batch.get("mask")}
        if self._segments:
            given["token_type_ids"] = batch["segments"]
        return model(**given).logits

    def loss(self, scores: Tensor, batch: Tensors) -> Tensor:
        """Cross-entropy summed over the examples."""
        return functional.cross_entropy(scores.float(), batch["labels"], reduction="sum")

    def rows(self, examples: Sequence[EncodedExample], scores: Sequence[np.ndarray]) -> list[Row]:
        """Row number in the data, gold class and the logit of each class, logit_0 to logit_{C-1}."""
        return [
            {"id": number, "label": example.label, **{f"logit_{i}": float(logit) for i, logit in enumerate(score)}}
            for number, (example, score) in enumerate(zip(examples, scores, strict=True))
        ]
