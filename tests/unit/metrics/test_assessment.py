import numpy as np
import pytest

from stages.corpus.examples import Example
from stages.corpus.squad import Answer, Question
from stages.metrics.assessment import Assessment, assess
from stages.metrics.classification import ClassificationTask
from stages.metrics.outcomes import Answered, Classified
from stages.metrics.reading import ReadingTask
from stages.metrics.scoring import Scoring
from stages.metrics.settings import ScoreSettings
from stages.metrics.trials import Epoch, Trial

SETTINGS = ScoreSettings(
    classification=("accuracy", "f1"), squad=("squad_v2",), curves=("accuracy", "squad_v2"), resamples=400
)
TRAIN = [Example(text, None, label) for text, label in (("good ale", 1), ("bad ale", 0), ("good hall", 1))]
DEV = [Example(f"{'good' if number % 2 else 'bad'} thing {number}", None, number % 2) for number in range(60)]
TASK = ClassificationTask(("bad", "good"), TRAIN, DEV)
LOSSES = ((None, 0.7), (0.5, 0.4), (0.2, 0.6))


def _trial(method: str, seed: int, wrong: tuple[int, int, int], losses: tuple = LOSSES) -> Trial:
    """A trial that gets the first `wrong` examples wrong, epoch by epoch."""
    epochs = []
    for number, ((training, validation), errors) in enumerate(zip(losses, wrong, strict=True)):
        decided = [example.label ^ (place < errors) for place, example in enumerate(DEV)]
        rows = [{"logit_0": 1.0 - label, "logit_1": float(label)} for label in decided]
        epochs.append(Epoch(number, training, validation, number == 1, TASK.outcome(rows)))
    return Trial(method, seed, tuple(epochs))


def _assess(*trials: Trial) -> Assessment:
    return assess(TASK, Scoring(SETTINGS.classification, "", Classified), trials, SETTINGS)


def test_the_epoch_that_was_kept_is_scored() -> None:
    figures = _assess(_trial("full", 1, (30, 6, 0))).figures["full"]
    assert figures["1"]["epoch"] == 1
    assert figures["1"]["accuracy"] == figures["mean"]["accuracy"] == 0.9
    assert figures["interval"]["accuracy"]["low"] < 0.9 < figures["interval"]["accuracy"]["high"]
    assert "sd" not in figures


def test_seeds_have_a_mean_a_standard_deviation_and_two_intervals() -> None:
    found = _assess(_trial("full", 1, (30, 6, 0)), _trial("full", 2, (30, 18, 0)))
    assert found.figures["full"]["mean"]["accuracy"] == pytest.approx(0.8)
    assert found.figures["full"]["sd"]["accuracy"] == pytest.approx(0.2 / np.sqrt(2))
    interval = found.details["methods"]["full"]["intervals"]["accuracy"]
    assert interval["low_with_seeds"] < interval["low"] < interval["high"] < interval["high_with_seeds"]


def test_methods_are_compared_and_the_better_one_named() -> None:
    found = _assess(_trial("full", 1, (30, 2, 0)), _trial("scratch", 1, (30, 25, 0)))
    (accuracy, *_) = found.details["comparisons"]
    assert (accuracy["first"], accuracy["second"], accuracy["verdict"]) == ("full", "scratch", "full")
    assert found.health.keys() == {"scratch 1"}


def test_a_model_that_learned_nothing_is_flagged_with_evidence() -> None:
    flags = _assess(_trial("full", 1, (30, 29, 28)), _trial("scratch", 1, (30, 29, 28))).health
    assert flags["full 1"].keys() >= {"not_above_majority", "not_above_before_training"}
    assert flags["full"].keys() == {"not_above_scratch"}
    assert flags["full"]["not_above_scratch"].startswith("accuracy 0.5167, scratch 0.5167")


def test_one_class_and_a_rising_loss() -> None:
    one = [{"logit_0": 0.0, "logit_1": 1.0}] * len(DEV)
    epochs = tuple(
        Epoch(n, t, v, n == 1, TASK.outcome(one)) for n, (t, v) in enumerate(((None, 0.7), (0.7, 0.8), (0.9, 0.9)))
    )
    flags = _assess(Trial("full", 1, epochs)).health["full 1"]
    assert flags.keys() >= {"one_class_only", "loss_diverges", "not_above_majority"}


def test_examples_of_the_training_data_are_counted_and_scores_given_without_them() -> None:
    task = ClassificationTask(("bad", "good"), [*TRAIN, *DEV[:6]], DEV)
    rows = [{"logit_0": 0.0, "logit_1": 1.0}] * 6 + [
        {"logit_0": 1.0 - e.label, "logit_1": float(e.label)} for e in DEV[6:]
    ]
    epochs = tuple(Epoch(n, t, v, n == 1, task.outcome(rows)) for n, (t, v) in enumerate(LOSSES))
    found = assess(task, Scoring(("accuracy",), "", Classified), [Trial("full", 1, epochs)], SETTINGS)
    assert found.health["data"] == {"dev_in_training": "6 of 60 examples of dev are in train too"}
    groups = found.details["methods"]["full"]["seeds"]["1"]["groups"]
    assert groups["not in the training data"] == {"accuracy": 1.0, "examples": 54}
    assert found.figures["full"]["mean"]["accuracy"] == pytest.approx(57 / 60)


def test_lengths_classes_and_confusions() -> None:
    details = _assess(_trial("full", 1, (30, 6, 0))).details["methods"]["full"]["seeds"]["1"]
    assert sum(group["examples"] for group in details["groups"].values()) == 60
    assert details["confusion"] == [[27, 3], [3, 27]]
    assert details["classes"]["good"] == {"precision": 0.9, "recall": 0.9, "f1": 0.9, "examples": 30}


def test_the_same_predictions_give_the_same_figures() -> None:
    assert _assess(_trial("full", 1, (30, 6, 0))) == _assess(_trial("full", 1, (30, 6, 0)))


def test_questions_by_span_and_null_score() -> None:
    questions = [Question("a", "T", "Ada met Bob", "?", (Answer("Ada", 0),)), Question("b", "T", "Ada met", "?", ())]
    task = ReadingTask(questions[:1], questions)
    outcome = task.outcome([
        {"id": "a", "text": "Ada", "score": 2.0, "null_score": 1.0},
        {"id": "b", "text": "met", "score": 0.0, "null_score": 1.0},
    ])  # fmt: skip
    assert outcome.answers == ("Ada", "")
    assert task.shared.tolist() == [True, False]
    assert task.breakdown(outcome) == {"answered": 1, "answerable": 1, "questions": 2}
    figures = Scoring(("squad_v2",), "", Answered).score(outcome)
    assert figures["f1"] == figures["best_f1"] == 100.0
    assert set(task.baselines()) == {"no_answer", "word_overlap"}
