"""The degenerate results of the reports that Retrace grew out of, as predictions or figures: all are flagged."""

import numpy as np
import pandas as pd

from retrace.datasets.examples import Example
from retrace.datasets.squad import Answer, Question
from retrace.evaluation.assessment import MethodRun, assess
from retrace.evaluation.classification import ClassificationTask
from retrace.evaluation.flags import figure_flags
from retrace.evaluation.outcomes import ScoredTask, Scoring
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.evaluation.records import TaskDetails
from retrace.evaluation.settings import MetricSettings
from retrace.results.predictions import Epoch
from retrace.statistics.scales import Flags

SETTINGS = MetricSettings(
    classification=("accuracy", "precision", "recall", "f1"), question_answering=("squad_v2", "rouge"),
    every_epoch=("accuracy", "squad_v2"), bootstrap_samples=500,
)  # fmt: skip
TRAIN = [Example("good ale", None, 1), Example("bad ale", None, 0)] * 9 + [Example("good hall", None, 1)]
LOSSES = ((None, 0.7), (0.69, 0.69))


def _logits(decided: list[int]) -> pd.DataFrame:
    return pd.DataFrame([{"logit_0": 1.0 - c, "logit_1": float(c)} for c in decided])


def _run(before: pd.DataFrame, after: pd.DataFrame, method: str = "full") -> MethodRun:
    return MethodRun(method, 1, [Epoch(0, *LOSSES[0], False, before), Epoch(1, *LOSSES[1], True, after)])


def _assess(task: ScoredTask, metrics: tuple[str, ...], *runs: MethodRun) -> TaskDetails:
    return assess(task, Scoring(metrics), runs, SETTINGS)


def _figures(found: TaskDetails) -> tuple[dict[str, float], Flags]:
    full = found.methods["full"]
    return full.figures, full.seeds["1"].flags


def _classified(labels: list[int], predicted: list[int], before: list[int]) -> tuple[dict[str, float], Flags]:
    dev = [Example(f"sentence {number}", None, label) for number, label in enumerate(labels)]
    task = ClassificationTask(("negative", "positive"), TRAIN, dev)
    return _figures(_assess(task, SETTINGS.classification, _run(_logits(before), _logits(predicted))))


def _read(questions: list[Question], answers: list[str]) -> tuple[dict[str, float], Flags]:
    rows = pd.DataFrame({"id": [q.id for q in questions], "text": answers, "score": 0.0, "null_score": 0.0})
    run = _run(rows.assign(text="nothing of the kind"), rows)
    return _figures(_assess(QuestionAnsweringTask([], questions), SETTINGS.question_answering, run))


def test_bert_wikitext2_calls_every_sentence_positive_and_its_rouge_is_754() -> None:
    labels = [1] * 444 + [0] * 428  # SST-2's validation set
    figures, flags = _classified(labels, [1] * 872, [0] * 872)
    printed = {"accuracy": 0.5092, "precision": 0.5092, "recall": 1.0, "f1": 0.6748}
    assert {name: round(figures[name], 4) for name in printed} == printed
    assert flags.keys() >= {"one_class_only", "not_above_majority", "recall_without_accuracy"}
    rouge = Scoring(("rouge",)).scales
    assert figure_flags({"rougeL": 754.0}, rouge) == {"off_scale": "rougeL 754 is no fraction"}


def test_llama_frozen_has_f1_75_without_an_exact_match_and_an_f1_below_exact_match() -> None:
    scales = Scoring(("squad_v2",)).scales
    assert figure_flags({"f1": 75.0, "exact_match": 0.0}, scales).keys() == {"f1_without_exact_match"}
    assert figure_flags({"f1": 2.748, "exact_match": 7.2}, scales).keys() == {"f1_below_exact_match"}
    whole = "Ada Lund founded the mill"  # answers that hold all of the passage
    questions = [Question(str(n), "T", whole, "?", (Answer("Lund founded the mill", 4),)) for n in range(40)]
    figures, flags = _read(questions, [whole] * 40)
    assert figures["exact_match"] == 0
    assert figures["f1"] > 75
    assert {"f1_without_exact_match", "always_the_same"} <= flags.keys()


def test_llama_frozen_zero_shot_is_below_the_majority() -> None:
    labels = np.array([1] * 444 + [0] * 428)
    generator = np.random.default_rng(1)
    predicted = np.where(labels == 1, generator.random(872) < 0.1171, generator.random(872) < 0.158).astype(int)
    figures, flags = _classified(labels.tolist(), predicted.tolist(), (1 - labels).tolist())
    assert abs(figures["recall"] - 0.1171) < 0.04
    assert abs(figures["accuracy"] - 0.473) < 0.04
    assert "not_above_majority" in flags


def test_bert_mlm_nsp_never_abstains_and_is_below_no_answer_at_all() -> None:
    answerable = [Question(f"a{n}", "T", "Ada met Bob in Thorn", "?", (Answer("Bob", 8),)) for n in range(100)]
    others = [Question(f"n{n}", "T", "Ada met Bob in Thorn", "?", ()) for n in range(100)]
    figures, flags = _read([*answerable, *others], ["Bob"] * 15 + ["Ada met"] * 185)
    assert figures["HasAns_exact_match"] == 15.0
    assert figures["NoAns_exact_match"] == figures["NoAns_f1"] == 0.0
    assert figures["exact_match"] == 7.5  # the report has 14.98 and 7.48
    assert {"not_above_no_answer"} <= flags.keys()
    # Its sentiment: recall 1.0 at an accuracy of 0.551.
    assert _classified([1] * 551 + [0] * 449, [1] * 1000, [0] * 1000)[1].keys() >= {"one_class_only"}


def test_roberta_small_from_scratch_stays_flat_and_is_told_from_the_pretrained_one() -> None:
    # Plateaus of 0.62 to 0.65 without pretraining and 0.80 to 0.85 with it, on 200 sentences.
    labels = [number % 2 for number in range(200)]
    dev = [Example(f"sentence {number}", None, label) for number, label in enumerate(labels)]
    task = ClassificationTask(("negative", "positive"), TRAIN, dev)
    runs = []
    for method, shares in (("full", (0.5, 0.83)), ("scratch", (0.62, 0.64))):
        right = [[(n + 75 * epoch) % 200 < 200 * share for n in range(200)] for epoch, share in enumerate(shares)]
        decided = [[y if is_right else 1 - y for y, is_right in zip(labels, of, strict=True)] for of in right]
        runs.append(_run(*map(_logits, decided), method=method))
    found = _assess(task, SETTINGS.classification, *runs)
    assert "full" not in found.flags
    full, scratch = (found.methods[method].seeds["1"].flags for method in ("full", "scratch"))
    assert (full, scratch.keys()) == ({}, {"not_above_before_training"})


def test_plm_peft_scores_texts_that_were_trained_on() -> None:
    train = [Example(f"cites {number}", None, number % 2) for number in range(100)]
    test = [Example(f"cites {number + 48}", None, number % 2) for number in range(139)]  # ACL-ARC shares 52 of its 139
    task = ClassificationTask(("background", "uses"), train, test)
    rows = _logits([example.label for example in test])
    found = _assess(task, ("accuracy",), _run(rows, rows))
    assert found.flags == {"dev_in_training": "52 of 139 examples of dev are in train too"}
    without = found.methods["full"].groups["overlap"]["not in the training data"]
    assert without.examples == 87
