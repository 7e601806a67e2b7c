import math

import numpy as np
import pytest

from stages.corpus.examples import Example
from stages.corpus.squad import Question
from stages.metrics.baselines import majority, no_answer, tfidf, word_overlap
from stages.metrics.curves import as_csv
from stages.metrics.decisions import decided_answer, decided_class
from stages.metrics.perplexity import Text, perplexities, unigram_loss


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
    assert decided_class({"id": 7, "label": 0, "logit_0": 1.0, "logit_1": 1.1, "logit_2": 1.2}) == 2
    assert decided_answer({"text": "x", "score": 1.0, "null_score": 1.1}) == ""
    assert decided_answer({"text": "x", "score": 1.0, "null_score": 0.9}) == "x"
    assert decided_answer({"text": "x", "score": 1.0, "null_score": None}) == "x"


def test_baselines_of_sentences() -> None:
    train = [Example("good ale", None, 1), Example("bad ale", None, 0), Example("good", "hall", 1)]
    dev = [Example("bad", "hall", 0), Example("good soup", None, 1)]
    assert majority(train, dev) == [1, 1]
    assert tfidf(train[:2] * 5, dev) == [0, 1]
    assert tfidf(train[:1], dev) == [1, 1]


def test_word_overlap_takes_the_name_in_the_nearest_sentence() -> None:
    question = Question(
        "q", "T", "Ada Lund built the mill. Bob Ros burned the old hall.", "Who burned the old hall?", ()
    )
    assert word_overlap([question]) == {"q": "Bob Ros"}
    assert no_answer([question]) == {"q": ""}


def test_curves_leave_absent_values_empty() -> None:
    rows = [{"method": "full", "epoch": 0, "training_loss": None}, {"method": "full", "epoch": 1, "training_loss": 0.5}]
    assert as_csv(rows) == "method,epoch,training_loss\nfull,0,\nfull,1,0.5\n"
