"""`retrace score`: score anyone's predictions, as the official scripts do where there are such.

Figures go to standard output as json; what looks wrong about them is said beside it.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from retrace.core.errors import InputError
from retrace.datasets.examples import class_order
from retrace.datasets.squad import Question, read_json_file, read_questions
from retrace.evaluation.flags import answer_flags, class_flags, figure_flags
from retrace.evaluation.outcomes import Answered, Classified, answered
from retrace.evaluation.probabilities import class_name, classes_with_columns, probabilities_of, some_of
from retrace.evaluation.scoring import Scoring
from retrace.sources.labels import Rows, labels_of, read_rows
from retrace.statistics.comparisons import Flags
from retrace.statistics.intervals import draw

HELP = "score a file of predictions"
CLASSIFICATION = ("accuracy", "precision", "recall", "f1", "matthews", "roc_auc", "calibration")
RESAMPLES = 10_000
OTHERS = ("meteor", "bleu", "rouge")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    squad = tasks.add_parser("squad", help="answers to SQuAD's questions, as the official v2.0 script has it")
    squad.set_defaults(print_scores=_squad)
    squad.add_argument("dataset", type=Path, metavar="DATASET.json", help="SQuAD json, version 1.1 or 2.0")
    squad.add_argument(
        "predictions", type=Path, metavar="PREDICTIONS.json", help='{"question id": "answer"}, "" for no answer'
    )
    squad.add_argument(
        "--na-prob",
        type=Path,
        metavar="FILE.json",
        help='{"question id": how surely it has no answer}: gives the best_ figures',
    )
    squad.add_argument(
        "--na-prob-thresh", type=float, default=1.0, metavar="X", help="above it there is no answer; default 1.0"
    )
    squad.add_argument("--all", action="store_true", help="METEOR, BLEU and ROUGE too")
    squad.add_argument(
        "--allow-missing", action="store_true",
        help="leave out questions without a prediction, as the official script does; else they are an error",
    )  # fmt: skip
    classes = tasks.add_parser("classification", help="classes, by scikit-learn")
    classes.set_defaults(print_scores=_classification)
    classes.add_argument("gold", type=Path, metavar="GOLD", help="tsv, csv, jsonl or parquet with the right classes")
    classes.add_argument(
        "predictions", type=Path, metavar="PREDICTIONS",
        help="the same with predicted ones, row by row; columns called as the classes hold probabilities",
    )  # fmt: skip
    classes.add_argument("--label", default="label", metavar="COLUMN", help="of GOLD; default label")
    classes.add_argument("--prediction", default="label", metavar="COLUMN", help="of PREDICTIONS; default label")
    for task in (squad, classes):
        task.add_argument("--intervals", action="store_true", help="also 95%% intervals, from 10,000 resamples")


def run(arguments: argparse.Namespace) -> None:
    """Print the scores as json.

    Raises InputError where a file is wrong or no prediction belongs to the data set.
    """
    arguments.print_scores(arguments)


def _squad(arguments: argparse.Namespace) -> None:
    questions = read_questions(arguments.dataset)
    answers = _by_id(arguments.predictions, _is_text, "answer texts")
    unmatched = _unmatched(questions, answers, arguments)
    no_answer = None
    if arguments.na_prob:
        no_answer = _by_id(arguments.na_prob, _is_number, "numbers")
        questions = _in_order_of(no_answer, [q for q in questions if q.id in answers], arguments.na_prob)
    outcome = answered(questions, answers, no_answer, arguments.na_prob_thresh)
    scoring = Scoring(["squad_v2", *(OTHERS if arguments.all else ())], "scores.squad", Answered)
    _print(scoring, outcome, unmatched | answer_flags(outcome), arguments.intervals)


def _unmatched(questions: list[Question], answers: dict[str, str], arguments: argparse.Namespace) -> Flags:
    """Questions without a prediction and predictions of no question; the first are an error unless allowed."""
    asked = {question.id for question in questions}
    missing = [question.id for question in questions if question.id not in answers]
    unknown = [identifier for identifier in answers if identifier not in asked]
    if len(missing) == len(asked):
        raise InputError(f"{arguments.predictions}: no prediction for any question of {arguments.dataset}")
    flags: Flags = {}
    if missing:
        said = f"{len(missing):,} of {len(asked):,} questions have no prediction, {missing[0]} the first"
        if not arguments.allow_missing:
            raise InputError(f"{arguments.predictions}: {said}; with --allow-missing only the others are scored")
        flags["missing"] = f"{said}; only the others are scored"
    if unknown:
        flags["unknown"] = (
            f"{len(unknown):,} of {len(answers):,} predictions are of no question, {unknown[0]} the first"
        )
    return flags


def _classification(arguments: argparse.Namespace) -> None:
    gold, given = read_rows(arguments.gold), read_rows(arguments.predictions)
    if len(gold) != len(given):
        raise InputError(f"{arguments.predictions}: {len(given)} rows, but {arguments.gold} has {len(gold)}")
    labels = [class_name(label) for label in labels_of(gold, arguments.label)]
    predicted = [class_name(label) for label in labels_of(given, arguments.prediction)]
    flags = _unlike(labels, predicted, arguments)
    classes, probabilities = _probabilities(given, class_order([*labels, *predicted]), arguments.prediction, flags)
    never = class_order(set(classes) - set(labels))
    if probabilities is not None and never:
        flags["no_roc_auc"] = f"{arguments.gold} has no {some_of(never)}"
    numbers = {name: number for number, name in enumerate(classes)}
    right, decided = (np.array([numbers[name] for name in names]) for names in (labels, predicted))
    outcome = Classified(tuple(classes), right, decided, probabilities)
    scoring = Scoring(CLASSIFICATION, "scores.classification", Classified)
    _print(scoring, outcome, flags | class_flags(outcome), arguments.intervals)


def _unlike(labels: list[str], predicted: list[str], arguments: argparse.Namespace) -> Flags:
    """Predicted classes that are never right; an error where that is all of them, as then they are called otherwise."""
    known = set(labels)
    unknown = class_order(set(predicted) - known)
    if known.isdisjoint(predicted) and len(known) > 1:  # of one class all may be wrong
        called = f"its classes are {some_of(unknown)}, those of {arguments.gold} {some_of(class_order(known))}"
        raise InputError(f"{arguments.predictions}: no class in common: {called}")
    if not unknown:
        return {}
    count = sum(name not in known for name in predicted)
    said = f"{count:,} of {len(predicted):,} predictions are {some_of(unknown)}"
    return {"unknown_class": f"{said}, which {arguments.gold} does not have"}


def _probabilities(
    given: Rows, classes: list[str], prediction: str, flags: Flags
) -> tuple[list[str], np.ndarray | None]:
    """All classes and the probabilities of each, (N, C), where there are such; a flag where a class has none."""
    without = [name for name in classes if name not in classes_with_columns(given, classes)]
    if not without:
        return probabilities_of(given, classes, prediction)
    if len(without) < len(classes):
        flags["no_probabilities"] = f"no column is called {some_of(without)}"
    return classes, None


def _print(scoring: Scoring, outcome: Any, flags: Flags, intervals: bool) -> None:
    figures = scoring.score(outcome)
    found: dict[str, Any] = figures | scoring.notes(outcome)
    if intervals:
        size = len(outcome.answers if isinstance(outcome, Answered) else outcome.labels)
        drawn = draw({"": scoring.resampled(outcome)}, size, RESAMPLES, seed=0)[""]
        found["intervals"] = scoring.intervals(figures, scoring.shares(outcome), drawn, outcome.fewest)
    print(json.dumps(found, indent=2))
    for name, evidence in (flags | figure_flags(figures, scoring.scales)).items():
        print(f"warning: {name.replace('_', ' ')}: {evidence}", file=sys.stderr)


def _by_id(path: Path, allowed: Callable[[Any], bool], called: str) -> dict[str, Any]:
    values = read_json_file(path)
    if not isinstance(values, dict) or not all(allowed(value) for value in values.values()):
        raise InputError(f"{path}: expected one object of question ids and {called}")
    return values


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _in_order_of(no_answer: dict[str, float], questions: list[Question], path: Path) -> list[Question]:
    """The official script breaks ties between questions by their order in the file."""
    missing = next((question.id for question in questions if question.id not in no_answer), None)
    if missing is not None:
        raise InputError(f"{path}: no number for question {missing}, which has a prediction")
    places = {identifier: place for place, identifier in enumerate(no_answer)}
    return sorted(questions, key=lambda question: places[question.id])
