"""`retrace predict` and `retrace demo`: ask trained models, in a terminal and on a page."""

import codecs
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from retrace.cli.main import print_table
from retrace.core.errors import InputError
from retrace.core.files import parse_json, read_text
from retrace.core.settings import read_params
from retrace.datasets.examples import read_examples
from retrace.results.grid import Cell, Grid

Row = dict[str, Any]
Of = typer.Option(help="of fine-tuning; default: the first in params.yaml")
Port = typer.Option(min=0, max=65535, help="port on 127.0.0.1; 0 picks a free one")
Ensemble = typer.Option("--ensemble", help="average all seeds: class probabilities, or scores of tokens")


def predict(
    task: Annotated[str, typer.Argument(help="sst2, squad or a further task")],
    texts: Annotated[list[str] | None, typer.Argument(help="texts to classify; default: standard input")] = None,
    passage: Annotated[Path | None, typer.Option(help="a file with a passage")] = None,
    question: Annotated[list[str], typer.Option(help="on the passage; may be repeated")] = [],  # noqa: B006
    method: Annotated[str | None, Of] = None,
    seed: Annotated[int | None, Of] = None,
    ensemble: Annotated[bool, Ensemble] = False,
) -> None:
    """Print what a fine-tuned model answers: a label with its probability, or an answer with its position and score.

    Each line of standard input is a text or a JSON object: {"text": …}, with "pair" for a task of two texts, or
    {"passage": …, "question": …}. A question whose no_answer_score is above its score is not answered.
    """
    # Here, as it takes seconds to import and --help does not need it.
    from retrace.serving.predictor import Predictor, note_changes

    params = read_params()
    grid = Grid.read(params)
    cell = chosen_cell(grid, task, method, seed)
    asks = grid.kind_of(task) == "question_answering"
    if ensemble and seed is not None:
        raise InputError("--ensemble uses all seeds; leave out --seed")
    if asks and texts:
        raise InputError(f"{task} takes --passage and --question, not texts")
    if not asks and (question or passage):
        raise InputError(f"--passage and --question are for question answering; {task} takes texts")
    if bool(question) != (passage is not None):
        raise InputError("--passage and --question go together")
    predictor = Predictor(task, cell.method, grid.seeds if ensemble else [cell.seed], params)
    note_changes(predictor.cells, params)
    pairs = not asks and read_examples(grid.data_of(task), "dev")[0].pair is not None
    keys = ("passage", "question") if asks else ("text", "pair") if pairs else ("text",)
    asked = "question" if asks else "text"
    rows = _question_rows(passage, question) if passage else list(_rows(keys, texts))
    if not rows:
        raise InputError(f"nothing to predict: expected a {asked}, or lines on standard input")
    found = predictor.answers(rows)
    if sys.stdout is None or not sys.stdout.isatty():
        is_utf8 = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name == "utf-8"
        for row, answer in zip(rows, found, strict=True):
            print(json.dumps(row | answer, ensure_ascii=not is_utf8))
        return
    lines = [[*map(_shown, (row[asked], *answer.values()))] for row, answer in zip(rows, found, strict=True)]
    print_table((asked, *found[0]), lines)


def demo(port: Annotated[int, Port] = 8000) -> None:
    """Serve a page on which all trained models answer side by side, until Ctrl-C; nothing leaves this machine."""
    # Here, as it takes seconds to import and predictions do not need it.
    from retrace.serving.demo import Demo, listen, serve
    from retrace.serving.predictor import note_changes

    with listen(port) as listener:
        models = Demo(params := read_params())
        note_changes(models.cells, params)
        print(f"http://127.0.0.1:{listener.getsockname()[1]} (Ctrl-C ends it)", flush=True)
        serve(models, listener)
    print("ended")


def chosen_cell(grid: Grid, task: str, method: str | None, seed: int | None) -> Cell:
    """The cell of the grid that options name, by default that of the task's first method and the first seed.

    Raises InputError if params.yaml does not list it.
    """
    first = next(iter(grid.methods_of(task)), "")  # questions may have no method
    cell = Cell(task, first if method is None else method, grid.seeds[0] if seed is None else seed)
    for name, value, listed in (
        ("task", cell.task, grid.all_tasks),
        ("--method", cell.method, grid.methods_of(task)),
        ("--seed", cell.seed, grid.seeds),
    ):
        if value not in listed:
            allowed = ", ".join(map(str, listed))
            raise InputError(f"{name}: {value!r} is not what params.yaml lists; expected one of {allowed}")
    return cell


def _question_rows(passage: Path, questions: Sequence[str]) -> list[Row]:
    """A row for each --question."""
    context = read_text(passage)
    _require_texts({"passage": context}, ("passage",), str(passage))
    rows = [{"passage": context, "question": question} for question in questions]
    for number, row in enumerate(rows, start=1):
        _require_texts(row, ("question",), f"--question {number}")
    return rows


def _rows(keys: Sequence[str], texts: Sequence[str] | None) -> Iterator[Row]:
    """A row with these keys for each text or, if there are none, for each line of standard input that is not empty."""
    if not texts and sys.stdin is None:
        raise InputError("standard input is closed")
    try:
        lines = texts or sys.stdin.read().split("\n")  # a mistake at the end of a line would else be on the next one
    except UnicodeDecodeError as error:
        raise InputError(f"standard input: not UTF-8: {error.reason}") from None
    place = "text" if texts else "standard input"
    for number, line in enumerate(lines, start=1):
        line = line if texts or number > 1 else line.removeprefix("\ufeff")  # a byte-order mark
        _require_utf8(line, f"{place}:{number}")
        if not (texts or line.strip()):
            continue
        is_json = not texts and line.lstrip().startswith("{")
        row = parse_json(line, Path(place), number) if is_json else {"text": line.strip()}
        _require_texts(row, keys, f"{place}:{number}")
        if "pair" not in keys and row.get("pair") is not None:
            raise InputError(f"{place}:{number}: pair: {row['pair']!r} is not allowed; the task has one text")
        yield row


def _require_texts(row: Row, keys: Sequence[str], place: str) -> None:
    for key in keys:
        if key not in row:
            raise InputError(f"{place}: {key} is missing; there is: {', '.join(row)}")
        if not isinstance(row[key], str) or not row[key].strip():
            raise InputError(f"{place}: {key}: {row[key]!r} is not allowed; expected a text")
        _require_utf8(row[key], place)


def _require_utf8(text: str, place: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in text):  # what Python puts in place of bytes that are not UTF-8
        raise InputError(f"{place}: not UTF-8")


def _shown(value: object) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else " ".join(str(value).split())
