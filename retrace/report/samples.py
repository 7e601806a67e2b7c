"""Sample predictions beside the right answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from retrace.core.paths import has_test, on_test, questions_path
from retrace.core.settings import build
from retrace.datasets.examples import Example, read_classes, read_examples
from retrace.datasets.squad import Question, read_questions
from retrace.evaluation.outcomes import decided_answers, logits_of
from retrace.report.blocks import Section, Table
from retrace.report.scores import title_of
from retrace.results.grid import Grid
from retrace.results.predictions import kept_epoch, read_epochs, read_tested

PREDICTIONS = Path("predictions")
SAMPLES = 6  # of each task
NO_ANSWER = "(no answer)"
Predictions = Mapping[str, pd.DataFrame]  # by method


def samples_section(params: Mapping[str, Any], source: Path, first: int | None = None) -> Section:
    """What each method predicted with the first seed at the epoch that was kept, on the test set where there is one.

    Shown are the `first` examples, or, where that is None, some that are spread evenly over the data.
    """
    blocks: list[str | Table] = [f"{'Spread evenly over' if first is None else 'The first of'} each task's data."]
    grid = build(Grid, params, "finetune")
    for task in grid.all_tasks:
        part, read = ("test", read_tested) if has_test(source, task) else ("dev", read_epochs)
        kind, folder, seed = grid.kind_of(task), PREDICTIONS / task, str(grid.seeds[0])
        kept = {method: kept_epoch(read(folder / method / seed, kind)).rows for method in grid.methods_of(task)}
        blocks += [f"{title_of(on_test(task))}:"] if part == "test" else []
        if kind == "classification":
            blocks.append(classified_table(read_examples(source, task, part), read_classes(source, task), kept, first))
        else:
            blocks.append(answered_table(read_questions(questions_path(source, part, task)), kept, first))
    return Section("Sample predictions", blocks)


def classified_table(
    examples: Sequence[Example], classes: Sequence[str], predictions: Predictions, first: int | None
) -> Table:
    """Some examples with their class and the one that each method predicted."""
    decided = [logits_of(rows).argmax(axis=1) for rows in predictions.values()]
    rows = []
    for i in sample_places(len(examples), first):
        texts = " / ".join(filter(None, (examples[i].text, examples[i].pair)))
        rows.append((texts, classes[examples[i].label], *(classes[given[i]] for given in decided)))
    return Table(("text", "right", *predictions), rows)


def answered_table(questions: Sequence[Question], predictions: Predictions, first: int | None) -> Table:
    """Some questions with the right answers and each method's."""
    decided = [decided_answers(rows) for rows in predictions.values()]
    rows = []
    for i in sample_places(len(questions), first):
        question = questions[i]
        right = " / ".join(dict.fromkeys(answer.text for answer in question.answers)) or NO_ANSWER
        given = (by_id.get(question.id) or NO_ANSWER for by_id in decided)
        rows.append((question.text, question.context, right, *given))
    return Table(("question", "passage", "right", *predictions), rows)


def sample_places(total: int, first: int | None = None) -> list[int]:
    """Which of `total` examples are shown: the first ones, or where that is None SAMPLES of them, evenly spread."""
    if first is not None:
        return list(range(min(first, total)))
    count = min(SAMPLES, total)
    return [i * total // count for i in range(count)]
