"""BERT-base's pretraining on a GPU compared with transformers' `Trainer`: tokens per second on blocks of the same size.

Both use batches of 16 blocks of 512 tokens, masked as in BERT, and fused AdamW. `Trainer` runs once as it is (float32)
and once with what is usually set on a GPU, bf16 and data-loading workers; Retrace also runs compiled. Each side runs in
its own process; the first updates are not timed.

    python benchmarks/trainer_gpu.py        # a GPU; writes trainer_gpu.json
"""

import argparse
import os
import tempfile
import time
from functools import partial
from typing import Any

import torch
from full_size import CELLS, MASKED, WARM_UP, measure
from harness import in_process, make_parser, run_side, write_result

from retrace.compute.lease import lease_gpus
from retrace.estimates.architectures import find_model

CELL = CELLS["bert-wikitext2, pretraining"]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--updates", type=int, default=100, help="that are timed")
    arguments = parser.parse_args()
    sides = {
        "retrace": retrace, "retrace, compiled": partial(retrace, compiled="true"),
        "trainer": trainer, "trainer, bf16": partial(trainer, bf16=True),
    }  # fmt: skip
    if run_side(sides, arguments):
        return
    found = {side: in_process(side) for side in sides}
    speeds = {side: figures["tokens_a_second"] for side, figures in found.items()}
    times = {f"times_the_{side}": round(speeds["retrace"] / speeds[side], 2) for side in ("trainer", "trainer, bf16")}
    write_result(
        "trainer_gpu", {"device": torch.cuda.get_device_name(), "updates": arguments.updates, **found, **times}
    )


def retrace(arguments: argparse.Namespace, compiled: str = "false") -> dict[str, float]:
    """Retrace's loop."""
    os.environ["RETRACE_COMPILE"] = compiled
    found = measure(CELL, 1, arguments.updates)
    kept = ("tokens_a_second", "seconds_an_update", "percent_of_peak", "peak_mebibytes", "planned_mebibytes")
    return {name: found[name] for name in kept}


def trainer(arguments: argparse.Namespace, bf16: bool = False) -> dict[str, float]:
    """The same model and batches with `Trainer`."""
    lease_gpus()  # as Retrace does: `Trainer` takes all GPUs that it sees, with a batch for each

    from tokenizers import Tokenizer, models
    from transformers import (
        BertForMaskedLM,
        DataCollatorForLanguageModeling,
        PreTrainedTokenizerFast,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    config, updates, clock = find_model(CELL.model).config, arguments.updates, list[float]()
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
    words = {word: number for number, word in enumerate([*special.values(), *map(str, range(3, config.vocab_size))])}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, "[UNK]")), **special)
    # One batch more than it trains on, or the processes that load batches would end within the last update.
    rows = (WARM_UP + updates + 1) * CELL.batch
    blocks = torch.randint(5, config.vocab_size, (rows, CELL.length)).tolist()

    class Timed(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == WARM_UP:
                clock.append(_idle())

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == WARM_UP + updates:
                clock.append(_idle())

    with tempfile.TemporaryDirectory() as folder:
        usual: dict[str, Any] = {"bf16": True, "dataloader_num_workers": 4} if bf16 else {}
        given = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=CELL.batch, max_steps=WARM_UP + updates, report_to="none",
            save_strategy="no", logging_strategy="no", disable_tqdm=True, optim="adamw_torch_fused", **usual,
        )  # fmt: skip
        examples: Any = [{"input_ids": block} for block in blocks]
        collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED)
        Trainer(BertForMaskedLM(config), given, collator, examples, callbacks=[Timed()]).train()
    began, ended = clock
    seconds = ended - began
    return {
        "tokens_a_second": round(updates * CELL.batch * CELL.length / seconds),
        "seconds_an_update": round(seconds / updates, 4),
        "peak_mebibytes": round(torch.cuda.max_memory_allocated() / 2**20),
    }


def _idle() -> float:
    """The time at which the GPU has done all that it was given."""
    torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
