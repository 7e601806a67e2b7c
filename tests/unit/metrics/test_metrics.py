import math

import numpy as np
import pytest

from stages.corpus.glue import Sentence
from stages.corpus.squad import Answer, Question
from stages.metrics.baselines import majority, no_answer, tfidf, word_overlap
from stages.metrics.curves import as_csv
from stages.metrics.decisions import answers_of, decided_answer, decided_class
from stages.metrics.health import answer_flags, classification_flags
from stages.metrics.perplexity import Text, perplexities, unigram_loss
from stages.metrics.scores import accuracy, f1, precision, recall
from stages.metrics.scoring import ClassificationScores, ReadingScores, mean_over_seeds


def test_classification_by_hand() -> None:
    labels, predicted = [1, 1, 1, 0, 0], [1, 1, 0, 1, 0]  # 2 true positives, 1 false one, 1 missed
    assert accuracy.score(labels, predicted) == {"accuracy": pytest.approx(3 / 5)}
    assert precision.score(labels, predicted) == {"precision": pytest.approx(2 / 3)}
    assert recall.score(labels, predicted) == {"recall": pytest.approx(2 / 3)}
    assert f1.score(labels, predicted) == {"f1": pytest.approx(2 / 3)}
    assert precision.score([1, 0], [0, 0]) == {"precision": 0.0}


def test_perplexity_a_token_a_word_and_a_byte() -> None:
    text = Text(tokens=30, words=20, bytes=100)
    result = perplexities(math.log(8), text)
    assert result["per_token"] == pytest.approx(8)
    assert result["per_word"] == pytest.approx(8**1.5)
    assert result["bits_per_byte"] == pytest.approx(3 * 30 / 100)


def test_the_unigram_model_by_hand() -> None:
    train, held_out = np.array([2, 2, 3, 0]), np.array([2, 3, 0])  # 0 and 1 are special
    p2, p3 = 3 / 6, 2 / 6  # one added to each of three counts: 2, 1 and 0
    assert unigram_loss(train, held_out, 5, (0, 1)) == pytest.approx(-(math.log(p2) + math.log(p3)) / 2)


def test_a_uniform_model_has_the_vocabulary_as_perplexity() -> None:
    stream = np.arange(2, 102)
    assert math.exp(unigram_loss(stream, stream, 102, (0, 1))) == pytest.approx(100)


def test_decisions() -> None:
    assert decided_class({"logit_0": 1.0, "logit_1": 1.0}) == 0
    assert decided_class({"logit_0": 1.0, "logit_1": 1.1}) == 1
    assert decided_answer({"text": "x", "score": 1.0, "null_score": 1.1}) == ""
    assert decided_answer({"text": "x", "score": 1.0, "null_score": 0.9}) == "x"
    assert decided_answer({"text": "x", "score": 1.0, "null_score": None}) == "x"


def test_baselines_of_sentences() -> None:
    train = [Sentence("good ale", 1), Sentence("bad ale", 0), Sentence("good hall", 1)]
    dev = [Sentence("bad hall", 0), Sentence("good soup", 1)]
    assert majority(train, dev) == [1, 1]
    assert tfidf(train[:2] * 5, dev) == [0, 1]
    assert tfidf(train[:1], dev) == [1, 1]


def test_word_overlap_takes_the_name_in_the_nearest_sentence() -> None:
    question = Question(
        "q", "T", "Ada Lund built the mill. Bob Ros burned the old hall.", "Who burned the old hall?", ()
    )
    assert word_overlap([question]) == {"q": "Bob Ros"}
    assert no_answer([question]) == {"q": ""}


def test_flags_of_a_classifier() -> None:
    assert classification_flags([1, 1, 1], 51.0, 51.0, 2.0) == {"one_class_only": True, "not_above_majority": True}
    assert classification_flags([1, 0, 1], 90.0, 51.0, 2.0) == {"one_class_only": False, "not_above_majority": False}


def test_flags_of_a_reader() -> None:
    healthy = answer_flags({"a": "x"}, 70.0, 60.0, 30.0, 2.0)
    assert not any(healthy.values())
    assert answer_flags({"a": "", "b": ""}, 30.0, 30.0, 30.0, 2.0)["always_empty"]
    assert answer_flags({"a": "x"}, 31.0, 30.0, 30.0, 2.0)["not_above_no_answer"]
    # One published report has F1 75 with exact match 0 and calls it good.
    assert answer_flags({"a": "x"}, 75.0, 0.0, 0.0, 2.0)["f1_without_exact"]


def test_scoring_rows_of_a_classifier() -> None:
    dev = [Sentence("good", 1), Sentence("bad", 0)]
    scores = ClassificationScores(["accuracy", "recall"], 2.0, dev, dev)
    rows = [{"logit_0": 0.0, "logit_1": 1.0}] * 2
    assert scores.of(rows) == {"accuracy": 0.5, "recall": 1.0}
    assert scores.flags(rows) == {"one_class_only": True, "not_above_majority": True}
    assert set(scores.baselines()) == {"majority", "tfidf"}


def test_scoring_rows_of_a_reader() -> None:
    questions = [Question("a", "T", "Ada", "?", (Answer("Ada", 0),)), Question("b", "T", "Ada", "?", ())]
    rows = [
        {"id": "a", "text": "Ada", "score": 2.0, "null_score": 1.0},
        {"id": "b", "text": "A", "score": 0.0, "null_score": 1.0},
    ]
    scores = ReadingScores(["squad_v2"], 2.0, questions)
    assert answers_of(rows) == {"a": "Ada", "b": ""}
    assert scores.of(rows)["f1"] == 100.0
    assert not any(scores.flags(rows).values())
    assert scores.baselines()["no_answer"]["f1"] == 50.0


def test_seeds_are_averaged_without_epochs_and_flags() -> None:
    cells = [{"epoch": 1, "accuracy": 0.5, "flags": {}}, {"epoch": 3, "accuracy": 0.7, "flags": {}}]
    assert mean_over_seeds(cells) == {"accuracy": pytest.approx(0.6)}


def test_curves_leave_absent_values_empty() -> None:
    rows = [{"method": "full", "epoch": 0, "training_loss": None}, {"method": "full", "epoch": 1, "training_loss": 0.5}]
    assert as_csv(rows) == "method,epoch,training_loss\nfull,0,\nfull,1,0.5\n"
