"""SST-2 (Socher et al. 2013; GLUE): is a sentence favourable?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from stages.corpus.glue import read_sentences
from stages.corpus.source import sentences_path
from stages.nets.heads import Head
from stages.nets.vocabulary import Vocabulary
from stages.tasks.padding import mask_of, padded
from stages.tasks.task import Row, Tensors


@dataclass(frozen=True)
class EncodedSentence:
    """Token ids with [CLS] and [SEP], and the class."""

    ids: list[int]
    label: int


class Sentiment:
    """Two-way classification of sentences."""

    name = "sst2"
    head: Head = "classifier"

    def __init__(self, source: Path, tokenizer: Tokenizer, max_length: int) -> None:
        self._source, self._tokenizer, self._max_length = source, tokenizer, max_length
        self._pad = Vocabulary.of(tokenizer).pad

    def examples(self, part: str) -> list[EncodedSentence]:
        """The part's sentences, cut to the longest length allowed."""
        sentences = read_sentences(sentences_path(self._source, part))
        self._tokenizer.enable_truncation(self._max_length)
        encodings = self._tokenizer.encode_batch_fast([sentence.text for sentence in sentences])
        return [EncodedSentence(e.ids, s.label) for e, s in zip(encodings, sentences, strict=True)]

    def length(self, example: EncodedSentence) -> int:
        """Tokens of a sentence."""
        return len(example.ids)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The classifier as it is."""
        return model

    def collate(self, examples: Sequence[EncodedSentence]) -> Tensors:
        """ids and mask (B, T), labels (B,)."""
        ids = [example.ids for example in examples]
        labels = padded([[example.label] for example in examples], 0)[:, 0]
        return {"ids": padded(ids, self._pad), "mask": mask_of(ids), "labels": labels}

    def scores(self, model: nn.Module, batch: Tensors) -> Tensor:
        """Logits of the classes, (B, 2)."""
        return model(input_ids=batch["ids"], attention_mask=batch["mask"]).logits

    def loss(self, scores: Tensor, batch: Tensors) -> tuple[Tensor, int]:
        """Cross-entropy summed over the sentences."""
        return functional.cross_entropy(scores.float(), batch["labels"], reduction="sum"), len(scores)

    def rows(self, examples: Sequence[EncodedSentence], scores: Sequence[np.ndarray]) -> list[Row]:
        """Row number in the data, right class and the logit of each class."""
        return [
            {"id": number, "label": example.label, "logit_0": float(score[0]), "logit_1": float(score[1])}
            for number, (example, score) in enumerate(zip(examples, scores, strict=True))
        ]
