"""`retrace score`: score anyone's predictions as the official scripts do."""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stages.corpus.squad import Question, read_json_file, read_questions
from stages.harness.errors import InputError
from stages.harness.plugins import load_plugin
from stages.metrics.outcomes import answered

HELP = "score a file of predictions"
SCORES = "stages.metrics.scores"
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


def run(arguments: argparse.Namespace) -> None:
    """Print the scores as json.

    Raises InputError where a file is wrong or no prediction belongs to the data set.
    """
    arguments.print_scores(arguments)


def _squad(arguments: argparse.Namespace) -> None:
    questions = read_questions(arguments.dataset)
    answers = _by_id(arguments.predictions, _is_text, "answer texts")
    no_answer = None
    if arguments.na_prob:
        no_answer = _by_id(arguments.na_prob, _is_number, "numbers")
        questions = _in_order_of(no_answer, [q for q in questions if q.id in answers], arguments.na_prob)
    outcome = answered(questions, answers, no_answer, arguments.na_prob_thresh)
    if not outcome.answers:
        raise InputError(f"{arguments.predictions}: no prediction for any question of {arguments.dataset}")
    figures: dict[str, Any] = {}
    for name in ("squad_v2", *(OTHERS if arguments.all else ())):
        score = load_plugin(SCORES, name, "scores.squad")  # not at the top: every command would wait for it
        figures |= score.score(outcome)
        figures |= score.notes(outcome) if hasattr(score, "notes") else {}
    print(json.dumps(figures, indent=2))


def _by_id(path: Path, allowed: Callable[[Any], bool], called: str) -> dict[str, Any]:
    values = read_json_file(path)
    if not isinstance(values, dict) or not all(allowed(value) for value in values.values()):
        raise InputError(f"{path}: expected one object of question ids and {called}")
    return values


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _in_order_of(no_answer: dict[str, float], questions: list[Question], path: Path) -> list[Question]:
    """The official script breaks ties between questions by their order in the file."""
    missing = next((question.id for question in questions if question.id not in no_answer), None)
    if missing is not None:
        raise InputError(f"{path}: no number for question {missing}, which has a prediction")
    places = {identifier: place for place, identifier in enumerate(no_answer)}
    return sorted(questions, key=lambda question: places[question.id])
