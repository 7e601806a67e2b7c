"""Every prediction next to the gold label or answer: packed for the page's script, and some printed as a table.

The packed data is of the first seed. A class has its number, `said`, and its confidence in %, `sure`. An answer has its
`start` and `length` in the passage, its F1 in %, `f1`, and ten times its score minus that of no answer, `sure`; `other`
has the answers that are not in the passage, by example. `sure` is null for baselines and for models that never abstain.
`right` is a string for every seed: 1 for right, 0 for wrong, 2 for another wrong class than the first seed's. An answer
counts as right from an F1 of 50%.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from retrace.core.paths import on_test, questions_path, task_and_part
from retrace.datasets.examples import Example, read_classes, read_examples
from retrace.datasets.squad import Question, read_questions
from retrace.evaluation.metrics.squad_v2 import decided
from retrace.evaluation.outcomes import Answered, answers_of, classified
from retrace.report.blocks import Browser, Fold, Section, Table
from retrace.report.names import baseline_name, method_name
from retrace.report.results import TaskResults
from retrace.results.grid import PREDICTIONS, Grid
from retrace.results.predictions import kept_epoch, read_baselines, read_epochs

PRINTED = 20  # examples of each task in the table
LONG = 600  # characters from which a printed text is cut
MOST = 20_000  # examples of a task in the browser
SHOWN = "The answer shown is of the first seed."
COUNTED = "An answer counts as right if its F1 is at least 50%."
OF_CLASSES = "Next to a class: the method’s confidence."
OF_ANSWERS = (
    "Next to an answer, if the method may abstain: its score minus that of no answer. In passages the right answer is "
    f"shaded and each method’s answer is underlined in its colour (baselines in grey); ≈: partly right. {COUNTED}"
)
RIGHT = 0.5 - 1e-9  # F1, which rounding may leave just below a half
NO_ANSWER = "no answer"
Kept = Mapping[str, Sequence[pd.DataFrame]]  # the rows of every seed, by method
Given = Mapping[str, Sequence[Any]]  # classes by number, or answers with `text` and `start`, by baseline


@dataclass(frozen=True)
class Opinion:
    """The predictions of a method, with every seed, or of a baseline."""

    said: Sequence[str]  # by the first seed: class names, or answers, "" for none
    right: Sequence[str]  # of every seed, a digit for each example, as in the packed data
    # By the first seed: the confidence, or the answer's score less that of none, NaN for a model that never abstains.
    sure: Sequence[float] | None = None  # None for a baseline
    starts: Sequence[int] = ()  # of the first seed's answers in their passages, -1 for one that is not in it
    f1: Sequence[float] = ()  # of the first seed's answers


@dataclass(frozen=True)
class Predictions:
    """A task's examples and everyone's predictions."""

    task: TaskResults
    texts: Sequence[str]
    golds: Sequence[Sequence[str]]  # the gold class, or the gold answers
    opinions: Mapping[str, Opinion]  # of the methods from the best to the worst, then baselines, as readers see them
    classes: Sequence[str] = ()  # empty for questions
    passages: Sequence[str] = ()  # of questions
    spans: Sequence[Sequence[tuple[int, int]]] = ()  # of questions: start and length of the right answers

    @property
    def has_seeds(self) -> bool:
        """Whether a method was trained from several seeds."""
        return any(len(opinion.right) > 1 for opinion in self.opinions.values())


def _read(grid: Grid, task: TaskResults) -> Predictions:
    name, part = task_and_part(task.name)
    listed = grid.methods_of(name)
    kept = {
        method_name(method): [
            kept_epoch(read_epochs(PREDICTIONS / cell.path, task.kind, part)).rows
            for cell in grid.runs_of(name, method)
        ]
        for method in dict.fromkeys([*(method for method in task.methods if method in listed), *listed])
    }
    baselines = {baseline_name(baseline): given for baseline, given in read_baselines(task.name).items()}
    folder = grid.data_of(name)
    if task.kind == "classification":
        return _classified(task, read_examples(folder, part), read_classes(folder), kept, baselines)
    return _answered(task, read_questions(questions_path(folder, part)), kept, baselines)


def _classified(
    task: TaskResults, examples: Sequence[Example], classes: tuple[str, ...], kept: Kept, baselines: Given
) -> Predictions:
    labels, opinions = np.array([example.label for example in examples]), {}
    for method, seeds in kept.items():
        found = [classified(rows, labels, classes) for rows in seeds]
        said, sure = found[0].predicted, found[0].probabilities
        assert sure is not None, "models give logits"
        is_wrong = said != labels
        right = [_digits(each.predicted == labels, is_wrong & (each.predicted != said)) for each in found]
        opinions[method] = Opinion([classes[number] for number in said], right, sure.max(axis=1))
    for baseline, given in baselines.items():
        opinions[baseline] = Opinion([classes[number] for number in given], [_digits(labels == given)])
    texts = [example.text if example.pair is None else f"{example.text} / {example.pair}" for example in examples]
    return Predictions(task, texts, [[classes[label]] for label in labels], opinions, classes)


def _digits(is_right: np.ndarray, is_other: np.ndarray | bool = False) -> str:
    """A digit for each of N examples: 1 if `is_right`, else 2 if `is_other`, both (N,), else 0."""
    return "".join(np.where(is_right, "1", np.where(is_other, "2", "0")))


def _answered(task: TaskResults, questions: Sequence[Question], kept: Kept, baselines: Given) -> Predictions:
    golds, opinions = [tuple(dict.fromkeys(answer.text for answer in question.answers)) for question in questions], {}
    for method, seeds in kept.items():
        outcomes = [answers_of(rows, questions) for rows in seeds]
        rows = seeds[0].set_index("id").reindex([question.id for question in questions])
        starts, sure = rows["start"].fillna(-1).astype(int).tolist(), (rows["score"] - rows["null_score"]).tolist()
        scores = [decided(outcome)["f1"] for outcome in outcomes]
        right = [_digits(f1 >= RIGHT) for f1 in scores]
        opinions[method] = Opinion(outcomes[0].answers, right, sure, starts, scores[0].tolist())
    for baseline, given in baselines.items():
        answers, starts = ([answer[key] for answer in given] for key in ("text", "start"))
        outcome = Answered(tuple(golds), tuple(answers), abstained=np.array([not answer for answer in answers]))
        f1 = decided(outcome)["f1"]
        opinions[baseline] = Opinion(answers, [_digits(f1 >= RIGHT)], starts=starts, f1=f1.tolist())
    texts, passages = ([getattr(question, key) for question in questions] for key in ("text", "context"))
    spans = [[(answer.start, len(answer.text)) for answer in question.answers] for question in questions]
    return Predictions(task, texts, golds, opinions, passages=passages, spans=spans)


def predictions_section(params: Mapping[str, Any], tasks: Sequence[TaskResults], first: int | None = None) -> Section:
    """All predictions, for the script, and a table of the `first` ones, or of some spread evenly, for use without it.

    A task's predictions are those of its test set where there is one.
    """
    grid, names = Grid.read(params), {task.name for task in tasks}
    found = [_read(grid, task) for task in tasks if on_test(task.name) not in names]
    total = sum(len(each.texts) for each in found)
    seeds = f"Dots: right (●) or wrong (○) with each seed. {SHOWN} " if any(each.has_seeds for each in found) else ""
    left_out = "".join(
        f" {MOST:,} of the {len(each.texts):,} {each.task.noun} are here, evenly spread."
        for each in found if len(each.texts) > MOST
    )  # fmt: skip
    counted = "Examples" if left_out else f"All {total:,} examples"
    kinds = {OF_CLASSES: any(each.classes for each in found), OF_ANSWERS: any(each.passages for each in found)}
    about = " ".join(text for text, holds in kinds.items() if holds)
    note = f"{counted} with each method’s predictions.{left_out} {seeds}{about}"
    places = {method_name(method): task.places[method] for task in tasks for method in task.methods}
    browser = Browser(pack([_packed(each) for each in found]), list(places.items()), note)
    return Section("Predictions", [browser, *(_printed(each, first) for each in found)])


def _printed(found: Predictions, first: int | None) -> Fold:
    """A table of some examples: the right answer, and those of each method's first seed and of each baseline."""
    total = len(found.texts)
    places = _spread(total, PRINTED) if first is None else range(min(first, total))
    rows = []
    for i in places:
        passage = [found.passages[i]] if found.passages else []
        texts = [found.texts[i], *passage, " / ".join(found.golds[i]) or NO_ANSWER]
        said = [
            f"{'✓' if opinion.right[0][i] == '1' else '✗'} {_cut(opinion.said[i]) or NO_ANSWER}"
            for opinion in found.opinions.values()
        ]
        rows.append((str(i + 1), *map(_cut, texts), *said))
    header = ("№", "question", "passage", "right") if found.passages else ("№", "text", "right")
    table = Table((*header, *found.opinions), rows, label=f"Predictions {found.task.name}")
    gist = f"{'spread evenly:' if first is None else 'the first'} {len(places)} of {total:,}"
    about = [text for text, holds in ((SHOWN, found.has_seeds), (COUNTED, found.passages)) if holds]
    return Fold(found.task.title, gist, [*about, table], static=first is None)


def _spread(total: int, count: int) -> Sequence[int]:
    """Up to `count` of `total` examples, evenly spread."""
    count = min(count, total)
    return [i * total // count for i in range(count)]


def pack(data: Sequence[Mapping[str, Any]]) -> str:
    """Compressed json in base64, which needs no escapes in HTML."""
    plain = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    return base64.b64encode(zlib.compress(plain, 9)).decode()


def _packed(found: Predictions) -> dict[str, Any]:
    kept = _spread(len(found.texts), MOST)
    shown = [found.passages[i] for i in kept] if found.passages else []
    passages = {passage: number for number, passage in enumerate(dict.fromkeys(shown))}
    classes = {name: number for number, name in enumerate(found.classes)}
    return {
        "title": found.task.title, "noun": found.task.noun,
        "number": [i + 1 for i in kept] if len(kept) < len(found.texts) else None,
        "methods": [_packed_opinion(name, opinion, kept, classes) for name, opinion in found.opinions.items()],
        "classes": found.classes, "text": [found.texts[i] for i in kept], "passages": list(passages),
        "passage": [passages[passage] for passage in shown],
        "gold": [classes[found.golds[i][0]] if classes else found.spans[i] for i in kept],
    }  # fmt: skip


def _packed_opinion(name: str, opinion: Opinion, kept: Sequence[int], classes: Mapping[str, int]) -> dict[str, Any]:
    """The predictions of a method or a baseline for the examples that are kept; `classes`: numbers by name, if any."""
    sure, times = opinion.sure, 100 if classes else 10
    return {
        "name": name,
        "baseline": sure is None,
        "right": ["".join(seed[i] for i in kept) for seed in opinion.right],
        "sure": None if sure is None else [None if isnan(sure[i]) else round(times * sure[i]) for i in kept],
        **({"said": [classes[opinion.said[i]] for i in kept]} if classes else _placed(opinion, kept)),
    }


def _placed(opinion: Opinion, places: Sequence[int]) -> dict[str, Any]:
    """Where answers stand in their passages; `start` is -1 for no answer and for an `other` one, not in the passage."""
    answers = [opinion.said[i] for i in places]
    start = [opinion.starts[i] if answer else -1 for i, answer in zip(places, answers, strict=True)]
    return {
        "start": start, "length": [len(answer) for answer in answers],
        "other": {number: answer for number, answer in enumerate(answers) if answer and start[number] < 0},
        "f1": [round(100 * opinion.f1[i]) for i in places],
    }  # fmt: skip


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]} … ({len(text):,} characters)"
