"""Every prediction beside the right answer: packed for the page's script, and some of them printed as a table.

Of a classifier's decision `said` is the class × 101 + the confidence in %. Of an answer `start` and `length` are its
place in the passage, `margin` is ten times its score less that of no answer, `f1` is in %, and `other` has answers that
are no part of the passage, by number. These are of the first seed; `right` is a string of 0 and 1 for every seed. An
answer counts as right from an F1 of 50% on.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from retrace.report.blocks import Browser, Cell, Fold, Section, Table
from retrace.report.names import baseline_name, method_name, noun_of, title_of
from retrace.report.results import PREDICTIONS, Task
from retrace.results.baselines import read_baselines
from retrace.results.grid import Grid, Kind
from retrace.results.predictions import kept_epoch, read_epochs, read_tested

PRINTED = 20  # examples of each task
LONG = 600  # characters of a text that are printed
MOST = 20_000  # examples of a task in the browser
RIGHT = 0.5  # F1
NO_ANSWER = "no answer"


@dataclass(frozen=True)
class Predictions:
    """What every method with every seed said of a task's examples, on the test set where there is one."""

    name: str  # of its figures: a test set's is another than the task's
    kind: Kind
    examples: Sequence[Example] | Sequence[Question]
    classes: Sequence[str]  # of classification
    seeds: Sequence[str]
    methods: Mapping[str, Sequence[pd.DataFrame]]  # a frame a seed
    baselines: Mapping[str, Sequence[Any]]  # class numbers or answers, an entry an example


def read_all(params: Mapping[str, Any], source: Path) -> list[Predictions]:
    """The predictions of every task."""
    grid = build(Grid, params, "finetune")
    return [_read(grid, source, task) for task in grid.all_tasks]


def _read(grid: Grid, source: Path, task: str) -> Predictions:
    part, read = ("test", read_tested) if has_test(source, task) else ("dev", read_epochs)
    kind, folder = grid.kind_of(task), Path(PREDICTIONS) / task
    kept = {
        method: [kept_epoch(read(folder / method / str(seed), kind)).rows for seed in grid.seeds]
        for method in grid.methods_of(task)
    }
    is_classes, name = kind == "classification", task + (ON_TEST if part == "test" else "")
    examples = read_examples(source, task, part) if is_classes else read_questions(questions_path(source, part, task))
    classes = read_classes(source, task) if is_classes else ()
    return Predictions(name, kind, examples, classes, [str(seed) for seed in grid.seeds], kept, read_baselines(name))


def predictions_section(found: Sequence[Predictions], tasks: Sequence[Task], samples: str = "spread") -> Section:
    """All predictions for the script, and without it some as a table: `samples` is first or spread."""
    by_name = {task.name: task for task in tasks}
    total = sum(len(each.examples) for each in found)
    several = "The answer shown is of the first seed; dots: right (●) or wrong (○) with each seed. " if len(found[0].seeds) > 1 else ""
    left_out = "".join(
        f" Of {len(each.examples):,} {noun_of(each.name, each.kind)} {MOST:,} are here, evenly spread."
        for each in found if len(each.examples) > MOST
    )  # fmt: skip
    note = (
        f"All {total:,} examples beside what each method said.{left_out} {several}Beside a class stands how sure the method "
        "is, beside an answer its score less that of no answer. In passages the right answer is shaded, and each method "
        "underlines its own in its colour; ≈ is an answer that is right in part."
    )
    data = [_packed_task(each, by_name[each.name]) for each in found]
    places = {method: task.place(method) for task in tasks for method in task.methods}
    marks = [(method_name(method), place) for method, place in places.items()]
    return Section("Predictions", [note, Browser(pack(data), marks), *samples_folds(found, PRINTED, samples)])


def samples_section(params: Mapping[str, Any], source: Path, first: int | None = None) -> Section:
    """Some predictions as tables: the `first` examples, or, where that is None, some spread evenly over the data."""
    found = read_all(params, source)
    folds = samples_folds(found, PRINTED if first is None else first, "spread" if first is None else "first")
    return Section("Sample predictions", [block for fold in folds for block in (f"{fold.title}: {fold.gist}.", *fold.blocks)])


def samples_folds(found: Sequence[Predictions], count: int, samples: str) -> list[Fold]:
    """A table for each task."""
    folds = []
    for each in found:
        table = classified_table(each, count, samples) if each.kind == "classification" else answered_table(each, count, samples)
        how = "the first" if samples == "first" else "spread evenly:"
        gist = f"{how} {len(table.rows)} of {len(each.examples):,}"
        folds.append(Fold(title_of(each.name), gist, [table], static=True))
    return folds


def classified_table(found: Predictions, count: int, samples: str) -> Table:
    """Some examples with their class and the one that each method's first seed predicted."""
    said = {method_name(name): logits_of(rows[0]).argmax(axis=1) for name, rows in found.methods.items()}
    said |= {baseline_name(name): np.array(given) for name, given in found.baselines.items()}
    rows = []
    for i in sample_places(len(found.examples), count, samples):
        example = found.examples[i]
        assert isinstance(example, Example), "of classification"
        given = [_judged(found.classes[of[i]], of[i] == example.label) for of in said.values()]
        rows.append((str(i + 1), _cut(_both(example)), found.classes[example.label], *given))
    return Table(("№", "text", "right", *said), rows, label=f"Predictions {found.name}")


def answered_table(found: Predictions, count: int, samples: str) -> Table:
    """Some questions with the right answers and each method's."""
    said = {method_name(name): decided_answers(rows[0]) for name, rows in found.methods.items()}
    baselines = {baseline_name(name): given for name, given in found.baselines.items()}
    rows = []
    for i in sample_places(len(found.examples), count, samples):
        question = found.examples[i]
        assert isinstance(question, Question), "of question answering"
        golds = tuple(dict.fromkeys(answer.text for answer in question.answers))
        answers = [*(of.get(question.id, "") for of in said.values()), *(of[i] for of in baselines.values())]
        given = [_judged(_cut(text) or NO_ANSWER, compare(golds, text)[1] >= RIGHT) for text in answers]
        right = _cut(" / ".join(golds)) or NO_ANSWER
        rows.append((str(i + 1), _cut(question.text), _cut(question.context), right, *given))
    return Table(("№", "question", "passage", "right", *said, *baselines), rows, label=f"Predictions {found.name}")


def sample_places(total: int, count: int, samples: str) -> list[int]:
    """Which of `total` examples are printed: the first, or evenly spread."""
    count = min(count, total)
    return list(range(count)) if samples == "first" else [i * total // count for i in range(count)]


def pack(data: Sequence[Mapping[str, Any]]) -> str:
    """Json, compressed, as text that stands in HTML as it is."""
    plain = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    return base64.b64encode(zlib.compress(plain, 9)).decode()


def _packed_task(found: Predictions, task: Task) -> dict[str, Any]:
    places = sample_places(len(found.examples), MOST, "spread")
    shared = {"title": task.title, "noun": task.noun, "number": [i + 1 for i in places] if len(places) < len(found.examples) else None}
    who = [(name, method_name(name), False) for name in task.methods]
    who += [(name, baseline_name(name), True) for name in found.baselines]
    if found.kind == "classification":
        examples = [example for i in places if isinstance(example := found.examples[i], Example)]
        gold = np.array([example.label for example in examples])
        methods = [
            {"name": shown, "baseline": is_baseline}
            | (_decided(np.array(found.baselines[name])[places], gold) if is_baseline else _classified(found.methods[name], places, gold))
            for name, shown, is_baseline in who
        ]  # fmt: skip
        return shared | {"classes": list(found.classes), "text": [_both(example) for example in examples], "gold": gold.tolist(), "methods": methods}
    questions = [question for i in places if isinstance(question := found.examples[i], Question)]
    passages = list(dict.fromkeys(question.context for question in questions))
    numbers = {passage: number for number, passage in enumerate(passages)}
    methods = []
    for name, shown, is_baseline in who:
        given = [found.baselines[name][i] for i in places] if is_baseline else []
        of = _placed(questions, given) if is_baseline else _answered(found.methods[name], questions)
        methods.append({"name": shown, "baseline": is_baseline, **of})
    return shared | {
        "passages": passages, "text": [question.text for question in questions],
        "passage": [numbers[question.context] for question in questions],
        "gold": [sorted({(answer.start, len(answer.text)) for answer in question.answers}) for question in questions],
        "methods": methods,
    }  # fmt: skip


def _both(example: Example) -> str:
    return example.text if example.pair is None else f"{example.text} / {example.pair}"


def _classified(seeds: Sequence[pd.DataFrame], places: Sequence[int], gold: np.ndarray) -> dict[str, Any]:
    logits = [logits_of(rows)[places] for rows in seeds]
    first = softmax(logits[0], axis=1)
    said = logits[0].argmax(axis=1) * 101 + np.round(100 * first.max(axis=1)).astype(int)
    return {"said": said.tolist(), "right": [_bits(of.argmax(axis=1) == gold) for of in logits]}


def _decided(classes: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    return {"said": (classes * 101).tolist(), "right": [_bits(classes == gold)]}


def _answered(seeds: Sequence[pd.DataFrame], questions: Sequence[Question]) -> dict[str, Any]:
    answers = [decided_answers(rows) for rows in seeds]
    texts = [[of.get(question.id, "") for question in questions] for of in answers]
    rows = seeds[0].set_index("id").reindex([question.id for question in questions])
    margin = (10 * (rows["score"] - rows["null_score"])).round().fillna(0).astype(int).tolist()
    spans = rows["text"].fillna("").tolist()
    right = [_bits(np.array(_f1(questions, of)) >= RIGHT) for of in texts[1:]]
    placed = _placed(questions, [span if said else "" for span, said in zip(spans, texts[0], strict=True)])
    return {**placed, "margin": margin, "right": [*placed["right"], *right]}


def _placed(questions: Sequence[Question], answers: Sequence[str]) -> dict[str, Any]:
    """Where answers stand; -1 where there is none, and -2 where it is no part of the passage."""
    start, length, other = [], [], {}
    for i, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        known = next((right.start for right in question.answers if right.text == answer), None)
        at = -1 if not answer else question.context.find(answer) if known is None else known
        if answer and at < 0:
            at, other[i] = -2, answer
        start.append(at)
        length.append(len(answer))
    f1 = _f1(questions, answers)
    right = _bits(np.array(f1) >= RIGHT)
    return {"start": start, "length": length, "other": other, "f1": [round(100 * of) for of in f1], "right": [right]}


def _f1(questions: Sequence[Question], answers: Sequence[str]) -> list[float]:
    golds = [tuple(dict.fromkeys(answer.text for answer in question.answers)) for question in questions]
    return [compare(right, answer)[1] for right, answer in zip(golds, answers, strict=True)]


def _bits(right: np.ndarray) -> str:
    return "".join("1" if of else "0" for of in right)


def _judged(text: str, is_right: bool) -> Cell:
    return Cell(f"{'✓' if is_right else '✗'} {text}")


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]} … ({len(text):,} characters)"
