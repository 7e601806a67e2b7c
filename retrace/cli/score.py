"""`retrace score`: score anyone's predictions, as the official scripts do where there are any.

Figures are printed as JSON with the scale of each, as some metrics give fractions and others percentages; warnings go
to standard error.
"""

import json
import math
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from unicodedata import normalize

import numpy as np
import pandas as pd
import typer
from pydantic import FiniteFloat, TypeAdapter, ValidationError

from retrace.cli.main import some_of
from retrace.core.errors import InputError, printable
from retrace.core.files import read_json
from retrace.core.schema import shown
from retrace.datasets.examples import class_order
from retrace.datasets.squad import read_questions
from retrace.evaluation.flags import decision_flags, figure_flags
from retrace.evaluation.outcomes import (
    FLOAT_ERROR,
    MOST_ROUNDING,
    Answered,
    Classified,
    Scoring,
    answered,
    sum_to_one,
    text_clusters,
)
from retrace.evaluation.settings import metric_names
from retrace.files.formats import Rows, label_of, read_rows
from retrace.statistics.intervals import Clusters
from retrace.statistics.intervals import intervals as intervals_of
from retrace.statistics.scales import Flags

RESAMPLES = 10_000
ALWAYS = 1.0  # the threshold at which every answer counts, as in the official script
WHOLE = re.compile(r"\+?(?P<number>-?[0-9]+)(\.0*)?")

Predictions = typer.Argument(metavar="PREDICTIONS.json", help='{"question id": "answer"}, "" for no answer')
Probabilities = typer.Option(metavar="FILE.json", help='{"question id": how likely it is to have no answer}')
Missing = typer.Option("--allow-missing", help="leave out questions without a prediction; else they are an error")
Intervals = Annotated[bool, typer.Option("--intervals", help="also 95% intervals, from 10,000 resamples")]


def squad(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET.json", help="SQuAD json, version 1.1 or 2.0")],
    predictions: Annotated[Path, Predictions],
    na_prob: Annotated[Path | None, Probabilities] = None,
    na_prob_thresh: Annotated[float, typer.Option(metavar="X", help="above it the model abstains")] = ALWAYS,
    every: Annotated[bool, typer.Option("--all", help="the other metrics too, such as ROUGE")] = False,
    allow_missing: Annotated[bool, Missing] = False,
    intervals: Intervals = False,
) -> None:
    """Score answers to SQuAD's questions as the official v2.0 script does; --na-prob gives the best_ figures too."""
    questions = read_questions(dataset)
    answers = _by_id(predictions, dict[str, str], "a text")
    scored = [question for question in questions if question.id in answers]
    if not scored:
        raise InputError(f"{predictions}: no prediction for any question of {dataset}")
    if not math.isfinite(na_prob_thresh) or (na_prob is None and na_prob_thresh != ALWAYS):
        raise InputError("--na-prob-thresh: expected a finite number, together with --na-prob")
    flags: Flags = {}
    if missing := [question.id for question in questions if question.id not in answers]:
        counted = f"{len(missing):,} of {len(questions):,} questions have no prediction, the first of them {missing[0]}"
        if not allow_missing:
            raise InputError(f"{predictions}: {counted}; with --allow-missing only the others are scored")
        flags["missing"] = f"{counted}; only the others are scored"
    known = {question.id: question for question in questions}
    if unknown := [name for name in answers if name not in known]:
        count = f"{len(unknown):,} of {len(answers):,}"
        flags["unknown"] = f"{count} predictions have an unknown question id, the first of them {unknown[0]}"
    no_answer = None
    if na_prob:
        no_answer = _by_id(na_prob, dict[str, FiniteFloat], "a number")
        if absent := [question.id for question in scored if question.id not in no_answer]:
            raise InputError(f"{na_prob}: no number for question {absent[0]}, which has a prediction")
        # In the order of that file, by which the official script breaks ties.
        scored = [known[name] for name in no_answer if name in known and name in answers]
    outcome = answered(scored, answers, no_answer, na_prob_thresh)
    clusters = text_clusters(question.context for question in scored) if intervals else None
    _print(metric_names("Answered") if every else ["squad_v2"], outcome, flags, intervals, clusters)


def classification(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="tsv, csv, jsonl or parquet with the right classes")],
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", help="the same with the predicted classes")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="of GOLD")] = "label",
    prediction: Annotated[str, typer.Option(metavar="COLUMN", help="of PREDICTIONS")] = "label",
    intervals: Intervals = False,
) -> None:
    """Score classes, row by row, with scikit-learn; columns named like the classes hold their probabilities.

    With two classes, precision, recall and f1 are those of the second: the larger number, or the last in alphabetical
    order, capital letters before small ones. Intervals take the rows as independent, even if they share texts.
    """
    right, given = read_rows(gold), read_rows(predictions)
    if len(right) != len(given):
        raise InputError(f"{predictions}: {len(given)} rows, but {gold} has {len(right)}")
    labels = [class_name(label_of(where, cells, label, "; the column is set by --label")) for where, cells in right]
    predicted = [
        class_name(label_of(where, cells, prediction, "; the column is set by --prediction")) for where, cells in given
    ]
    flags = _unknown_classes(labels, predicted, gold, predictions)
    classes, probabilities = class_order([*labels, *predicted]), None
    columns = {class_name(column) for _, cells in given for column in cells}
    without = [name for name in classes if name not in columns]
    if not without:
        classes, probabilities = probabilities_of(given, classes, prediction)
    elif len(without) < len(classes):
        flags["no_probabilities"] = f"no column is called {some_of(without)}"
    never = class_order(set(classes) - set(labels))
    if probabilities is not None and never:
        flags["no_roc_auc"] = f"{gold} has no {some_of(never)}"
    wanted, found = (pd.Index(classes).get_indexer(names) for names in (labels, predicted))
    outcome = Classified(tuple(classes), wanted, found, probabilities)
    _print(metric_names("Classified"), outcome, flags, intervals)


SUBCOMMANDS = {"squad": squad, "classification": classification}


def _unknown_classes(labels: list[str], predicted: list[str], gold: Path, predictions: Path) -> Flags:
    """A flag for predicted classes that are never right.

    Raises InputError if none is ever right, as then the two files name their classes differently.
    """
    known = set(labels)
    unknown = class_order(set(predicted) - known)
    if known.isdisjoint(predicted) and len(known) > 1:  # if there is one class only, all may be wrong
        called = f"its classes are {some_of(unknown)}, those of {gold} {some_of(class_order(known))}"
        raise InputError(f"{predictions}: no class in common: {called}")
    if not unknown:
        return {}
    count = sum(name not in known for name in predicted)
    which = f"{count:,} of {len(predicted):,} predictions are {some_of(unknown)}"
    return {"unknown_class": f"{which}, which {gold} does not have"}


def class_name(text: str) -> str:
    """One spelling of what programs write differently: 1, 1.0, +1; 0, -0.0; true, TRUE; é as one character or two."""
    if whole := WHOLE.fullmatch(text):
        return "0" if whole["number"] == "-0" else whole["number"]
    return text.lower() if text.lower() in ("true", "false") else normalize("NFC", text)


def probabilities_of(rows: Rows, classes: Sequence[str], prediction: str) -> tuple[list[str], np.ndarray]:
    """The classes and their probabilities, (N, C), from the columns named like the classes, unchanged.

    Further columns of numbers are taken as classes that the model knows but that do not occur, if the rows sum to 1
    with them and are further from 1 without them; the column `prediction` is never one of them. Raises InputError
    naming the first row with a value that is not a number of 0 or more, or whose values do not sum to 1; or if two
    columns have the same name.
    """
    cells = pd.DataFrame([cells for _, cells in rows]).rename(columns=class_name)
    if len(twice := cells.columns[cells.columns.duplicated()]):
        raise InputError(f"{rows[0][0]}: two columns are called {twice[0]}")
    table = cells.map(_number)
    found = table[list(classes)].to_numpy()
    if len(wrong := np.argwhere(~((found >= 0) & (found < np.inf)))):
        row, column = wrong[0]
        reason = f"{classes[column]} has {cells[classes[column]].iloc[row]}"
        raise InputError(f"{rows[row][0]}: expected probabilities in {some_of(classes)}; {reason}")
    rest = 1 + MOST_ROUNDING - found.sum(axis=1)
    others = [name for name in table if name not in (*classes, prediction) and table[name].between(0, rest).all()]
    every = class_order([*classes, *others])
    more = table[every].to_numpy()
    if sum_to_one(more).all() and _off(more) < _off(found) - FLOAT_ERROR * len(rows):
        return every, more
    if len(wrong := np.flatnonzero(~sum_to_one(found))):
        reason = f"they sum to {found[wrong[0]].sum():.6g} and not to 1"
        raise InputError(f"{rows[wrong[0]][0]}: expected probabilities in {some_of(classes)}; {reason}")
    return list(classes), found


def _off(found: np.ndarray) -> float:
    """The sum over the rows of (N, C) of how far each row's sum is from 1."""
    return float(np.abs(found.sum(axis=1) - 1).sum())


def _number(cell: Any) -> float:
    with suppress(TypeError, ValueError, OverflowError):
        return math.nan if isinstance(cell, bool | np.bool_) else float(cell)
    return math.nan


def _print(
    metrics: Sequence[str],
    outcome: Answered | Classified,
    flags: Flags,
    with_intervals: bool,
    clusters: Clusters = None,
) -> None:
    scoring = Scoring(metrics)
    figures = scoring.score(outcome)
    notes = {f"{name}_note" if name in figures else name: note for name, note in scoring.notes(outcome).items()}
    found: dict[str, Any] = figures | notes
    found["scales"] = {name: scoring.scales[name] for name in figures}
    if with_intervals:
        found["intervals"] = intervals_of([*scoring.scored({"": outcome}, RESAMPLES, 0, clusters).values()])
    print(json.dumps(found, indent=2, default=lambda number: number.item()))  # a metric may count in NumPy
    for name, evidence in (flags | decision_flags(outcome) | figure_flags(figures, scoring.scales)).items():
        print(printable(f"warning: {name.replace('_', ' ')}: {evidence}"), file=sys.stderr)


def _by_id(path: Path, kind: Any, called: str) -> dict[str, Any]:
    """The values in a file by question id.

    Raises InputError naming the first question whose value is not of this kind.
    """
    try:
        return TypeAdapter(kind).validate_python(read_json(path), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise InputError(f"{path}: expected one object of question ids, each with {called}") from None
        reason = f"{shown(first['input'])} is not allowed; expected {called}"
        raise InputError(f"{path}: question {first['loc'][0]}: {reason}") from None
