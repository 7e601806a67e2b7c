"""Retrace's pretraining compared with transformers' `Trainer`: real tokens per second, and loss after equal time.

Both train a model of the same size on the same text for the same time and with the same tokenizer. `Trainer`
is used as the `run_mlm` example with `--line_by_line` uses it: BERT, lines up to 512 tokens in batches of 8,
padded to the longest, AdamW, float32; once at its default learning rate and once at the best of a few.
Afterwards both are evaluated on the same masked tokens of the validation text, once line by line and once in blocks.

    python benchmarks/pretraining.py --project FOLDER   # a clone with WikiText-2, after `dvc repro tokenize`
"""

import argparse
import math
from collections.abc import Sequence
from typing import Any

import torch
from harness import best_rate, fast_tokenizer, in_turn, make_parser, run_side, train_there, write_result
from torch.nn import functional
from transformers import BertForMaskedLM, DataCollatorForLanguageModeling

from retrace.compute.device import open_device
from retrace.compute.tensors import mask_of, padded
from retrace.core.paths import TEXT, TOKENIZER, TOKENS
from retrace.datasets.text import read_documents, text_path
from retrace.models.heads import make_config
from retrace.models.language_model import LanguageModel
from retrace.objectives.language_modelling import Masking, mask_blocks
from retrace.pretraining.run import EVALUATION_RATE, model_and_objective, open_training
from retrace.pretraining.settings import PretrainParams
from retrace.tokens.blocks import cut_blocks, open_stream
from retrace.tokens.settings import OWN
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, load_tokenizer
from retrace.training.loop import Run, Speed, train

LONGEST, BATCH = 512, 8  # tokens of a line, and lines of a batch, on the Trainer's side
ASKED = 128  # most tokens of a validation line
TRIAL = 50  # updates by which the speed of Retrace is measured
DEFAULT, RATES = 5e-5, (3e-4, 1e-3, 3e-3)  # the Trainer's learning rates


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=180.0, help="of training, on all cores")
    arguments = parser.parse_args()
    if run_side({"retrace": retrace, "trainer": trainer}, arguments):
        return
    tuned = best_rate("trainer", RATES, "loss_of_lines")
    sides = {"retrace": ("retrace", None), "trainer": ("trainer", DEFAULT), "trainer, tuned": ("trainer", tuned)}
    found = in_turn(arguments.seeds, sides)
    here, there, best = (found[name] for name in sides)
    speed = here["tokens_a_second"]["median"] / there["tokens_a_second"]["median"]
    nats = {
        f"nats_lower_{measure}": round(best[measure]["median"] - here[measure]["median"], 3)
        for measure in ("loss_of_lines", "loss_of_blocks")
    }
    limits = {"seconds": arguments.seconds, "seeds": arguments.seeds}
    write_result("pretraining", {**limits, **found, "times_as_fast": round(speed, 2), **nats})


def retrace(arguments: argparse.Namespace) -> dict[str, float]:
    """Retrace's recipe on packed blocks."""
    settings = PretrainParams.read().model_copy(update={"seed": arguments.seed})
    (stream, running), tokenizer = open_training(TOKENS), load_tokenizer(TOKENIZER)
    text = stream[:running]  # what the Trainer reads, without the tasks' texts after it
    device = open_device(arguments.seed, settings.precision)

    def trained(updates: int) -> tuple[LanguageModel, Speed]:
        model, objective = model_and_objective(settings, None, tokenizer, text, device, running)
        optimizer = settings.pretrain.optimizer
        run = Run("retrace", model, objective, device, optimizer, settings.lr, epochs=10**6, most_updates=updates)
        return model, train(run, lambda epoch, meter: None)

    # The schedule spans a number of updates, so the seconds are turned into updates first.
    _, trial = trained(TRIAL)
    model, speed = trained(max(1, round(TRIAL * arguments.seconds / trial.seconds)))
    return {
        "seconds": speed.seconds,
        "tokens_a_second": speed.tokens / speed.seconds,
        "waiting_percent": 100 * speed.waited / speed.seconds,
        **validation_losses(model.body),
    }


def trainer(arguments: argparse.Namespace) -> dict[str, float]:
    """BERT of the same size on padded lines."""
    settings, tokenizer = PretrainParams.read(), fast_tokenizer(TOKENIZER)
    examples = [{"input_ids": ids, "attention_mask": [1] * len(ids)} for ids in encoded_lines("train", LONGEST)]
    size = settings.model.model_copy(update={"rope_theta": None, "init_std": 0.02, "dropout": 0.1})  # as BERT has it
    vocabulary = Vocabulary.of(SubwordTokenizer(tokenizer.backend_tokenizer, OWN))
    model = BertForMaskedLM(make_config("bert", size, vocabulary))
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    seconds, tokens = train_there(
        model, examples, collator, BATCH, arguments.seed, arguments.lr or DEFAULT, arguments.seconds
    )
    return {"tokens_a_second": tokens / seconds, "seconds": seconds, **validation_losses(model)}


def encoded_lines(part: str, longest: int) -> list[list[int]]:
    """The text's lines as token ids with [CLS] and [SEP].

    WikiText's `<unk>` is [UNK], as in Retrace's blocks. Spelt out, it would be 16% of the tokens, and easy to guess for
    a model that was trained on such lines.
    """
    documents = read_documents(text_path(TEXT, part))
    lines = [line for document in documents for line in document.splitlines()]
    encoded = load_tokenizer(TOKENIZER).encode_documents([line for line in lines if line.strip()])
    return [[*ids[:-1][: longest - 1], ids[-1]] for ids in encoded]


def validation_losses(model: Any) -> dict[str, float]:
    """The mean loss in nats at 15% of the tokens, in float32: of lines as `Trainer` was trained on, and of blocks."""
    blocks = cut_blocks(open_stream(TOKENS / "valid.npy"), ASKED)
    return {
        "loss_of_lines": masked_loss(model, sorted(encoded_lines("valid", ASKED), key=len)),
        "loss_of_blocks": masked_loss(model, blocks.tolist()),
    }


def masked_loss(model: Any, rows: Sequence[list[int]]) -> float:
    """The mean loss in nats where tokens of the rows are masked, the same ones for every model."""
    vocabulary = Vocabulary.of(load_tokenizer(TOKENIZER))
    generator, total, count = torch.Generator().manual_seed(0), 0.0, 0
    model.eval()
    for start in range(0, len(rows), 32):
        batch = rows[start : start + 32]
        asked = mask_blocks(padded(batch, vocabulary.pad), Masking(EVALUATION_RATE), vocabulary, generator)
        with torch.no_grad():
            logits = model(input_ids=asked.ids, attention_mask=mask_of(batch)).logits
        labels = asked.labels[asked.has_target]
        total += functional.cross_entropy(logits[asked.has_target], labels, reduction="sum").item()
        count += len(labels)
    if not math.isfinite(total):
        raise ValueError("the validation loss is not finite")
    return total / count


if __name__ == "__main__":
    main()
