"""`retrace predict` and `retrace demo`: what trained models answer, in a terminal and on a page."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from retrace.cli.main import print_table
from retrace.core.errors import InputError
from retrace.core.files import parse_json, read_text
from retrace.core.paths import source_folder
from retrace.core.settings import build, read_params
from retrace.datasets.examples import read_examples
from retrace.results.grid import Grid

Row = dict[str, Any]
Of = typer.Option(help="of fine-tuning; the first of params.yaml if absent")
Port = typer.Option(min=0, max=65535, help="of 127.0.0.1; 0: any that is free")
Ensemble = typer.Option("--ensemble", help="the mean over all seeds: of probabilities, or of scores of tokens")


def predict(
    task: Annotated[str, typer.Argument(help="sst2, squad or a further task")],
    texts: Annotated[list[str] | None, typer.Argument(help="texts to classify; standard input if absent")] = None,
    passage: Annotated[Path | None, typer.Option(help="a file with a passage")] = None,
    question: Annotated[list[str], typer.Option(help="questions on the passage")] = [],  # noqa: B006
    method: Annotated[str | None, Of] = None,
    seed: Annotated[int | None, Of] = None,
    ensemble: Annotated[bool, Ensemble] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="a line of JSON each, as where output is no terminal")
    ] = False,
) -> None:
    """Print what a fine-tuned model answers: a label with its probability, or an answer with its place and score.

    Standard input has a text a line, or a JSON object: {"text": …}, with "pair" for a task of two texts, or
    {"passage": …, "question": …}. A question whose no_answer_score is above its score is not answered.
    """
    from retrace.serving.predictor import Predictor  # here, as it takes seconds to import, and --help needs none

    params = read_params()
    grid = build(Grid, params, "finetune")
    asks = grid.kind_of(task) == "question_answering"
    if ensemble and seed is not None:
        raise InputError("--ensemble is of all seeds; leave out --seed")
    seeds = grid.seeds if ensemble else grid.seeds[:1] if seed is None else (seed,)
    chosen = method or next(iter(grid.methods_of(task)), "")  # of questions there may be none
    predictor = Predictor(task, chosen, seeds, params)
    pairs = not asks and read_examples(source_folder(params["data"]), task, "dev")[0].pair is not None
    if not asks and (question or passage):
        raise InputError(f"--passage and --question are of questions; {task} takes texts")
    if any(not text.strip() for text in texts or ()):
        raise InputError("a text is empty")
    if texts and (asks or pairs):
        raise InputError(
            f"{task} takes {'questions' if asks else 'pairs of texts'}, as lines of JSON on standard input"
        )
    rows = list(_given_questions(passage, question) if asks else ({"text": text} for text in texts or ()))
    rows = rows or list(_standard_input(("passage", "question") if asks else ("text", "pair") if pairs else ("text",)))
    if not rows:
        raise InputError(f"nothing to predict: expected a {'question' if asks else 'text'}, or lines on standard input")
    found = predictor.answers(rows)
    if as_json or not sys.stdout.isatty():
        for row, answer in zip(rows, found, strict=True):
            print(json.dumps(row | answer, ensure_ascii=False))
        return
    print_table(list(found[0]), [[_shown(value) for value in answer.values()] for answer in found])


def demo(port: Annotated[int, Port] = 8000) -> None:
    """Serve a page on which all trained models answer side by side until Ctrl-C; nothing of it leaves this machine."""
    # Here, as predictions need nothing of what a page takes seconds to import.
    from retrace.serving.demo import Demo, listen, serve

    with listen(port) as listener:
        models = Demo(read_params())
        print(f"http://127.0.0.1:{listener.getsockname()[1]} (Ctrl-C ends it)", flush=True)
        serve(models, listener)
    print("ended")


def _given_questions(passage: Path | None, questions: Sequence[str]) -> Iterator[Row]:
    if bool(questions) != (passage is not None):
        raise InputError("--passage and --question go together")
    if passage is not None:
        if not passage.is_file():
            raise InputError(f"--passage: {passage}: no such file")
        yield from ({"passage": read_text(passage), "question": question} for question in questions)


def _standard_input(keys: Sequence[str]) -> Iterator[Row]:
    """A row with these keys a line; an empty line is left out."""
    for number, line in _lines():
        if not line.strip():
            continue
        is_json = line.lstrip().startswith("{")
        row = parse_json(line, Path("standard input"), number) if is_json else {"text": line.strip()}
        for key in keys:
            if not isinstance(row.get(key), str) or not row[key].strip():
                raise InputError(f"standard input:{number}: {key}: {row.get(key)!r} is not allowed; expected a text")
        if "pair" not in keys and row.get("pair") is not None:
            raise InputError(f"standard input:{number}: pair: {row['pair']!r} is not allowed; the task has one text")
        yield row


def _lines() -> Iterator[tuple[int, str]]:
    try:
        yield from enumerate(sys.stdin, 1)
    except UnicodeDecodeError as error:
        raise InputError(f"standard input: not UTF-8: {error.reason}") from None


def _shown(value: object) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
