"""What benchmarks share: options, results and, against transformers' `Trainer`, running each side in a process."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # so that a program sees the stages whatever folder it runs in

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]
Side = Callable[[argparse.Namespace], dict[str, float]]


def plain_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser whose help is a program's docstring."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every benchmark against the `Trainer`."""
    parser = plain_parser(description)
    parser.add_argument("--project", type=Path, default=ROOT, help="a clone in which `dvc repro` has run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--side", help=argparse.SUPPRESS)  # given by the benchmark itself
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--lr", type=float, help=argparse.SUPPRESS)
    return parser


def run_side(sides: Mapping[str, Side], arguments: argparse.Namespace) -> bool:
    """Whether this process is one side; if so, prints its figures as json."""
    os.chdir(arguments.project)
    if arguments.side:
        print(json.dumps(sides[arguments.side](arguments)))
    return bool(arguments.side)


def in_process(side: str, **options: object) -> dict[str, float]:
    """The figures of one side, from a new process with the same command line plus `options`, in the project's folder.

    The program is this checkout's: the project may be another version's clone, with benchmarks of its own.
    """
    said = [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]
    program = ROOT / "benchmarks" / Path(sys.argv[0]).name
    command = [sys.executable, program, *sys.argv[1:], "--project", ".", "--side", side, *said]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{side} {' '.join(said)}: {found}", file=sys.stderr, flush=True)
    return found


def best_rate(side: str, rates: Sequence[float], measure: str, largest: bool = False) -> float:
    """The learning rate at which one run from the first seed does best in `measure`."""
    found = {rate: in_process(side, lr=rate)[measure] for rate in rates}
    return (max if largest else min)(found, key=lambda rate: found[rate])


def in_turn(seeds: Sequence[int], rates: Mapping[str, tuple[str, float | None]]) -> dict[str, Any]:
    """Every figure of each side: its median over the seeds and its range. `rates`: shown name → side and rate."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in rates}
    for seed in seeds:
        for name, (side, rate) in rates.items():
            found[name].append(in_process(side, seed=seed, lr=rate))
    return {
        name: {"lr": rates[name][1], **{measure: _summary([run[measure] for run in runs]) for measure in runs[0]}}
        for name, runs in found.items()
    }


def seconds_in_turn(
    sides: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each call of each side, by a clock."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            began = clock()
            call()
            found[name].append(clock() - began)
    return found


def write_result(name: str, result: Mapping[str, Any]) -> None:
    """Print the figures and save them next to the benchmark."""
    from retrace.core.environment import cores

    text = json.dumps({"cores": cores(), **result}, indent=2)
    (ROOT / "benchmarks" / f"{name}.json").write_text(text + "\n")
    print(text)


def fast_tokenizer(folder: Path) -> Any:
    """The tokenizer as transformers has it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def train_there(
    model: Any, examples: Sequence[Mapping[str, Any]], collator: Any, batch_size: int, seed: int, lr: float,
    seconds: float | None = None,
) -> tuple[float, int]:  # fmt: skip
    """Train with `Trainer` and its other defaults: its seconds after set-up, and the examples' tokens without padding.

    Trains for one epoch, or for `seconds`, over which the rate then falls to 0 as it would over steps.
    """
    import torch
    from torch.optim.lr_scheduler import LambdaLR
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from retrace.compute.device import threads

    torch.set_num_threads(threads(1))  # as many as Retrace has
    began = time.perf_counter()

    class TimedTrainer(Trainer):
        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
            if seconds is None:
                return super().create_scheduler(num_training_steps, optimizer)
            self.lr_scheduler = LambdaLR(optimizer or self.optimizer, lambda step: max(0.0, 1 - passed() / seconds))
            return self.lr_scheduler

    class TimeLimit(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            nonlocal began
            began = time.perf_counter()  # after its set-up, as in Retrace's seconds

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            control.should_training_stop = seconds is not None and passed() >= seconds

    def passed() -> float:
        return time.perf_counter() - began

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=batch_size, learning_rate=lr, seed=seed, report_to="none",
            num_train_epochs=1 if seconds is None else 10**4, save_strategy="no", logging_strategy="no",
            disable_tqdm=True, remove_unused_columns=False, dataloader_pin_memory=False,
            include_num_input_tokens_seen="non_padding",
        )  # fmt: skip
        trainer = TimedTrainer(
            model=model, args=arguments, train_dataset=examples, data_collator=collator, callbacks=[TimeLimit()]
        )
        trainer.train()
        return passed(), trainer.state.num_input_tokens_seen


def _summary(values: Sequence[float]) -> dict[str, Any]:
    return {"median": round(statistics.median(values), 4), "range": [round(min(values), 4), round(max(values), 4)]}
