"""What the pretrained model puts in the place of masked words, or, a causal one, after a text."""

import re
from collections.abc import Mapping
from typing import Any

import torch

from retrace.compute.device import open_device
from retrace.core.errors import InputError
from retrace.core.settings import Precision, build
from retrace.finetuning.method import PRETRAINED
from retrace.models.heads import longest_input, read_config
from retrace.models.language_model import read_language_model
from retrace.tokens.tokenizer import Vocabulary, load_tokenizer

MASK = "[MASK]"  # as people write it, whatever the tokenizer calls it
_MASKS = re.compile(r"\s*(?:\[MASK\]|_{3,})", re.IGNORECASE)  # with the space before: byte-level words begin with it


class WordModel:
    """The pretrained language model, loaded.

    Raises InputError where it is not there.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._device = open_device(0, build(Precision, params, "precision"), lease=False)
        self._tokenizer = load_tokenizer(PRETRAINED)
        self._vocabulary = Vocabulary.of(self._tokenizer)
        self._longest = longest_input(read_config(PRETRAINED))
        model = read_language_model(PRETRAINED, 0, self._device.attention)
        self.is_masked = model.objective == "masked"
        self._model = model.to(self._device.torch_device).eval()

    @torch.no_grad()
    def suggestions(self, text: str, most: int = 5) -> list[list[tuple[str, float]]]:
        """The likeliest tokens with their probabilities, `most` for each masked word, or for what follows the text.

        Raises InputError where no word is masked, or the text is longer than the model reads.
        """
        ids, at = self._encoded(text)
        if not at:
            raise InputError(f"text: no word is masked; write {MASK} in its place")
        if len(ids) > self._longest:
            raise InputError(f"text: {len(ids)} tokens are too many; the model reads {self._longest}")
        with self._device.autocast():
            scores = self._model(self._device.send(torch.tensor([ids])), self._device.send(torch.tensor([at])))
        found = scores.double().softmax(-1).cpu()  # (masks, V)
        found[:, list(self._vocabulary.special)] = 0.0  # they were never to be predicted
        best = found.topk(most)
        return [
            [(self._tokenizer.decode([token]), share) for token, share in zip(*of, strict=True)]
            for of in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def _encoded(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of a text as in pretraining, and the places that are to be filled."""
        first, *rest = _MASKS.split(text) if self.is_masked else [text]
        ids, at = [self._vocabulary.begin, *self._ids(first)], []
        if not self.is_masked:
            return ids, [len(ids) - 1]
        mask = self._vocabulary.mask
        assert mask is not None, "a masked model has a mask"
        for piece in rest:
            at.append(len(ids))
            ids += [mask, *self._ids(piece)]
        return [*ids, self._vocabulary.end], at

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids
