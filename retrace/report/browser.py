"""Every prediction beside the right answer: packed for the page's script, and some of them printed as a table.

The packed data is of the first seed. A class has its number, `said`, and confidence, `sure`, in %. An answer has its
`start` and `length` in the passage, its F1, `f1`, in %, and ten times its score less that of no answer, `sure`; `other`
has answers that are no part of the passage, by number. `sure` is null for baselines and for models that never abstain.
`right` is a string of 0 and 1 for every seed; an answer is right from an F1 of 50% on.
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

from retrace.core.paths import has_test, on_test, questions_path
from retrace.core.settings import build
from retrace.datasets.examples import Example, read_classes, read_examples
from retrace.datasets.squad import Question, read_questions
from retrace.evaluation.metrics.squad_v2 import compare
from retrace.evaluation.outcomes import decided_answers, logits_of
from retrace.report.blocks import Browser, Fold, Section, Table
from retrace.report.names import baseline_name, method_name, noun_of, title_of
from retrace.report.results import Task
from retrace.results.grid import PREDICTIONS, Grid, Kind
from retrace.results.predictions import kept_epoch, read_baselines, read_epochs, read_tested

PRINTED = 20  # examples of each task in the table
LONG = 600  # characters from which a printed text is cut
MOST = 20_000  # examples of a task in the browser
RIGHT = 0.5  # F1
NO_ANSWER = "no answer"
Kept = Mapping[str, Sequence[pd.DataFrame]]  # the rows of every seed, by method


@dataclass(frozen=True)
class Opinion:
    """The predictions of a method, with every seed, or of a baseline."""

    said: Sequence[str]  # by the first seed: class names, or answers, "" for none
    right: Sequence[Sequence[bool]]  # by every seed
    # By the first seed: the confidence, or the answer's score less that of none, NaN for a model that never abstains.
    sure: Sequence[float] | None = None  # None of a baseline
    starts: Sequence[int] = ()  # of the first seed's answers in their passages, -1 of one that is no part of it
    f1: Sequence[float] = ()  # of the first seed's answers


@dataclass(frozen=True)
class Predictions:
    """A task's examples, those of the test set where there is one, and everyone's predictions."""

    name: str  # of the task, or of its test set
    kind: Kind
    texts: Sequence[str]
    golds: Sequence[Sequence[str]]  # the right class, or answers
    opinions: Mapping[str, Opinion]  # by the name of a method or baseline as readers see it
    classes: Sequence[str] = ()  # empty for questions
    passages: Sequence[str] = ()  # of questions
    spans: Sequence[Sequence[tuple[int, int]]] = ()  # of questions: start and length of the right answers


def read_all(params: Mapping[str, Any], source: Path) -> list[Predictions]:
    """The predictions of every task."""
    grid = build(Grid, params, "finetune")
    return [_read(grid, source, task) for task in grid.all_tasks]


def _read(grid: Grid, source: Path, task: str) -> Predictions:
    part, name, read = ("test", on_test(task), read_tested) if has_test(source, task) else ("dev", task, read_epochs)
    kind, folder = grid.kind_of(task), PREDICTIONS / task
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
    labels = np.array([example.label for example in examples])
    logits = {method: [logits_of(rows) for rows in seeds] for method, seeds in kept.items()}
    said = {method: [of.argmax(axis=1) for of in seeds] for method, seeds in logits.items()}
    said |= {baseline: [np.array(given)] for baseline, given in baselines.items()}
    sure = {method: softmax(seeds[0], axis=1).max(axis=1) for method, seeds in logits.items()}
    opinions = {
        who: Opinion([classes[of] for of in seeds[0]], [of == labels for of in seeds], sure.get(who))
        for who, seeds in said.items()
    }
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
        opinions[who] = Opinion(seeds[0], right, sure, starts, f1[0])

    for method, seeds in kept.items():
        rows = seeds[0].set_index("id").reindex([question.id for question in questions])
        said = [[of.get(question.id, "") for question in questions] for of in map(decided_answers, seeds)]
        sure = (rows["score"] - rows["null_score"]).tolist()
        add(method, said, rows["start"].fillna(-1).astype(int).tolist(), sure)
    for baseline, given in baselines.items():
        add(baseline, [[of["text"] for of in given]], [of["start"] for of in given])
    texts, passages = ([getattr(question, of) for question in questions] for of in ("text", "context"))
    spans = [[(answer.start, len(answer.text)) for answer in question.answers] for question in questions]
    return Predictions(name, "question_answering", texts, golds, opinions, passages=passages, spans=spans)


def predictions_section(found: Sequence[Predictions], tasks: Sequence[Task], first: int | None = None) -> Section:
    """All predictions for the script, and a table of the `first` ones, or of some spread evenly without a script."""
    total = sum(len(each.texts) for each in found)
    several = any(len(of.right) > 1 for each in found for of in each.opinions.values())
    seeds = "The answer shown is of the first seed; dots: right (●) or wrong (○) with each seed. " if several else ""
    left_out = "".join(
        f" Of {len(each.texts):,} {noun_of(each.name, each.kind)}, {MOST:,} are here, evenly spread."
        for each in found if len(each.texts) > MOST
    )  # fmt: skip
    note = (
        f"All {total:,} examples with each method’s predictions.{left_out} {seeds}Beside a class stands the method’s "
        "confidence; beside an answer, if the method may abstain, its score minus that of no answer. In passages the "
        "right answer is shaded, and each method underlines its own in its colour, baselines in grey; ≈ marks an "
        "answer that is partly right."
    )
    places = {method_name(method): task.places[method] for task in tasks for method in task.methods}
    ranks = {task.name: list(map(method_name, task.methods)) for task in tasks}
    ranked = []  # methods from the best to the worst, then baselines
    for each in found:
        order = dict.fromkeys([*(who for who in ranks[each.name] if who in each.opinions), *each.opinions])
        ranked.append(replace(each, opinions={who: each.opinions[who] for who in order}))
    browser = Browser(pack([_packed(each) for each in ranked]), list(places.items()))
    return Section("Predictions", [note, browser, *(_printed(each, first) for each in ranked)])


def _printed(found: Predictions, first: int | None) -> Fold:
    """A table of some examples: the right answer, and those of each method's first seed and of each baseline."""
    total = len(found.texts)
    places = _spread(total, PRINTED) if first is None else range(min(first, total))
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


def _spread(total: int, count: int) -> Sequence[int]:
    """Up to `count` of `total` examples, evenly spread."""
    count = min(count, total)
    return [i * total // count for i in range(count)]


def pack(data: Sequence[Mapping[str, Any]]) -> str:
    """Compressed json in base64, which HTML needs no escapes for."""
    plain = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    return base64.b64encode(zlib.compress(plain, 9)).decode()


def _packed(found: Predictions) -> dict[str, Any]:
    places = _spread(len(found.texts), MOST)
    shown = [found.passages[i] for i in places] if found.passages else []
    passages = {passage: number for number, passage in enumerate(dict.fromkeys(shown))}
    methods, times = [], 100 if found.classes else 10
    for name, of in found.opinions.items():
        right = ["".join("1" if seed[i] else "0" for i in places) for seed in of.right]
        sure = None if of.sure is None else [None if isnan(of.sure[i]) else round(times * of.sure[i]) for i in places]
        said = _placed(of, places) if passages else {"said": [found.classes.index(of.said[i]) for i in places]}
        methods.append({"name": name, "baseline": of.sure is None, "right": right, "sure": sure, **said})
    return {
        "title": title_of(found.name), "noun": noun_of(found.name, found.kind),
        "number": [i + 1 for i in places] if len(places) < len(found.texts) else None, "methods": methods,
        "classes": found.classes, "text": [found.texts[i] for i in places], "passages": list(passages),
        "passage": [passages[passage] for passage in shown],
        "gold": [found.spans[i] if passages else found.classes.index(found.golds[i][0]) for i in places],
    }  # fmt: skip


def _placed(opinion: Opinion, places: Sequence[int]) -> dict[str, Any]:
    """Where answers stand in their passages: -1 for no answer, and for `other` ones, which are not part of it."""
    answers = [opinion.said[i] for i in places]
    start = [opinion.starts[i] if answer else -1 for i, answer in zip(places, answers, strict=True)]
    return {
        "start": start, "length": [len(answer) for answer in answers],
        "other": {number: answer for number, answer in enumerate(answers) if answer and start[number] < 0},
        "f1": [round(100 * opinion.f1[i]) for i in places],
    }  # fmt: skip


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]} … ({len(text):,} characters)"
