"""Paired differences between two revisions' models, from their predictions on the same examples, or their losses."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.special import softmax

from retrace.core.errors import InputError
from retrace.core.paths import ON_TEST, questions_path, source_folder
from retrace.datasets.squad import read_questions
from retrace.evaluation.outcomes import Answered, Classified, Scoring, logits_of
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.evaluation.settings import EvaluateParams
from retrace.perplexity.measures import DOCUMENTS, Measured, are_same_documents, read_documents, resampled
from retrace.results.grid import PREDICTIONS, Kind
from retrace.results.predictions import kept_epoch, read_epochs, read_tested
from retrace.review.revision import FIGURE, Revision
from retrace.statistics.comparisons import Difference, difference
from retrace.statistics.intervals import Scored, resample


def paired_differences(
    task: str, method: str, figures: Sequence[str], sides: Sequence[Revision], params: EvaluateParams
) -> dict[str, Difference] | None:
    """The second revision's figures less the first's, means over the seeds of `params`; only those that are resampled.

    Empty where predictions are not available, None where they are of different examples.
    """
    own = task.removesuffix(ON_TEST)
    kind, settings = params.finetune.kind_of(own), params.metrics
    folders = [PREDICTIONS / own / method / str(seed) for seed in params.finetune.seeds]
    outcomes = [_outcome(task, kind, side, folder) for side in sides for folder in folders]
    found = [of for of in outcomes if of is not None]
    if any(_asked(of) != _asked(found[0]) for of in found):
        return None
    if len(found) < len(outcomes):
        return {}
    scoring = Scoring(getattr(settings, kind)).of(figures)
    by_place = {str(place): of for place, of in enumerate(found)}
    scored = [*scoring.scored(by_place, settings.bootstrap_samples, settings.seed).values()]
    before, after = scored[: len(scored) // 2], scored[len(scored) // 2 :]
    return {name: difference(name, after, before, are_paired=True) for name in figures if name in before[0].drawn}


def paired_perplexity(split: str, measure: str, sides: Sequence[Revision], params: EvaluateParams) -> Difference | None:
    """The second language model's perplexity per token less the first's, on the same documents.

    None where the documents' losses are not available, or are of other documents or tokens.
    """
    old, new = (_documents(side).get((split, measure)) for side in sides)
    if old is None or new is None or not are_same_documents(old, new):
        return None
    settings, count = params.metrics, int((old[0].scored > 0).sum())
    figures = {"old": resampled(*old), "new": resampled(*new)}
    drawn = resample(figures, len(old[0].sums), settings.bootstrap_samples, settings.seed)
    perplexities = [np.exp(of["perplexity_per_token"]) for of in drawn.values()]
    before, after = (
        Scored({FIGURE: math.exp(losses.mean)}, {FIGURE: of}, examples={FIGURE: count})
        for (losses, _), of in zip((old, new), perplexities, strict=True)
    )
    return difference(FIGURE, [after], [before], are_paired=True) if count > 1 else None


def have_other_tokens(split: str, measure: str, sides: Sequence[Revision]) -> bool:
    """Whether the losses are of other tokens, so that perplexities per token cannot be compared."""
    old, new = (_documents(side).get((split, measure)) for side in sides)
    return old is not None and new is not None and not np.array_equal(old[1].tokens, new[1].tokens)


@cache
def _documents(revision: Revision) -> Mapping[tuple[str, str], Measured]:
    """The losses by split and measure, as far as they are available."""
    content = revision.read(DOCUMENTS)
    return {} if content is None else read_documents(content)


def _outcome(task: str, kind: Kind, revision: Revision, folder: Path) -> Classified | Answered | None:
    """The decisions of a run's kept epoch; None where its predictions, or the questions, are not available or valid."""
    is_test = task.endswith(ON_TEST)
    with TemporaryDirectory() as name:
        copy = Path(name)
        if not revision.fetch(folder, copy):
            return None
        try:
            rows = kept_epoch((read_tested if is_test else read_epochs)(copy, kind)).rows
        except (InputError, OSError, KeyError, ValueError):
            return None
        if kind == "classification":
            logits = logits_of(rows)
            classes = tuple(map(str, range(logits.shape[1])))
            return Classified(classes, rows["label"].to_numpy(), logits.argmax(axis=1), softmax(logits, axis=1))
        part, source = "test" if is_test else "dev", source_folder(str(revision.params.get("data")))
        content = revision.read(questions_path(source, part, task.removesuffix(ON_TEST)))
        if content is None:
            return None
        (copy / "questions.json").write_bytes(content)
        with suppress(InputError):
            return QuestionAnsweringTask([], read_questions(copy / "questions.json")).outcome(rows)
        return None


def _asked(outcome: Classified | Answered) -> Sequence[object]:
    """The right classes, or the right answers, by which examples are recognised."""
    return outcome.labels.tolist() if isinstance(outcome, Classified) else outcome.golds
