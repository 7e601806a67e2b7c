import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from retrace.datasets.examples import Example
from retrace.datasets.squad import Question
from retrace.evaluation.classification import ClassificationTask, has_words, majority, tfidf
from retrace.evaluation.outcomes import decided_answers
from retrace.evaluation.question_answering import overlap_span


def test_decisions() -> None:
    rows = [("a", "x", 1.0, 1.1), ("b", "x", 1.0, 0.9), ("c", "x", 1.0, None)]
    answers = decided_answers(pd.DataFrame(rows, columns=["id", "text", "score", "null_score"]))
    assert answers == {"a": "", "b": "x", "c": "x"}


def test_baselines_of_sentences() -> None:
    train = [Example("good ale", None, 1), Example("bad ale", None, 0), Example("good", "hall", 1)]
    dev = [Example("bad", "hall", 0), Example("good soup", None, 1)]
    assert majority(train, dev) == [1, 1]
    assert tfidf(train[:2] * 5, dev) == [0, 1]
    assert tfidf(train[:1], dev) == [1, 1]


@pytest.mark.parametrize(("good", "bad"), [("☀", "☂"), ("a", "b"), ("a ☀ !", "b ☂ ?")])
def test_texts_without_words_are_told_apart_by_their_characters(good: str, bad: str) -> None:
    train = [Example(good, None, 1), Example(bad, None, 0), Example(f"{bad} {bad}", None, 0)]
    assert tfidf(train * 5, [Example(bad, None, 0), Example(good, None, 1)]) == [0, 1]
    task = ClassificationTask(("bad", "good"), train * 5, train)
    assert {name: outcome.predicted.tolist() for name, outcome in task.baselines.items()} == {
        "majority": [0, 0, 0], "tfidf": [1, 0, 0]
    }  # fmt: skip
    assert task.notes == {"tfidf": "of single characters, as no training text has a word of two letters"}


def test_words_are_those_of_scikit_learn() -> None:
    texts = ["a I ☀", "x1", "naïve_", "它", "它们", "a-b c", "A\u0130", "don't", ""]
    analyser = TfidfVectorizer().build_analyzer()
    assert [has_words([Example(text, None, 0)]) for text in texts] == [bool(analyser(text)) for text in texts]


def test_word_overlap_takes_the_name_in_the_nearest_sentence() -> None:
    question = Question(
        "q", "T", "Ada Lund built the mill. Bob Ros burned the old hall.", "Who burned the old hall?", ()
    )
    start, end = overlap_span(question)
    assert question.context[start:end] == "Bob Ros"
