"""Retrace's training beside transformers' `Trainer` on the same text, sentences, model sizes and cores.

Each side runs in a process of its own, in turn with the other, once a seed; medians and the range go to a
json file. `Trainer` is used as the `run_mlm` and `run_glue` examples use it: lines (or sentences) as they
are, padded to the longest of a batch, its default optimiser, float32. Pretraining compares post-norm BERT
there with Retrace's own recipe; fine-tuning starts both sides from the same pretrained folder.

    python benchmarks/trainer.py                    # the sample, after `dvc repro`
    python benchmarks/trainer.py --project FOLDER   # another clone, such as one with WikiText-2
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # so that a side sees the stages whatever folder it runs in

LINE, SENTENCE = 128, 64  # most tokens of a line and of a sentence
SIDES = ("retrace", "trainer")
TASKS = {"pretraining": "tokens_a_second", "fine-tuning": "examples_a_second"}


def main() -> None:
    arguments = parse()
    os.chdir(arguments.project)
    if arguments.side:
        print(json.dumps(side(arguments.task, arguments.side)(arguments.seed, arguments.steps)))
        return
    result: dict[str, Any] = {"steps": arguments.steps, "seeds": arguments.seeds, "cores": os.cpu_count()}
    for task, measure in TASKS.items():
        found: dict[str, list[float]] = {name: [] for name in SIDES}
        for seed in arguments.seeds:
            for name in SIDES:
                found[name].append(in_process(task, name, seed, arguments.steps)[measure])
        figures = {name: {"median": statistics.median(v), "range": [min(v), max(v)]} for name, v in found.items()}
        ratio = figures["retrace"]["median"] / figures["trainer"]["median"]
        result[task] = {"unit": measure.replace("_", " "), **figures, "ratio": round(ratio, 2)}
    (ROOT / "benchmarks" / "trainer.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def parse() -> argparse.Namespace:
    """The command line; a side is started by the benchmark itself."""
    parser = argparse.ArgumentParser(description="Retrace beside transformers' Trainer.")
    parser.add_argument("--project", type=Path, default=ROOT, help="a clone in which `dvc repro` has run")
    parser.add_argument("--steps", type=int, default=150, help="updates of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args()


def in_process(task: str, name: str, seed: int, steps: int) -> dict[str, float]:
    """One run of one side in a new process."""
    command = [sys.executable, __file__, "--project", ".", "--task", task, "--side", name]
    done = subprocess.run(
        [*command, "--seed", str(seed), "--steps", str(steps)], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def side(task: str, name: str) -> Callable[[int, int], dict[str, float]]:
    """What measures one side of a task."""
    sides = {
        ("pretraining", "retrace"): pretrain_here,
        ("pretraining", "trainer"): pretrain_there,
        ("fine-tuning", "retrace"): tune_here,
        ("fine-tuning", "trainer"): tune_there,
    }
    return sides[task, name]


def pretrain_here(seed: int, steps: int) -> dict[str, float]:
    """Retrace's recipe on packed blocks."""
    from stages import pretrain
    from stages.corpus.blocks import open_stream
    from stages.corpus.tokenizer import load_tokenizer
    from stages.harness.device import open_device
    from stages.training.loop import Run, train

    settings = pretrain.read_settings()
    recipe, device = settings.pretrain, open_device(seed, settings.precision)
    stream = open_stream(pretrain.TOKENS / "train.npy")[: (steps * recipe.batch_size + 2) * recipe.block]
    model, objective = pretrain.start(settings, load_tokenizer(pretrain.TOKENIZER), stream, device)
    run = Run("retrace", model, objective, device, recipe.optimiser, settings.lr, 1)
    speed = train(run, lambda epoch, loss, meter: None)
    return {"tokens_a_second": speed.tokens / speed.seconds, "waited": speed.waited / speed.seconds}


def pretrain_there(seed: int, steps: int) -> dict[str, float]:
    """BERT of the same size on padded lines."""
    from transformers import BertForMaskedLM, DataCollatorForLanguageModeling

    from stages import pretrain
    from stages.corpus.text import read_documents
    from stages.harness.settings import check_value, read_params
    from stages.nets.heads import make_config
    from stages.nets.vocabulary import Vocabulary

    settings, tokenizer = pretrain.read_settings(), fast_tokenizer(pretrain.TOKENIZER)
    text = Path("data") / check_value(read_params(), "data", str) / "text" / "wiki.train.tokens"
    lines = [line for document in read_documents(text) for line in document.splitlines()]
    size = steps * settings.pretrain.batch_size
    examples = [{"input_ids": tokenizer(line, truncation=True, max_length=LINE).input_ids} for line in lines[:size]]
    vocabulary = Vocabulary.of(tokenizer.backend_tokenizer)
    model = BertForMaskedLM(make_config("bert", replace(settings.model, rope_theta=None), vocabulary))
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    seconds = trained(model, examples, collator, settings.pretrain.batch_size, seed, lr=5e-5)
    return {"tokens_a_second": sum(len(example["input_ids"]) for example in examples) / seconds}


def tune_here(seed: int, steps: int) -> dict[str, float]:
    """Retrace on sentences of similar length."""
    from stages.corpus.tokenizer import load_tokenizer
    from stages.harness.device import open_device
    from stages.tasks.sst2 import Sentiment
    from stages.training.cell import PRETRAINED
    from stages.training.fine_tuning import TaskObjective
    from stages.training.loop import Run, train
    from stages.tuning import full

    source, settings = sentences()
    device = open_device(seed)
    task = Sentiment(source, load_tokenizer(PRETRAINED), SENTENCE)
    objective = TaskObjective(task, settings(steps), seed, device.place)
    model = device.placed(full.start(task.head, PRETRAINED, seed, device.attention))
    run = Run("retrace", model, objective, device, settings(steps).optimiser, settings(steps).lr, 1)
    speed = train(run, lambda epoch, loss, meter: None)
    examples = min(len(task.examples("train")), settings(steps).examples)
    return {"examples_a_second": examples / speed.seconds, "waited": speed.waited / speed.seconds}


def tune_there(seed: int, steps: int) -> dict[str, float]:
    """The same weights with dynamic padding."""
    from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding

    from stages.corpus.glue import read_sentences
    from stages.corpus.source import sentences_path
    from stages.training.cell import PRETRAINED

    source, settings = sentences()
    tokenizer, batch = fast_tokenizer(PRETRAINED), settings(steps).batch_size
    read = read_sentences(sentences_path(source, "train"))[: steps * batch]
    examples = [
        {"input_ids": tokenizer(s.text, truncation=True, max_length=SENTENCE).input_ids, "labels": s.label}
        for s in read
    ]
    model = AutoModelForSequenceClassification.from_pretrained(PRETRAINED)
    seconds = trained(model, examples, DataCollatorWithPadding(tokenizer), batch, seed, lr=2e-5)
    return {"examples_a_second": len(examples) / seconds}


def sentences() -> tuple[Path, Callable[[int], Any]]:
    """Where the sentences are, and the settings of fine-tuning for so many steps."""
    from stages.corpus.source import source_folder
    from stages.harness.settings import build, check_value, profile_key, read_params
    from stages.training.settings import FineTuneSettings

    params = read_params()
    found = build(FineTuneSettings, params, profile_key(params, "sst2"))

    def limited(steps: int) -> FineTuneSettings:
        return FineTuneSettings(**{**vars(found), "examples": steps * found.batch_size, "epochs": 1})

    return source_folder(check_value(params, "data", str)), limited


def fast_tokenizer(folder: Path) -> Any:
    """The tokenizer as transformers has it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def trained(model: Any, examples: list[dict[str, Any]], collator: Any, batch_size: int, seed: int, lr: float) -> float:
    """Seconds of one epoch by `Trainer`."""
    import tempfile

    from transformers import Trainer, TrainingArguments

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=batch_size, num_train_epochs=1, learning_rate=lr, seed=seed,
            report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True, remove_unused_columns=False,
        )  # fmt: skip
        trainer = Trainer(model=model, args=arguments, train_dataset=examples, data_collator=collator)
        return trainer.train().metrics["train_runtime"]


if __name__ == "__main__":
    main()
