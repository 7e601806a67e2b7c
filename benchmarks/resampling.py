"""How long every score of answers takes, with 10,000 resamples of the questions.

The answers are made up from the right ones: some right, some with too many words, some wrong, each
with a number that says how surely there is none. Seconds of the processor and by the clock; the first are what
counts where the machine is not quiet.

    python benchmarks/resampling.py DATASET.json   # SQuAD's dev-v2.0.json
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from retrace.datasets.squad import Question, read_questions  # noqa: E402
from retrace.evaluation.metrics import bleu, meteor, rouge, squad_v2  # noqa: E402
from retrace.evaluation.outcomes import Answered, answered  # noqa: E402
from retrace.statistics.intervals import resamples  # noqa: E402

SCORES = {"squad_v2": squad_v2, "meteor": meteor, "bleu": bleu, "rouge": rouge}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, metavar="DATASET.json")
    parser.add_argument("--count", type=int, default=10_000, help="of resamples; default %(default)s")
    arguments = parser.parse_args()
    outcome = made_up(read_questions(arguments.dataset))
    spent: dict[str, list[float]] = {}
    for name, score in SCORES.items():
        timed(spent, f"{name}, once", lambda score=score: score.score(outcome))
    every = {name: score.resampled(outcome) for name, score in SCORES.items()}
    chunks = resamples(len(outcome.answers), arguments.count, seed=0)
    while (weights := timed(spent, "drawing", lambda: next(chunks, None))) is not None:
        for name, figures in every.items():
            timed(spent, f"{name}, resampled", lambda figures=figures, weights=weights: figures(weights))
    spent["all"] = [sum(column) for column in zip(*spent.values(), strict=True)]
    print(
        json.dumps({name: f"{cpu:.2f} s, {clock:.2f} s by the clock" for name, (cpu, clock) in spent.items()}, indent=2)
    )


def timed(spent: dict[str, list[float]], name: str, work: Callable[[], Any]) -> Any:
    """What `work` gives; its seconds are added to those of `name`."""
    cpu, clock = time.process_time(), time.perf_counter()
    found = work()
    total = spent.setdefault(name, [0.0, 0.0])
    total[0] += time.process_time() - cpu
    total[1] += time.perf_counter() - clock
    return found


def made_up(questions: list[Question]) -> Answered:
    """Answers to all questions, some of which are taken back."""
    generator = random.Random(0)
    spans = {question.id: _span(generator, question) for question in questions}
    no_answer = {question.id: generator.gauss(0.0 if question.answers else 1.0, 1.0) for question in questions}
    return answered(questions, spans, no_answer, threshold=1.0)


def _span(generator: random.Random, question: Question) -> str:
    kind = generator.random()
    if question.answers and kind < 0.8:
        right = generator.choice(question.answers)
        more = 0 if kind < 0.6 else generator.randrange(1, 20)
        return question.context[max(0, right.start - more) : right.start + len(right.text) + more].strip()
    words = question.context.split()
    first = generator.randrange(len(words))
    return " ".join(words[first : first + generator.randrange(1, 8)])


if __name__ == "__main__":
    main()
