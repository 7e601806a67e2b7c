"""`retrace predict`: what fine-tuned models answer to texts, or to questions on a passage."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.special import log_softmax, logsumexp, softmax

from retrace.cli.terminal import print_table
from retrace.compute.device import Device, open_device
from retrace.core.errors import InputError
from retrace.core.paths import source_folder
from retrace.core.settings import build, read_params
from retrace.datasets.examples import Example
from retrace.datasets.squad import Question
from retrace.finetuning.method import read_method
from retrace.finetuning.run import WEIGHTS, Cell
from retrace.finetuning.settings import FineTuneParams
from retrace.finetuning.task import predict as scores_of
from retrace.models.heads import objective_of, read_config, takes_segments
from retrace.publishing.facts import read_tuning
from retrace.publishing.load import Tuning, read_tuned
from retrace.results.grid import Grid
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import ExtractiveTask
from retrace.tasks.question_answering.settings import FineTuneAnswerParams
from retrace.tokens.tokenizer import load_tokenizer

Row = dict[str, Any]
Method = typer.Option(help="of fine-tuning; the first of params.yaml if absent")
Seed = typer.Option(help="of fine-tuning; the first of params.yaml if absent")
Ensemble = typer.Option("--ensemble", help="the mean over all seeds: of probabilities, or of scores of tokens")


def predict(
    task: Annotated[str, typer.Argument(help="sst2, squad or a further task")],
    texts: Annotated[list[str] | None, typer.Argument(help="texts to classify; standard input if absent")] = None,
    passage: Annotated[Path | None, typer.Option(help="a file with a passage")] = None,
    question: Annotated[list[str], typer.Option(help="questions on the passage")] = [],  # noqa: B006
    method: Annotated[str | None, Method] = None,
    seed: Annotated[int | None, Seed] = None,
    ensemble: Annotated[bool, Ensemble] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="a line of JSON each, as where output is no terminal")
    ] = False,
) -> None:
    """Print what a fine-tuned model answers: a label with its probability, or an answer with its place and score.

    Standard input has a text a line, or a JSON object: {"text": …}, with "pair" for a task of two texts, or
    {"passage": …, "question": …}. A question whose no_answer_score is above its score is not answered.
    """
    params = read_params()
    grid = build(Grid, params, "finetune")
    asks = grid.kind_of(task) == "question_answering"
    seeds = grid.seeds if ensemble else grid.seeds[:1] if seed is None else (seed,)
    cells = [Cell(task, method or grid.methods_of(task)[0], number) for number in seeds]
    tuning = [read_tuning(cell, params) for cell in cells][-1]
    rows = list(_given_questions(passage, question) if asks else ({"text": text} for text in texts or ()))
    rows = rows or list(_standard_input("question" if asks else "text"))
    found = (_answers if asks else _labels)(cells, tuning, rows)
    if as_json or not sys.stdout.isatty():
        for row, answer in zip(rows, found, strict=True):
            print(json.dumps(row | answer, ensure_ascii=False))
        return
    print_table(list(found[0]), [[_shown(value) for value in answer.values()] for answer in found])


def _given_questions(passage: Path | None, questions: Sequence[str]) -> Iterator[Row]:
    if bool(questions) != (passage is not None):
        raise InputError("--passage and --question go together")
    if passage is not None:
        if not passage.is_file():
            raise InputError(f"--passage: {passage}: no such file")
        yield from ({"passage": passage.read_text(), "question": question} for question in questions)


def _standard_input(needed: str) -> Iterator[Row]:
    """A row a line; an empty line is left out."""
    keys = ("passage", "question") if needed == "question" else ("text",)
    any_line = False
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        any_line = True
        try:
            row = json.loads(line) if line.lstrip().startswith("{") else {"text": line.strip()}
        except json.JSONDecodeError as error:
            raise InputError(f"standard input:{number}: not JSON: {error.msg}") from error
        for key in keys:
            if not isinstance(row.get(key), str) or not row[key].strip():
                raise InputError(f"standard input:{number}: {key}: {row.get(key)!r} is not allowed; expected a text")
        yield row
    if not any_line:
        raise InputError(f"nothing to predict: expected a {needed}, or lines on standard input")


def _labels(cells: Sequence[Cell], tuning: Tuning, rows: Sequence[Row]) -> list[Row]:
    """The label of each text and its probability; over several seeds, of their mean probabilities."""
    params, base = _settings(cells[0], FineTuneParams)
    tokenizer, config = load_tokenizer(base), read_config(base)
    source, length = source_folder(params.data), params.task.max_length
    task = Classification(
        cells[0].task, source, tokenizer, length, takes_segments(config), objective_of(config) == "causal"
    )
    encoded = task.encoded([Example(row["text"], row.get("pair"), 0) for row in rows])
    logits = [log_softmax(scores, axis=-1) for scores in _scores(task, cells, tuning, base, encoded, params)]
    probabilities = softmax(logsumexp(logits, axis=0), axis=-1)
    best = probabilities.argmax(-1)
    return [
        {"label": task.classes[label], "probability": round(float(of[label]), 6)}
        for label, of in zip(best, probabilities, strict=True)
    ]


def _answers(cells: Sequence[Cell], tuning: Tuning, rows: Sequence[Row]) -> list[Row]:
    """The answer to each question, where it starts in the passage, its score and that of no answer."""
    if tuning.head != "spans":
        raise InputError(f"retrace predict {cells[0].task}: models that generate answers are not supported")
    params, base = _settings(cells[0], FineTuneAnswerParams)
    settings, source = params.task, source_folder(params.data)
    task = ExtractiveTask(cells[0].task, source, load_tokenizer(base), settings.max_length, settings)
    questions = [Question(str(number), "", row["passage"], row["question"], ()) for number, row in enumerate(rows)]
    windows = task.encoded(questions)
    by_seed = _scores(task, cells, tuning, base, windows, params)
    means = [np.mean(scores, axis=0) for scores in zip(*by_seed, strict=True)]
    found = task.answers(windows, means)
    return [_answer(found[question.id], task.may_abstain) for question in questions]


def _answer(span: Any, may_abstain: bool) -> Row:
    abstains = may_abstain and span.null_score > span.score
    return {
        "answer": None if abstains else span.text,
        "start": None if abstains else span.start,
        "score": round(span.score, 6),
        "no_answer_score": round(span.null_score, 6) if may_abstain else None,
    }


def _settings(cell: Cell, of: Any) -> tuple[Any, Path]:
    """What the cell's stage reads of params.yaml, and the folder of the model that it started from."""
    params = of.read(task=cell.task, method=cell.method)
    return params, read_method({"methods": {cell.method: params.entry}}, cell.method, cell.task).base


def _scores(
    task: Any, cells: Sequence[Cell], tuning: Tuning, base: Path, examples: Sequence[Any], params: Any
) -> list[Sequence[np.ndarray]]:
    """Each cell's scores of the examples, computed as its stage computes them."""
    device: Device = open_device(0, params.precision, lease=False)
    found = []
    for cell in cells:
        folder = WEIGHTS / cell.path
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; run dvc repro, or dvc pull where others have run it")
        model = read_tuned(tuning, folder, base)
        whole: Any = model if tuning.question_match else task.wrap(model)
        body: Any = whole.body if tuning.head == "spans" else whole
        body.set_attn_implementation(device.attention)
        size = 2 * params.task.batch_size  # as in validation: in bf16 a batch's padding shows in the last digits
        scores, _ = scores_of(task, whole.to(device.torch_device).eval(), examples, size, device)
        found.append(scores)
    return found


def _shown(value: object) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
