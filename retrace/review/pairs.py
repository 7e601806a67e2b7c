"""Paired differences between two revisions' models, from their predictions on the same examples, or their losses."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from retrace.core.errors import InputError
from retrace.core.paths import TEXT, TOKENIZER, TOKENS, examples_path, questions_path, task_and_part
from retrace.datasets.examples import Example, read_examples
from retrace.datasets.squad import Question, read_questions
from retrace.evaluation.outcomes import (
    CLUSTERED,
    Answered,
    Classified,
    Scoring,
    answers_of,
    classified,
    logits_of,
    text_clusters,
)
from retrace.evaluation.settings import EvaluateParams
from retrace.perplexity.measures import DOCUMENTS, Measured, are_same_documents, read_documents, resampled
from retrace.perplexity.settings import PerplexitySettings
from retrace.report.runs import flat
from retrace.results.grid import PREDICTIONS, Cell, Kind
from retrace.results.predictions import kept_epoch, read_epochs
from retrace.review.revision import FIGURE, Revision, data_of, have_other_data, kind_of
from retrace.statistics.comparisons import Difference, difference
from retrace.statistics.intervals import Scored, resample

BLOCK = "pretrain.block_size"
# Of perplexity, by measure: figures with other values are not comparable.
SETTINGS = {
    "masked": ("perplexity.mask_rate", BLOCK),
    "causal": ("perplexity.stride", BLOCK),
    "pseudo": ("perplexity.pseudo_passages", "perplexity.seed", BLOCK),
}
DEFAULTS = {f"perplexity.{name}": field.default for name, field in PerplexitySettings.model_fields.items()}


class Paired(NamedTuple):
    """The differences of a method's figures on the same examples."""

    are_same_examples: bool | None  # None: not known, as predictions are not available
    differences: Mapping[str, Difference] = {}  # of the figures that are resampled; none if the seeds differ


def paired_differences(
    task: str, method: str, figures: Sequence[str], sides: Sequence[Revision], params: EvaluateParams
) -> Paired:
    """The second revision's figures less the first's, means over the seeds of both."""
    (own, part), kind, settings = task_and_part(task), kind_of(task, sides), params.metrics
    path = (examples_path if kind == "classification" else questions_path)(data_of(task, sides), part)
    seeds = [flat(side.params).get("finetune.seeds") or [] for side in sides]
    runs = [(side, Cell(own, method, seed)) for side, listed in zip(sides, seeds, strict=True) for seed in listed]
    outcomes = [_outcome(cell, part, kind, side, path) for side, cell in runs]
    found = [outcome for outcome in outcomes if outcome is not None]
    if any(_asked(each) != _asked(found[0]) for each in found):
        return Paired(False)
    if found and _have_other_examples(path, sides):  # last, as it may fetch files
        return Paired(False)
    if len(found) < len(outcomes) or not all(seeds):
        return Paired(None)
    if seeds[0] != seeds[1]:
        return Paired(True)
    texts = next(filter(None, (_texts(_examples(side, kind, path)) for side in sides)), [])
    if len(texts) != len(found[0]) and any(CLUSTERED in side.notes_on(task) for side in sides):
        return Paired(True)  # which examples share a text is not known
    clusters = text_clusters(texts) if len(texts) == len(found[0]) else None
    scoring = Scoring(getattr(settings, kind)).of(figures)
    by_place = {str(place): outcome for place, outcome in enumerate(found)}
    scored = [*scoring.scored(by_place, settings.bootstrap_samples, settings.seed, clusters).values()]
    before, after = scored[: len(scored) // 2], scored[len(scored) // 2 :]
    drawn = [name for name in figures if name in before[0].drawn]
    return Paired(True, {name: difference(name, after, before, are_paired=True) for name in drawn})


def paired_perplexity(
    split: str, measure: str, sides: Sequence[Revision], params: EvaluateParams
) -> tuple[list[float] | None, Difference | None]:
    """The second language model's perplexity per token less the first's, on the same documents.

    If the tokens differ, also both perplexities, per token of the first revision, by the loss per byte. The
    difference is None if the documents' losses are not available, or are of other documents.
    """
    old, new = (_documents(side).get((split, measure)) for side in sides)
    if old is None or new is None:
        return None, None
    if _have_other_tokens(split, sides):
        bytes_per_token = float(old[1].bytes.sum() / old[1].tokens.sum())
        values = [_perplexity("bits_per_byte", bytes_per_token, measured) for measured in (old, new)]
        return values, _paired("bits_per_byte", bytes_per_token, (old, new), params)
    return None, _paired("perplexity_per_token", 1.0, (old, new), params) if are_same_documents(old, new) else None


def why_not_comparable(split: str, measure: str, sides: Sequence[Revision]) -> str:
    """Why two perplexities are not comparable, as far as is known; empty if they are."""
    is_pseudo = measure == "pseudo"
    if _differ("bytes", split, sides, is_pseudo) or (not all(map(_documents, sides)) and have_other_data(TEXT, sides)):
        is_same = have_other_data(TOKENIZER, sides) and not have_other_data(TEXT, sides)  # but for unknown words
        differ = "different words are unknown to the two tokenizers" if is_same else "the text differs"
        return "the passages differ" if is_pseudo else differ
    sizes_are_known = is_pseudo and all(map(_documents, sides))  # a passage that is cut to a block has another size
    for key in SETTINGS.get(measure, ()):
        found = {flat(side.params).get(key, DEFAULTS.get(key)) for side in sides if side.params}
        if len(found - {None}) > 1 and not (key == BLOCK and sizes_are_known):  # None: left out, without a default
            return f"{key} differs"
    is_per_token_only = measure == "unigram" or any((split, measure) not in _documents(side) for side in sides)
    return "the tokenizer differs" if is_per_token_only and _have_other_tokens(split, sides) else ""


def _have_other_tokens(split: str, sides: Sequence[Revision]) -> bool:
    """Whether the losses of a split are known to be over different tokens, so that losses per token are not comparable.

    Without the losses of both revisions, dvc.lock tells whether another tokenizer made other tokens.
    """
    if not all(map(_documents, sides)):
        return all(have_other_data(folder, sides) for folder in (TOKENIZER, TOKENS))
    return _differ("tokens", split, sides, is_pseudo=False)


def _differ(size: str, split: str, sides: Sequence[Revision], is_pseudo: bool) -> bool:
    """Whether documents, or the passages that are drawn for the pseudo-perplexity, are known to differ in a size.

    The documents are the same for a masked and a causal model.
    """
    old, new = (
        [
            getattr(sizes, size)
            for (part, measure), (_, sizes) in _documents(side).items()
            if part == split and (measure == "pseudo") == is_pseudo
        ]
        for side in sides
    )
    return any(not np.array_equal(before, after) for before, after in product(old, new))


def _paired(unit: str, factor: float, both: tuple[Measured, Measured], params: EvaluateParams) -> Difference | None:
    """The difference in perplexity (exp of `factor` times the loss per unit) on shared documents; None for only one."""
    settings, count = params.metrics, min(losses.documents for losses, _ in both)
    figures = {str(place): resampled(*measured) for place, measured in enumerate(both)}
    drawn = resample(figures, len(both[0][0].sums), settings.bootstrap_samples, settings.seed)
    before, after = (
        Scored(
            {FIGURE: _perplexity(unit, factor, measured)},
            {FIGURE: np.exp(factor * nats[unit])},
            examples={FIGURE: count},
        )
        for measured, nats in zip(both, drawn.values(), strict=True)
    )
    return difference(FIGURE, [after], [before], are_paired=True) if count > 1 else None


def _perplexity(unit: str, factor: float, measured: Measured) -> float:
    return math.exp(factor * float(resampled(*measured)(np.ones((1, len(measured[0].sums))))[unit][0]))


@cache
def _documents(revision: Revision) -> Mapping[tuple[str, str], Measured]:
    """The losses by split and measure, as far as they are available."""
    content = revision.read(DOCUMENTS)
    return {} if content is None else read_documents(content)


@cache
def _examples(revision: Revision, kind: Kind, path: Path) -> Sequence[Example | Question]:
    """A task's examples; none if they are not available or valid."""
    content = revision.read(path)
    if content is None:
        return []
    with TemporaryDirectory() as name, suppress(InputError, TypeError, ValueError):
        copy = Path(name) / path.name
        copy.write_bytes(content)
        return read_examples(copy.parent, path.stem) if kind == "classification" else read_questions(copy)
    return []


def _texts(examples: Sequence[Example | Question]) -> list[str]:
    """Their first texts, or passages."""
    return [each.context if isinstance(each, Question) else each.text for each in examples]


def _outcome(cell: Cell, part: str, kind: Kind, revision: Revision, examples: Path) -> Classified | Answered | None:
    """The decisions of a run's kept epoch; None if its predictions, or the questions, are not available or valid."""
    with TemporaryDirectory() as name:
        copy = Path(name)
        if not revision.fetch(PREDICTIONS / cell.path, copy):
            return None
        try:
            rows = kept_epoch(read_epochs(copy, kind, part)).rows
        except (InputError, OSError, KeyError, ValueError):
            return None
    if kind == "classification":
        classes = tuple(map(str, range(logits_of(rows).shape[1])))
        return classified(rows, rows["label"].to_numpy(), classes)
    questions = [each for each in _examples(revision, kind, examples) if isinstance(each, Question)]
    return answers_of(rows, questions) if questions else None


def _have_other_examples(path: Path, sides: Sequence[Revision]) -> bool:
    """Whether the file with a task's examples is available, and differs."""
    old, new = (side.read(path) for side in sides)
    return None not in (old, new) and old != new


def _asked(outcome: Classified | Answered) -> Sequence[object]:
    """The gold classes or answers, by which examples are recognised if the task's files are not available."""
    return outcome.labels.tolist() if isinstance(outcome, Classified) else outcome.golds
