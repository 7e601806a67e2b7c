"""How figures, comparisons and flags fare under chance, on simulated models whose true scores are known.

Measured: how often one of two equal methods is called better, by the number of seeds and their spread; how often the
95% interval of a mean over seeds contains the method's mean over all seeds and examples, and, with one seed, the same
for figures of a class with few examples, for examples that share texts and for perplexities of few documents; how often
a model that has learned is flagged as one that has not, over a hundred tasks of both kinds, and how often one that has
not is.

    python benchmarks/chance.py
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from harness import plain_parser, write_result
from scipy.special import expit

from retrace.datasets.examples import Example
from retrace.datasets.squad import Answer, Question
from retrace.evaluation.assessment import MethodRun, assess
from retrace.evaluation.classification import ClassificationTask
from retrace.evaluation.outcomes import Classified, Scoring
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.evaluation.settings import MetricSettings
from retrace.perplexity.measures import Losses, Sizes, with_intervals
from retrace.results.predictions import PredictedEpoch
from retrace.statistics.comparisons import compare
from retrace.statistics.intervals import (
    Scored,
    Share,
    clusters_of,
    interval_of_examples,
    intervals,
    resamples,
    with_seeds,
)
from retrace.statistics.scales import Figure

ACCURACY, SPREADS, SEEDS = 0.82, (0.0, 0.01, 0.02, 0.03), (2, 3, 5)
EXAMPLES, MANY = 872, 100_000
ALIKE = 0.7  # share of examples of the same difficulty for every model, so that answers are paired
WHOLE = (0.0, 1.0)
FEW = (2, 3, 5, 10, 50)  # positive texts of 500, or documents
TEXTS, SHARED = (5, 20, 100), 0.3  # texts of several examples; the correlation of two examples of a text
RECALL, SHIFT = 0.8, 1.5  # of the positive class; how far apart the classes' scores are, in standard deviations
SIZES = (300, 600, 872)  # of tasks whose flags are counted
SETTINGS = MetricSettings(
    classification=("accuracy", "precision", "recall", "f1"), question_answering=("squad_v2",),
    every_epoch=("accuracy", "squad_v2"),
    bootstrap_samples=200,
)  # fmt: skip


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("--trials", type=int, default=1000, help="of each cell; default %(default)s")
    parser.add_argument("--models", type=int, default=100, help="sound ones; default %(default)s")
    arguments = parser.parse_args()
    result = {
        "called_better_of_two_equal_methods": false_positives(arguments.trials),
        "held_by_the_95_percent_interval_over_seeds": coverage(arguments.trials),
        "held_by_the_95_percent_interval_of_few": coverage_of_few(arguments.trials),
        "examples_that_share_texts": coverage_of_clusters(arguments.trials),
        "flags": flagged(arguments.models),
        "trials": arguments.trials,
    }
    write_result("chance", result)


def false_positives(trials: int) -> dict[str, dict[str, float]]:
    """Seeds → their standard deviation → the share of pairs in which a method is called better; 0 for one seed."""
    generator = np.random.default_rng(1)
    weights = np.concatenate(list(resamples(EXAMPLES, 400, seed=0))) / EXAMPLES
    return {
        f"{seeds} seed{'s' if seeds > 1 else ''}": by_spread(partial(names_a_method, generator, weights, seeds), trials)
        for seeds in (1, *SEEDS)
    }


def by_spread(test: Callable[[float], bool], trials: int) -> dict[str, float]:
    """The share of trials that are true, by the standard deviation over seeds that the test is given."""
    return {f"sd {spread}": sum(test(spread) for _ in range(trials)) / trials for spread in SPREADS}


def coverage(trials: int) -> dict[str, dict[str, dict[str, float]]]:
    """Figure and examples → seeds → their standard deviation → the share of intervals that contain the truth.

    For accuracy, and for a score that gives some right answers half a point, whose interval is the bootstrap's.
    """
    weights = np.concatenate(list(resamples(EXAMPLES, 400, seed=0))) / EXAMPLES
    kinds: dict[str, tuple[int, np.ndarray | None]] = {
        f"accuracy, {EXAMPLES}": (EXAMPLES, None),
        f"accuracy, {MANY}": (MANY, None),
        f"half points, {EXAMPLES}": (EXAMPLES, weights),
    }
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, (examples, drawn) in kinds.items():
        generator = np.random.default_rng(1)
        found[name] = {
            f"{seeds} seeds": by_spread(partial(holds_the_truth, generator, examples, drawn, seeds), trials)
            for seeds in SEEDS
        }
    return found


def coverage_of_few(trials: int) -> dict[str, dict[str, float]]:
    """Figure → examples of the positive class, or documents → the share of one-seed intervals that contain the truth.

    Also how often a perplexity equal to the unigram model's is called lower; by chance that would be 2.5%.
    """
    generator, found = np.random.default_rng(1), dict[str, dict[str, float]]()
    for few in FEW:
        true, held = _true_figures(few / 500), Counter[str]()
        for trial in range(trials):
            scoring, outcome = Scoring(("f1", "matthews", "roc_auc")), _of_rare(generator, few)
            ends = intervals([*scoring.scored({"": outcome}, 300, trial).values()])
            held.update(name for name, value in true.items() if ends[name]["low"] <= value <= ends[name]["high"])
            losses = [_losses(generator, few) for _ in range(2)]
            split = with_intervals({"masked": losses[0]}, losses[1], 300, trial)
            low, high = split.measures["masked"].intervals["perplexity_per_token"].values()
            held["perplexity"] += (low or 0) <= math.exp(3) <= (high or math.inf)
            held["unigram beaten by an equal model"] += bool(split.beats_unigram)
        for name in (*true, "perplexity", "unigram beaten by an equal model"):
            found.setdefault(name, {})[str(few)] = held[name] / trials
    return found


def coverage_of_clusters(trials: int) -> dict[str, dict[str, float]]:
    """Texts, each of one to nine examples that are about equally hard → the share of one-seed intervals that contain
    the truth, and of pairs of equal models whose accuracies differ with p < 0.05; the same as if all were independent.
    """  # fmt: skip
    generator, found = np.random.default_rng(1), dict[str, dict[str, float]]()
    scoring = Scoring(("accuracy", "f1"))
    shape = (ACCURACY * (1 / SHARED - 1), (1 - ACCURACY) * (1 / SHARED - 1))  # of a beta distribution
    for texts in TEXTS:
        held = Counter[str]()
        for trial in range(trials):
            text = np.repeat(np.arange(texts), generator.integers(1, 10, texts))
            labels, models = generator.integers(2, size=len(text)), dict[str, Classified]()
            for name in ("one", "other"):
                is_right = generator.random(len(text)) < generator.beta(*shape, texts)[text]
                models[name] = Classified(("no", "yes"), labels, np.where(is_right, labels, 1 - labels))
            for how, clusters in {"": clusters_of(text.tolist()), ", as if independent": None}.items():
                scored = {name: [model] for name, model in scoring.scored(models, 300, trial, clusters).items()}
                ends = intervals(scored["one"])
                held.update(f"{name}{how}" for name in ("accuracy", "f1_macro")
                            if ends[name]["low"] <= ACCURACY <= ends[name]["high"])  # fmt: skip
                pair = next(pair for pair in compare(scored, scoring.legend) if pair.figure == "accuracy")
                held[f"equal models differ{how}"] += pair.p < 0.05
        found[f"{texts} texts"] = {name: count / trials for name, count in sorted(held.items())}
    return found


def _true_figures(share: float) -> dict[str, float]:
    """The figures over all examples of a model that finds `RECALL` of the positive ones and makes no other error."""
    missed, others = share * (1 - RECALL), 1 - share
    matthews = RECALL * share * others / math.sqrt(RECALL * share * share * others * (others + missed))
    area = NormalDist().cdf(SHIFT / math.sqrt(2))
    return {"f1": 2 * RECALL / (1 + RECALL), "matthews": matthews, "roc_auc": area}


def _of_rare(generator: np.random.Generator, few: int) -> Classified:
    """Decisions on 500 texts, and probabilities, which are drawn independently of them."""
    labels = np.arange(500) < few
    predicted = labels & (generator.random(500) < RECALL)
    positive = expit(generator.normal(SHIFT * labels, 1))
    probabilities = np.stack([1 - positive, positive], axis=1)
    return Classified(("no", "yes"), labels.astype(int), predicted.astype(int), probabilities)


def _losses(generator: np.random.Generator, documents: int) -> tuple[Losses, Sizes]:
    """Documents of 200 to 2,000 tokens, at about 3 nats per token."""
    tokens = generator.integers(200, 2000, documents).astype(float)
    sums = generator.normal(3, 0.3, documents) * tokens
    return Losses(float(sums.sum() / tokens.sum()), sums, tokens), Sizes(tokens, tokens, tokens)


def flagged(models: int) -> dict[str, Any]:
    """Sound models and what was flagged about them, and how many of those that learned nothing were flagged."""
    generator = np.random.default_rng(1)
    notices: Counter[str] = Counter()
    caught = 0
    for number in range(models):
        make = _classified if number % 2 else _answered
        found = assess(*make(generator, is_sound=True), SETTINGS).metrics.flags
        notices.update(name for flags in found.values() for name in flags)
    poor = -(-models // 4)
    for number in range(poor):
        make = _classified if number % 2 else _answered
        full = assess(*make(generator, is_sound=False), SETTINGS).methods["full"]
        caught += bool(full.flags and full.seeds["1"].flags)
    return {"sound": models, "notices": dict(notices), "learned_nothing": poor, "of_these_flagged": caught}


def _right(generator: np.random.Generator, examples: int, spread: float) -> Iterator[np.ndarray]:
    """(N,) of one seed after another: true where a model is as good as its difficulty; see `ALIKE`."""
    shared = generator.random(examples, dtype=np.float32)
    is_shared = np.arange(examples) < ALIKE * examples
    while True:
        difficulty = np.where(is_shared, shared, generator.random(examples, dtype=np.float32))
        yield difficulty < generator.normal(ACCURACY, spread)


def names_a_method(generator: np.random.Generator, weights: np.ndarray, seeds: int, spread: float) -> bool:
    """Whether one of two methods that do not differ is called better, from weights (R, N) of resamples."""
    models = _right(generator, EXAMPLES, spread)
    methods = {}
    for method in ("a", "b"):
        rights = [next(models) for _ in range(seeds)]
        drawn = weights @ np.stack(rights, axis=1)
        methods[method] = [
            Scored({"accuracy": float(right.mean())}, {"accuracy": draws}, {"accuracy": Share.among_all(right)})
            for right, draws in zip(rights, drawn.T, strict=True)
        ]
    (pair,) = compare(methods, {"accuracy": Figure("fraction", "higher")})
    return pair.verdict in methods


def holds_the_truth(
    generator: np.random.Generator, examples: int, weights: np.ndarray | None, seeds: int, spread: float
) -> bool:
    """Whether the interval of a mean over seeds contains the mean over all; for a share if there are no weights."""
    models = _right(generator, examples, spread)
    rights = [next(models) for _ in range(seeds)]
    if weights is None:
        shares, truth, drawn = [Share.among_all(right) for right in rights], ACCURACY, np.empty(0)
        by_seed = [share.value for share in shares]
    else:  # half of the right answers have half a point
        points = [np.where(np.arange(examples) % 2, right, right / 2) for right in rights]
        shares, truth, drawn = [], ACCURACY * 0.75, (weights @ np.stack(points, axis=1)).mean(axis=1)
        by_seed = [float(point.mean()) for point in points]
    of_examples = interval_of_examples(float(np.mean(by_seed)), shares, drawn, examples, WHOLE)
    found = with_seeds(of_examples, by_seed, WHOLE)
    return found["low"] <= truth <= found["high"]


def _classified(generator: np.random.Generator, is_sound: bool) -> tuple[Any, Scoring, list[MethodRun]]:
    """Texts in two to six classes, which a few words hint at."""
    classes, size = int(generator.integers(2, 7)), int(generator.choice(SIZES))
    train, dev = (_texts(generator, classes, count) for count in (300, size))
    task = ClassificationTask([f"class {number}" for number in range(classes)], train, dev)
    labels = np.array([example.label for example in dev])
    chance = 1 / classes

    def predict(accuracy: float) -> pd.DataFrame:
        wrong = (labels + generator.integers(1, classes, size)) % classes
        given = np.where(generator.random(size) < accuracy, labels, wrong)
        logits = np.eye(classes)[given] * generator.uniform(1, 4, (size, 1))
        return pd.DataFrame(logits, columns=[f"logit_{c}" for c in range(classes)])

    scoring = Scoring(SETTINGS.classification)
    return task, scoring, _trials(generator, predict, chance, is_sound)


def _answered(generator: np.random.Generator, is_sound: bool) -> tuple[Any, Scoring, list[MethodRun]]:
    """Questions on passages of names and years, a third of which have no answer."""
    size = int(generator.choice(SIZES))
    words = np.array([f"Name{number}" for number in range(400)])
    questions = []
    for number in range(size):
        passage = " ".join(generator.choice(words, 30, replace=False)) + "."
        first = passage.split()[int(generator.integers(30))].rstrip(".")
        answers = () if generator.random() < 1 / 3 else (Answer(first, passage.index(first)),)
        questions.append(Question(str(number), passage, f"which one is it {number}", answers))
    task = QuestionAnsweringTask([], questions)

    def predict(accuracy: float) -> pd.DataFrame:
        is_right = generator.random(size) < accuracy
        rows = []
        for question, right in zip(questions, is_right, strict=True):
            wrong = f"{question.context.split()[0]} and more"
            text = question.answers[0].text if right and question.answers else wrong
            refuses = right and not question.answers
            rows.append({"id": question.id, "text": text, "score": 0.0, "null_score": 1.0 if refuses else -1.0})
        return pd.DataFrame(rows)

    return task, Scoring(SETTINGS.question_answering), _trials(generator, predict, 0.02, is_sound)


def _texts(generator: np.random.Generator, classes: int, count: int) -> list[Example]:
    """One text in four has a word of its class."""
    texts = []
    for place in range(count):
        label = place % classes
        own = generator.integers(0, 30, 12) * classes + label
        any_class = generator.integers(0, 30 * classes, 12)
        words = np.where((np.arange(12) == 0) & (generator.random() < 0.25), own, any_class)
        texts.append(Example(f"{place} " + " ".join(f"w{word}" for word in words), None, label))
    return texts


def _trials(generator: np.random.Generator, predict: Any, chance: float, is_sound: bool) -> list[MethodRun]:
    """One to five seeds, pretrained and not: sound ones are right about most, the rest no more than before training."""
    seeds, trials = int(generator.choice([1, 2, 3, 5])), []
    full = generator.uniform(0.92, 0.98)
    share = {"full": full, "scratch": full - generator.uniform(0.15, 0.2)}
    for method in share:
        for seed in range(1, seeds + 1):
            reached = generator.normal(share[method], 0.01) if is_sound else chance
            losses = ((None, 0.7), (0.6, 0.6), (0.5, 0.55))
            epochs = [PredictedEpoch(n, *losses[n], n == 2, predict(chance if n == 0 else reached)) for n in range(3)]
            trials.append(MethodRun(method, seed, epochs))
    return trials


if __name__ == "__main__":
    main()
