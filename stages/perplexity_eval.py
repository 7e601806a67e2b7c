"""Perplexity on held-out text: models/pretrained and models/tokens → reports/perplexity.json,
reports/perplexity-details.json and reports/perplexity-documents.parquet.

For a masked model these are the perplexity over fixed masks and the pseudo-perplexity of a sample of passages, for a
causal one the perplexity with sliding windows, beside a unigram baseline; each per token, per word and per byte of the
original text, with an interval for the choice of documents.

    python -m stages.perplexity_eval
"""

from pathlib import Path

import numpy as np

from retrace.compute.device import named_out_of_memory, open_device
from retrace.compute.sharding import to_device
from retrace.core.errors import InputError, exit_cleanly
from retrace.core.files import STEADY_DIGITS, rounded, write_json
from retrace.core.guard import guarded
from retrace.core.paths import PRETRAINED, TEXT, TOKENS
from retrace.core.records import timed
from retrace.datasets.text import read_documents, text_path
from retrace.models.language_model import read_language_model
from retrace.objectives.language_modelling import masked_batches, sliding_batches
from retrace.perplexity import measures
from retrace.perplexity.losses import document_losses, pseudo_losses, sample_passages, sizes_of
from retrace.perplexity.settings import PerplexityParams
from retrace.tokens.blocks import open_stream
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, load_tokenizer

PARTS = ("valid", "test")


def main() -> None:
    params = PerplexityParams.read()
    settings, block = params.perplexity, params.block_size
    device = open_device(settings.seed, params.precision)
    with (
        guarded(f"perplexity-{device.rank}", [TEXT, TOKENS, PRETRAINED], params.settings),
        timed("perplexity-eval", device.is_main),
        named_out_of_memory("perplexity-eval", trains=False),
    ):
        tokenizer = load_tokenizer(PRETRAINED)
        vocabulary = Vocabulary.of(tokenizer)
        model = to_device(read_language_model(PRETRAINED, settings.seed, device.attention), device).eval()
        train = open_stream(TOKENS / "train.npy")
        splits, every = {}, {}
        for part in PARTS:
            text = text_path(TEXT, part)
            stream, lengths, sizes = held_out(TOKENS / f"{part}.npy", text, tokenizer)
            if model.objective == "causal":
                batches = sliding_batches(stream, block, min(settings.stride, block), vocabulary)
            else:
                batches = masked_batches(stream, block, settings.mask_rate, vocabulary)
            measured = {model.objective: (document_losses(model, batches, lengths, device), sizes)}
            if model.objective == "masked":
                count = settings.pseudo_passages
                passages = sample_passages(read_documents(text), tokenizer, count, block, settings.seed)
                measured["pseudo"] = pseudo_losses(model, passages, vocabulary, device)
            every[part] = measured
            if device.is_main:
                unigram = measures.unigram_losses(train, stream, lengths, vocabulary.size, vocabulary.special)
                samples, seed = params.bootstrap_samples, params.bootstrap_seed
                splits[part] = measures.with_intervals(measured, (unigram, sizes), samples, seed)
                found = {name: of.perplexity_per_token for name, of in splits[part].measures.items()}
                print(f"{part}: " + "  ".join(f"{name} {of:.2f}" for name, of in found.items() if of is not None))
        if device.is_main:
            report = measures.PerplexityReport(splits=splits)
            measures.write_documents(every)
            write_json(measures.PERPLEXITY_DETAILS, rounded(report.to_json(), STEADY_DIGITS))
            write_json(measures.PERPLEXITY, rounded(report.headlines.to_json()))  # last, as git tracks it


def held_out(tokens: Path, text: Path, tokenizer: SubwordTokenizer) -> tuple[np.ndarray, np.ndarray, measures.Sizes]:
    """A token stream, the number of tokens of each of its documents, (D,), and their sizes.

    Raises InputError if the stream was not made from the text.
    """
    stream = open_stream(tokens)
    lengths, sizes = sizes_of(read_documents(text), tokenizer)
    if lengths.sum() != len(stream):
        raise InputError(f"{tokens}: these are not the tokens of {text}; run tokenize again")
    return stream, lengths, sizes


if __name__ == "__main__":
    exit_cleanly(main)
