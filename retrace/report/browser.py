"""Every prediction beside the right answer: packed for the page's script, and some of them printed as a table.

Packed are of the first seed: of a class `said`, its number, and `sure`, in %; of an answer `start` and `length` in the
passage, `sure`, ten times its score less that of no answer, `f1`, in %, and `other`, answers by number that are no part
of the passage. `sure` is null of baselines and of models that never abstain. `right` is a string of 0 and 1 for every
seed; an answer is right from an F1 of 50% on.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from retrace.core.paths import ON_TEST, has_test, questions_path
from retrace.core.settings import build
from retrace.datasets.examples import Example, read_classes, read_examples
from retrace.datasets.squad import Question, read_questions
from retrace.evaluation.metrics.squad_v2 import compare
from retrace.evaluation.outcomes import decided_answers, logits_of
from retrace.report.blocks import Browser, Fold, Section, Table
from retrace.report.names import baseline_name, method_name, noun_of, title_of
from retrace.report.results import PREDICTIONS, Task
from retrace.results.grid import Grid, Kind
from retrace.results.predictions import kept_epoch, read_baselines, read_epochs, read_tested

PRINTED = 20  # examples of each task
LONG = 600  # characters of a text that are printed
MOST = 20_000  # examples of a task in the browser
RIGHT = 0.5  # F1
NO_ANSWER = "no answer"
Kept = Mapping[str, Sequence[pd.DataFrame]]  # the rows of every seed, by method


@dataclass(frozen=True)
class Opinion:
    """What a method, with every seed, or a baseline said of a task's examples."""

    said: Sequence[str]  # with the first seed: class names, or answers, "" for none
    right: Sequence[Sequence[bool]]  # with every seed
    # Of the first seed: the confidence, or the answer's score less that of none, NaN of a model that never abstains.
    sure: Sequence[float] | None = None
    starts: Sequence[int] = ()  # of the first seed's answers in their passages, -1 of one that is no part of it
    f1: Sequence[float] = ()  # of the first seed's answers
    is_baseline: bool = False


@dataclass(frozen=True)
class Predictions:
    """A task's examples, those of the test set where there is one, and what everyone said of them."""

    name: str  # of its figures: a test set's is another than the task's
    kind: Kind
    texts: Sequence[str]
    golds: Sequence[Sequence[str]]  # the right class, or answers
    opinions: Mapping[str, Opinion]  # by the name that is shown
    classes: Sequence[str] = ()  # none of questions
    passages: Sequence[str] = ()  # of questions
    spans: Sequence[Sequence[tuple[int, int]]] = ()  # of questions: start and length of the right answers


def read_all(params: Mapping[str, Any], source: Path) -> list[Predictions]:
    """The predictions of every task."""
    grid = build(Grid, params, "finetune")
    return [_read(grid, source, task) for task in grid.all_tasks]


def _read(grid: Grid, source: Path, task: str) -> Predictions:
    part, read = ("test", read_tested) if has_test(source, task) else ("dev", read_epochs)
    kind, folder, name = grid.kind_of(task), PREDICTIONS / task, task + (ON_TEST if part == "test" else "")
    kept = {
        method_name(method): [kept_epoch(read(folder / method / str(seed), kind)).rows for seed in grid.seeds]
        for method in grid.methods_of(task)
    }
    baselines = {baseline_name(baseline): given for baseline, given in read_baselines(name).items()}
    if kind == "classification":
        return _classified(name, read_examples(source, task, part), read_classes(source, task), kept, baselines)
    return _answered(name, read_questions(questions_path(source, part, task)), kept, baselines)


def _classified(
    name: str, examples: Sequence[Example], classes: tuple[str, ...], kept: Kept, baselines: Mapping[str, Sequence[int]]
) -> Predictions:
    labels, opinions = np.array([example.label for example in examples]), {}

    def add(who: str, seeds: Sequence[np.ndarray], sure: Sequence[float] | None = None) -> None:
        said, right = [classes[of] for of in seeds[0]], [of == labels for of in seeds]
        opinions[who] = Opinion(said, right, sure, is_baseline=who in baselines)

    for method, seeds in kept.items():
        logits = [logits_of(rows) for rows in seeds]
        add(method, [of.argmax(axis=1) for of in logits], softmax(logits[0], axis=1).max(axis=1))
    for baseline, given in baselines.items():
        add(baseline, [np.array(given)])
    texts = [example.text if example.pair is None else f"{example.text} / {example.pair}" for example in examples]
    return Predictions(name, "classification", texts, [[classes[of]] for of in labels], opinions, list(classes))


def _answered(
    name: str, questions: Sequence[Question], kept: Kept, baselines: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Predictions:
    golds, opinions = [tuple(dict.fromkeys(of.text for of in question.answers)) for question in questions], {}

    def add(
        who: str, seeds: Sequence[Sequence[str]], starts: Sequence[int], sure: Sequence[float] | None = None
    ) -> None:
        f1 = [[compare(right, answer)[1] for right, answer in zip(golds, seed, strict=True)] for seed in seeds]
        right = [[of >= RIGHT for of in seed] for seed in f1]
        opinions[who] = Opinion(seeds[0], right, sure, starts, f1[0], is_baseline=who in baselines)

    for method, seeds in kept.items():
        rows = seeds[0].set_index("id").reindex([question.id for question in questions])
        answers = [decided_answers(of) for of in seeds]
        sure = (rows["score"] - rows["null_score"]).tolist()
        said = [[of.get(question.id, "") for question in questions] for of in answers]
        add(method, said, rows["start"].fillna(-1).astype(int).tolist(), sure)
    for baseline, given in baselines.items():
        add(baseline, [[of["text"] for of in given]], [of["start"] for of in given])
    texts, passages = ([getattr(question, of) for question in questions] for of in ("text", "context"))
    spans = [[(answer.start, len(answer.text)) for answer in question.answers] for question in questions]
    return Predictions(name, "question_answering", texts, golds, opinions, passages=passages, spans=spans)


def predictions_section(found: Sequence[Predictions], tasks: Sequence[Task], first: int | None = None) -> Section:
    """All predictions for the script, and as a table the `first` ones, or, without the script, some spread evenly."""
    total = sum(len(each.texts) for each in found)
    several = max(len(of.right) for each in found for of in each.opinions.values()) > 1
    seeds = "The answer shown is of the first seed; dots: right (●) or wrong (○) with each seed. " if several else ""
    left_out = "".join(
        f" Of {len(each.texts):,} {noun_of(each.name, each.kind)} {MOST:,} are here, evenly spread."
        for each in found if len(each.texts) > MOST
    )  # fmt: skip
    note = (
        f"All {total:,} examples beside what each method said.{left_out} {seeds}Beside a class stands how sure "
        "the method is, beside an answer its score less that of no answer, of a method that may abstain. In passages "
        "the right answer is shaded, and each method underlines its own in its colour, baselines in grey; ≈ is an "
        "answer that is right in part."
    )
    places = {method_name(method): task.places[method] for task in tasks for method in task.methods}
    ranks = {task.name: {method_name(method): rank for rank, method in enumerate(task.methods)} for task in tasks}
    ranked = []  # baselines last
    for each in found:
        best = sorted(each.opinions.items(), key=lambda item, of=each.name: ranks[of].get(item[0], MOST))
        ranked.append(replace(each, opinions=dict(best)))
    browser = Browser(pack([_packed(each) for each in ranked]), list(places.items()))
    return Section("Predictions", [note, browser, *(_printed(each, first) for each in ranked)])


def _printed(found: Predictions, first: int | None) -> Fold:
    """A table of some examples with the right answer and what each method's first seed and each baseline said."""
    total = len(found.texts)
    places = spread(total, PRINTED) if first is None else list(range(min(first, total)))
    rows = []
    for i in places:
        passage = [found.passages[i]] if found.passages else []
        texts = [found.texts[i], *passage, " / ".join(found.golds[i]) or NO_ANSWER]
        said = [f"{'✓' if of.right[0][i] else '✗'} {_cut(of.said[i]) or NO_ANSWER}" for of in found.opinions.values()]
        rows.append((str(i + 1), *map(_cut, texts), *said))
    header = ("№", "question", "passage", "right") if found.passages else ("№", "text", "right")
    table = Table((*header, *found.opinions), rows, label=f"Predictions {found.name}")
    gist = f"{'spread evenly:' if first is None else 'the first'} {len(places)} of {total:,}"
    return Fold(title_of(found.name), gist, [table], static=first is None)


def spread(total: int, count: int) -> list[int]:
    """Up to `count` of `total` examples, evenly spread."""
    count = min(count, total)
    return [i * total // count for i in range(count)]


def pack(data: Sequence[Mapping[str, Any]]) -> str:
    """Json, compressed, as text that stands in HTML as it is."""
    plain = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    return base64.b64encode(zlib.compress(plain, 9)).decode()


def _packed(found: Predictions) -> dict[str, Any]:
    places = spread(len(found.texts), MOST)
    shown = [found.passages[i] for i in places] if found.passages else []
    passages = {passage: number for number, passage in enumerate(dict.fromkeys(shown))}
    methods, times = [], 100 if found.classes else 10
    for name, of in found.opinions.items():
        right = ["".join("1" if seed[i] else "0" for i in places) for seed in of.right]
        sure = None if of.sure is None else [None if isnan(of.sure[i]) else round(times * of.sure[i]) for i in places]
        said = _placed(of, places) if passages else {"said": [found.classes.index(of.said[i]) for i in places]}
        methods.append({"name": name, "baseline": of.is_baseline, "right": right, "sure": sure, **said})
    return {
        "title": title_of(found.name), "noun": noun_of(found.name, found.kind),
        "number": [i + 1 for i in places] if len(places) < len(found.texts) else None, "methods": methods,
        "classes": found.classes, "text": [found.texts[i] for i in places], "passages": list(passages),
        "passage": [passages[passage] for passage in shown],
        "gold": [found.spans[i] if passages else found.classes.index(found.golds[i][0]) for i in places],
    }  # fmt: skip


def _placed(opinion: Opinion, places: Sequence[int]) -> dict[str, Any]:
    """Where answers stand in their passages: -1 where there is none, and of `other` ones, which are no part of it."""
    answers = [opinion.said[i] for i in places]
    start = [opinion.starts[i] if answer else -1 for i, answer in zip(places, answers, strict=True)]
    return {
        "start": start, "length": [len(answer) for answer in answers],
        "other": {number: answer for number, answer in enumerate(answers) if answer and start[number] < 0},
        "f1": [round(100 * opinion.f1[i]) for i in places],
    }  # fmt: skip


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]} … ({len(text):,} characters)"
