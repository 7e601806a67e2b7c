"""Perplexity on held-out text: models/pretrained and models/tokens → reports/perplexity.json,
reports/perplexity-details.json and reports/perplexity-documents.parquet.

A masked model gets the perplexity with fixed masks and the pseudo-perplexity of sampled passages, a causal model the
perplexity with sliding windows. Both are compared with a unigram model. Everything is given per token, per word and in
bits per byte, with bootstrap intervals over documents or passages.

    python -m stages.perplexity_eval
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrace.compute.device import Device, named_out_of_memory, open_device
from retrace.compute.sharding import to_device
from retrace.core.errors import InputError, exit_cleanly
from retrace.core.files import STEADY_DIGITS, rounded, write_json
from retrace.core.guard import guarded
from retrace.core.paths import PRETRAINED, TEXT, TOKENS
from retrace.core.records import timed
from retrace.datasets.text import read_documents, text_path
from retrace.models.language_model import LanguageModel, read_language_model
from retrace.objectives.language_modelling import masked_batches, sliding_batches
from retrace.perplexity import measures
from retrace.perplexity.losses import ENDS, document_losses, pseudo_losses, sample_passages, sizes_of
from retrace.perplexity.settings import PerplexityParams
from retrace.tokens.blocks import open_stream
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, load_tokenizer

PARTS = ("valid", "test")


def main() -> None:
    params = PerplexityParams.read()
    device = open_device(params.perplexity.seed, params.precision)
    with (
        guarded(f"perplexity-{device.rank}", [TEXT, TOKENS, PRETRAINED], params.settings),
        timed("perplexity-eval", device.is_main),
        device.together(),
        named_out_of_memory("perplexity-eval", trains=False),
    ):
        tokenizer = load_tokenizer(PRETRAINED)
        vocabulary = Vocabulary.of(tokenizer)
        model = to_device(read_language_model(PRETRAINED, params.perplexity.seed, device.attention), device).eval()
        train = open_stream(TOKENS / "train.npy")
        splits, every = {}, {}
        for part in PARTS:
            text = held_out(TOKENS / f"{part}.npy", text_path(TEXT, part), tokenizer)
            every[part] = measure(model, text, tokenizer, params, device)
            if device.is_main:
                unigram = measures.unigram_losses(train, text.stream, text.lengths, vocabulary.size, vocabulary.special)
                samples, seed = params.bootstrap_samples, params.bootstrap_seed
                baseline = (unigram, text.sizes)
                splits[part] = measures.with_intervals(every[part], baseline, samples, seed, text.unknown_share)
                found = {name: figures.perplexity_per_token for name, figures in splits[part].measures.items()}
                said = (f"{name} {value:.2f}" for name, value in found.items() if value is not None)
                print(f"{part}: {'  '.join(said)}")
        if device.is_main:
            report = measures.PerplexityReport(splits=splits)
            measures.write_documents(every)
            write_json(measures.PERPLEXITY_DETAILS, rounded(report.to_json(), STEADY_DIGITS))
            write_json(measures.PERPLEXITY, rounded(report.headlines.to_json()))  # last, as git tracks it


@dataclass(frozen=True)
class HeldOutText:
    """Validation or test text, its tokens and the sizes of its documents."""

    path: Path
    stream: np.ndarray
    lengths: np.ndarray  # (D,), the number of tokens of each document
    sizes: measures.Sizes

    @property
    def unknown_share(self) -> float:
        """The share of the tokens that the tokenizer does not know; 0 in an empty text."""
        tokens = self.lengths.sum() - ENDS * len(self.lengths)
        return float(1 - self.sizes.tokens.sum() / tokens) if tokens else 0.0


def held_out(tokens: Path, text: Path, tokenizer: SubwordTokenizer) -> HeldOutText:
    """A text with its token stream.

    Raises InputError if the stream was not made from the text.
    """
    stream = open_stream(tokens)
    lengths, sizes = sizes_of(read_documents(text), tokenizer)
    if lengths.sum() != len(stream):
        raise InputError(f"{tokens}: these are not the tokens of {text}; run tokenize again")
    return HeldOutText(text, stream, lengths, sizes)


def measure(
    model: LanguageModel, text: HeldOutText, tokenizer: SubwordTokenizer, params: PerplexityParams, device: Device
) -> dict[str, measures.Measured]:
    """The model's losses on the text, by kind of perplexity: causal, or masked and pseudo."""
    settings, block, vocabulary = params.perplexity, params.block_size, Vocabulary.of(tokenizer)
    if model.objective == "causal":
        batches = sliding_batches(text.stream, block, min(settings.stride, block), vocabulary)
        return {"causal": (document_losses(model, batches, text.lengths, device), text.sizes)}
    batches = masked_batches(text.stream, block, settings.mask_rate, vocabulary)
    documents = read_documents(text.path)
    passages = sample_passages(documents, tokenizer, settings.pseudo_passages, block, settings.seed)
    return {
        "masked": (document_losses(model, batches, text.lengths, device), text.sizes),
        "pseudo": pseudo_losses(model, passages, vocabulary, device),
    }


if __name__ == "__main__":
    exit_cleanly(main)
