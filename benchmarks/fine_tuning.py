"""Retrace's fine-tuning compared with transformers' `Trainer`: examples per second, and accuracy after one epoch.

Both start from the project's pretrained model, with the task's dropout. `Trainer` is used as the `run_glue` and
`run_qa` examples use it: batches of 32 sentences padded to the longest, or of 12 windows padded to the full length,
AdamW, float32; on sentences once at the examples' learning rate and once at the best of a few. On questions only speed
is compared, since a model learns nothing there in so short a time: on the same windows, and on those of `run_qa`, which
trains on every window of a passage, whereas the preset `real` has one window of 128 tokens per question.

    python benchmarks/fine_tuning.py --project FOLDER   # a clone with SST-2 and SQuAD, after `dvc repro pretrain`
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness import best_rate, fast_tokenizer, in_turn, make_parser, run_side, train_there, write_result
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    default_data_collator,
)

from retrace.compute.device import open_device
from retrace.compute.sharding import to_device
from retrace.core.paths import PRETRAINED, QUESTIONS, TASKS
from retrace.core.settings import read_params
from retrace.finetuning.method import read_method
from retrace.finetuning.run import TaskObjective
from retrace.finetuning.task import predict
from retrace.models.heads import set_dropout
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import ExtractiveTask
from retrace.tasks.question_answering.settings import settings_of
from retrace.training.loop import Run, train

DEFAULT, RATES = 2e-5, (3e-4, 1e-3, 3e-3)  # the Trainer's learning rates on sentences
SENTENCES, WINDOWS = 32, 12  # examples of a batch on the Trainer's side
READING_RATE = 3e-5


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=20_000, help="trained on, once")
    parser.add_argument("--windows", type=int, default=960, help="of passages trained on, once")
    arguments = parser.parse_args()
    sides = {
        "retrace": sentences_here, "trainer": sentences_there,
        "reading": windows_here, "reading-trainer": windows_there,
        "passages-trainer": partial(windows_there, train_length=None),  # every window of each passage
    }  # fmt: skip
    if run_side(sides, arguments):
        return
    tuned = best_rate("trainer", RATES, "accuracy", largest=True)
    rates = {"retrace": ("retrace", None), "trainer": ("trainer", DEFAULT), "trainer, tuned": ("trainer", tuned)}
    sentences = in_turn(arguments.seeds, rates)
    readers = {"trainer": "reading-trainer", "trainer, whole passages": "passages-trainer"}
    windows = in_turn(
        arguments.seeds,
        {"retrace": ("reading", None), **{name: (side, READING_RATE) for name, side in readers.items()}},
    )
    limits = {"seeds": arguments.seeds, "sentences": arguments.sentences, "windows": arguments.windows}
    write_result(
        "fine_tuning", {**limits, "sst2": {**sentences, **ratio(sentences)}, "squad": {**windows, **ratio(windows)}}
    )


def ratio(found: dict[str, Any]) -> dict[str, float]:
    """How many times as fast as the Trainer on the same examples, and in questions per second on those of `run_qa`."""
    here, same = (found[name]["examples_a_second"]["median"] for name in ("retrace", "trainer"))
    ratios = {"times_as_fast": round(here / same, 2)}
    if "trainer, whole passages" in found:
        here, there = (found[name]["questions_a_second"]["median"] for name in ("retrace", "trainer, whole passages"))
        ratios["times_as_fast_in_questions"] = round(here / there, 2)
    return ratios


def sentences_here(arguments: argparse.Namespace) -> dict[str, float]:
    """Retrace on sentences of similar length."""
    task, settings, device = opened(Classification, TASKS / "sst2", arguments.sentences, arguments.seed)
    model = started(task, settings, arguments.seed, device)
    figures = tuned_here(task, model, settings, arguments.seed, device)
    return {**figures, "accuracy": accuracy(task, model, device)}


def sentences_there(arguments: argparse.Namespace) -> dict[str, float]:
    """The same weights with dynamic padding."""
    task, settings, device = opened(Classification, TASKS / "sst2", arguments.sentences, arguments.seed)
    rows = [
        {"input_ids": example.ids, "attention_mask": [1] * len(example.ids), "labels": example.label}
        for example in TaskObjective(task, settings, arguments.seed).examples
    ]
    model = started_there(AutoModelForSequenceClassification, settings)
    collator = DataCollatorWithPadding(fast_tokenizer(PRETRAINED))
    seconds, _ = train_there(model, rows, collator, SENTENCES, arguments.seed, arguments.lr or DEFAULT)
    return {"examples_a_second": len(rows) / seconds, "accuracy": accuracy(task, model, device)}


def windows_here(arguments: argparse.Namespace) -> dict[str, float]:
    """Retrace on windows of similar length."""
    task, settings, device = opened(ExtractiveTask, QUESTIONS / "squad", arguments.windows, arguments.seed)
    model = started(task, settings, arguments.seed, device)
    figures = tuned_here(task, model, settings, arguments.seed, device)
    per_window = 1.0 if settings.train_length else questions_per_window(task.examples("train"))
    return {**figures, "questions_a_second": figures["examples_a_second"] * per_window}


def windows_there(arguments: argparse.Namespace, **changed: object) -> dict[str, float]:
    """The same windows, or those of changed settings, padded to the full length."""
    task, settings, _ = opened(ExtractiveTask, QUESTIONS / "squad", arguments.windows, arguments.seed, **changed)
    longest = settings.train_length or settings.max_length
    rows = [
        {
            "input_ids": [*window.ids, *[0] * (longest - len(window.ids))],
            "attention_mask": [1] * len(window.ids) + [0] * (longest - len(window.ids)),
            "start_positions": window.start,
            "end_positions": window.end,
        }
        for window in TaskObjective(task, settings, arguments.seed).examples
    ]
    model = started_there(AutoModelForQuestionAnswering, settings)
    seconds, _ = train_there(model, rows, default_data_collator, WINDOWS, arguments.seed, READING_RATE)
    found = len(rows) / seconds
    return {"examples_a_second": found, "questions_a_second": found * questions_per_window(task.examples("train"))}


def started_there(kind: Any, settings: Any) -> Any:
    """The same weights in one of transformers' classes, with the task's dropout."""
    model = kind.from_pretrained(PRETRAINED)
    if settings.dropout is not None:
        set_dropout(model, settings.dropout)
    return model


def questions_per_window(windows: Sequence[Any]) -> float:
    """How many questions there are for each window, at most 1."""
    return len({window.question.id for window in windows}) / len(windows)


def opened(kind: Any, data: Path, examples: int, seed: int, **changed: object) -> tuple[Any, Any, Any]:
    """A task, its settings and a device: the project's settings, some of which may be changed, for one epoch.

    R-Drop, which Trainer lacks, is left out.
    """
    given = {"max_train_examples": examples, "epochs": 1, "rdrop": 0.0} | changed
    settings = settings_of(read_params(), data.name).model_copy(update=given)
    return kind.read(data, PRETRAINED, settings), settings, open_device(seed)


def started(task: Any, settings: Any, seed: int, device: Any) -> Any:
    """The project's pretrained model with the task's head and dropout, as its stage starts with."""
    model = read_method({}, "full").start(task.head, PRETRAINED, seed, device.attention, task.classes, settings.dropout)
    return to_device(task.wrap(model), device)


def tuned_here(task: Any, model: Any, settings: Any, seed: int, device: Any) -> dict[str, float]:
    """One epoch of Retrace's fine-tuning."""
    objective = TaskObjective(task, settings, seed)
    run = Run("retrace", model, objective, device, settings.optimizer, settings.lr, 1)
    shapes = [objective.part(batch, slice(None), device)["ids"].shape for batch in objective.batches(1)]
    speed = train(run, lambda epoch, meter: None)
    return {
        "examples_a_second": sum(rows for rows, _ in shapes) / speed.seconds,
        "waiting_percent": 100 * speed.waited / speed.seconds,
        "padding_percent": 100 * (1 - speed.tokens / sum(rows * longest for rows, longest in shapes)),
    }


def accuracy(task: Any, model: Any, device: Any) -> float:
    """The share of held-out sentences that are classified correctly."""
    examples: Sequence[Any] = task.examples("dev")
    scores, _ = predict(task, model.eval(), examples, 64, device)
    return sum(int(score.argmax()) == e.label for score, e in zip(scores, examples, strict=True)) / len(examples)


if __name__ == "__main__":
    main()
