"""The benchmarks against transformers' `Trainer`."""

import sys
import time
from argparse import Namespace
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import Trainer, default_data_collator

from retrace.core.files import write_text
from retrace.core.paths import DATA, PRETRAINED, TEXT, TOKENIZER
from retrace.datasets.text import text_path
from retrace.models.heads import make_model
from retrace.tokens.tokenizer import save_tokenizer
from tests import tiny
from tests.toy import copy_settings
from tests.unit.stages.test_pretrain import write_tokenized


@pytest.fixture(autouse=True)
def _without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Trainer` sends batches to any GPU, even where ACCELERATE_USE_CPU keeps the model on the CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


def test_a_side_is_measured_by_this_checkouts_program_in_the_projects_folder(tmp_path: Path, monkeypatch) -> None:
    """Which may be a clone with benchmarks of another version."""
    for name in ("this", "clone"):
        program = tmp_path / name / "benchmarks/one.py"
        program.parent.mkdir(parents=True)
        program.write_text(f"from pathlib import Path\nprint('[\"{name}\", \"' + Path.cwd().name + '\"]')\n")
    harness = import_module("harness")
    monkeypatch.setattr(harness, "ROOT", tmp_path / "this")
    monkeypatch.setattr(sys, "argv", ["benchmarks/one.py", "--seeds", "1"])
    monkeypatch.chdir(tmp_path / "clone")
    assert harness.in_process("one", seed=1) == ["this", "clone"]


def test_lines_end_in_one_sep_whether_they_are_cut_or_not(here: Path) -> None:
    encoded_lines = import_module("pretraining").encoded_lines
    TOKENIZER.mkdir(parents=True)
    save_tokenizer(tiny.tiny_tokenizer(), TOKENIZER, lowercase=True)
    write_text(text_path(TEXT, "valid"), f" {tiny.TEXT[0]} \n")
    whole = tiny.tiny_tokenizer().encode(tiny.TEXT[0]).ids
    assert encoded_lines("valid", 512) == encoded_lines("valid", len(whole)) == [whole]
    assert encoded_lines("valid", 6) == [[*whole[:5], whole[-1]]]


@pytest.mark.parametrize("text_epochs", [0, 1])
def test_pretraining_is_measured_on_the_running_text_alone(here: Path, monkeypatch, text_epochs: int) -> None:
    """Like the Trainer's; what follows it in the stream is outside of the vocabulary here."""
    pretraining, stream = import_module("pretraining"), tiny.tiny_stream(tiny.tiny_tokenizer())
    project = write_tokenized(here, np.append(stream, np.full_like(stream, 999)), len(stream))
    project.set("pretrain.text_epochs", text_epochs)
    write_text(text_path(TEXT, "valid"), "\n".join(tiny.TEXT[:20]))
    monkeypatch.setattr(pretraining, "TRIAL", 2)  # updates
    found = pretraining.retrace(Namespace(seed=1, seconds=0.1))
    assert found["tokens_a_second"] > 0


@pytest.mark.parametrize(
    ("task", "sides"),
    [
        ("sst2", ("sentences_here", "sentences_there")),
        ("squad", ("windows_here", "windows_there")),
    ],
)
def test_every_side_tunes_with_the_dropout_of_the_settings(here: Path, monkeypatch, task: str, sides) -> None:
    fine_tuning = import_module("fine_tuning")
    copy_settings(here).set(f"{task}.dropout", 0.3)
    tiny.tiny_pretrained(PRETRAINED)
    tiny.tiny_sentences(DATA, ["the songs were charming\t1", "the ale was stale\t0"])
    tiny.tiny_questions(DATA, tiny.TEXT[0], {"who founded the guild ?": "Ada Lund"})

    found: list[set[float]] = []

    def keep(model: nn.Module) -> None:
        found.append({layer.p for layer in model.modules() if isinstance(layer, nn.Dropout)})

    def tuned_here(task: object, model: nn.Module, *others: object) -> dict[str, float]:
        keep(model)
        return {"examples_a_second": 1.0}

    def train_there(model: nn.Module, *others: object) -> tuple[float, int]:
        keep(model)
        return 1.0, 0

    monkeypatch.setattr(fine_tuning, "tuned_here", tuned_here)
    monkeypatch.setattr(fine_tuning, "train_there", train_there)
    for side in sides:
        getattr(fine_tuning, side)(Namespace(seed=1, sentences=2, windows=1, lr=None))
    assert found == [{0.3}] * len(sides)


def test_the_trainers_seconds_begin_after_its_set_up(monkeypatch) -> None:
    """As Retrace's do: those of updates and of drawing batches."""
    now, create, late = time.perf_counter, Trainer.create_optimizer, [0]

    def create_late(trainer: Trainer) -> torch.optim.Optimizer:
        late.append(1000)
        return create(trainer)

    monkeypatch.setattr(time, "perf_counter", lambda: now() + sum(late))
    monkeypatch.setattr(Trainer, "create_optimizer", create_late)
    seconds, tokens = _train_there()
    assert (seconds < 1000, tokens, late) == (True, 6, [0, 1000])


def test_the_trainer_has_as_many_threads_as_retrace(monkeypatch) -> None:
    """Left alone, torch takes one for each core, of which a virtual machine may have half as many as processors."""
    before = torch.get_num_threads()
    monkeypatch.setenv("RETRACE_THREADS", str(before + 1))
    _train_there()
    found = torch.get_num_threads()
    torch.set_num_threads(before)
    assert found == before + 1


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
def test_on_a_gpu_the_trainer_has_only_one_and_its_seconds_end_with_its_last_update(monkeypatch) -> None:
    """As Retrace's do; its loading processes are still at work then, as there are more examples."""
    trainer_gpu, config = import_module("trainer_gpu"), tiny.tiny_config("bert", tiny.tiny_tokenizer())
    now, train, late, done = time.perf_counter, Trainer.train, [0], list[Any]()

    def train_late(trainer: Any) -> Any:
        done.extend(["train", len(trainer.train_dataset)])
        found = train(trainer)
        late.append(1000)
        return found

    monkeypatch.setattr(time, "perf_counter", lambda: now() + sum(late))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(Trainer, "train", train_late)
    monkeypatch.setattr(trainer_gpu, "lease_gpus", lambda: done.append("lease"))
    monkeypatch.setattr(trainer_gpu, "find_model", lambda name: SimpleNamespace(config=config))
    monkeypatch.setattr(trainer_gpu, "CELL", replace(trainer_gpu.CELL, batch=4, length=32))
    monkeypatch.setattr(trainer_gpu, "WARM_UP", 1)
    found = trainer_gpu.trainer(Namespace(updates=2))
    assert (found["seconds_an_update"] < 500, late) == (True, [0, 1000])
    assert done == ["lease", "train", (1 + 2 + 1) * 4]


def _train_there() -> tuple[float, int]:
    """Seconds and tokens of an update of a tiny classifier."""
    model = make_model("classifier", tiny.tiny_config("bert", tiny.tiny_tokenizer()), 0, "eager")
    rows = [{"input_ids": [2, 5, 3], "attention_mask": [1, 1, 1], "labels": 0}] * 2
    return import_module("harness").train_there(model, rows, default_data_collator, 2, 1, 1e-3)
