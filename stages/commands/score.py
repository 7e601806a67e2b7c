"""`retrace score`: score anyone's predictions as the official scripts do."""

import argparse
import json
from pathlib import Path

from stages.corpus.squad import read_json_file, read_questions
from stages.harness.errors import InputError
from stages.metrics.scores import squad_v2

HELP = "score a file of predictions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    squad = tasks.add_parser("squad", help="exact match and F1 of SQuAD, as the official v2.0 script has them")
    squad.add_argument("dataset", type=Path, metavar="DATASET.json", help="SQuAD json, version 1.1 or 2.0")
    squad.add_argument(
        "predictions", type=Path, metavar="PREDICTIONS.json", help='{"question id": "answer"}, "" for no answer'
    )


def run(arguments: argparse.Namespace) -> None:
    """Print the scores as json.

    Raises InputError where a file is wrong or no prediction belongs to the data set.
    """
    answers = read_json_file(arguments.predictions)
    if not isinstance(answers, dict) or not all(isinstance(text, str) for text in answers.values()):
        raise InputError(f"{arguments.predictions}: expected one object of question ids and answer texts")
    scores = squad_v2.score(read_questions(arguments.dataset), answers)
    if not scores["total"]:
        raise InputError(f"{arguments.predictions}: no prediction for any question of {arguments.dataset}")
    print(json.dumps(scores, indent=2))
