import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from retrace.datasets.examples import Example
from retrace.datasets.squad import Question
from retrace.evaluation.classification import ClassificationTask, has_words, majority, tfidf
from retrace.evaluation.outcomes import Groups, answers_of, classified, length_groups
from retrace.evaluation.question_answering import overlap_span, question_words


def test_a_model_abstains_where_no_answer_scores_higher_and_never_without_such_a_score() -> None:
    questions = [Question(name, "", "?", ()) for name in "ab"]
    rows = pd.DataFrame({"id": ["b", "a"], "text": "x", "score": 1.0, "null_score": [0.9, 1.1]})
    assert answers_of(rows, questions).answers == ("", "x")
    assert answers_of(rows.assign(null_score=np.nan), questions).answers == ("x", "x")


def test_probabilities_are_the_softmax_of_a_row_and_a_tie_goes_to_the_first_class() -> None:
    rows = pd.DataFrame({"logit_0": [0.0, 1.0, 2.0], "logit_1": [np.log(3), 1.0, 2.0 - np.log(4)]})
    found = classified(rows, np.zeros(3, int), ("no", "yes"))
    assert found.predicted.tolist() == [1, 0, 0]
    assert found.probabilities == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5], [0.8, 0.2]]))


def _places(groups: Groups) -> dict[str, list[int]]:
    return {name: np.flatnonzero(which).tolist() for name, which in groups.items()}


def test_texts_are_grouped_by_words_into_quarters() -> None:
    texts = [" ".join("w" * count) for count in (1, 2, 3, 4, 5, 6, 7, 9)]
    found = _places(length_groups(texts, "words"))
    assert found == {"1–2 words": [0, 1], "3–4 words": [2, 3], "5–6 words": [4, 5], "7–9 words": [6, 7]}
    assert _places(length_groups(["a", "b c", "d e"], "words")) == {"1 words": [0], "2 words": [1, 2]}
    unspaced = ["今天", "今天很好", "a 今天很好吗", "b c"]
    assert _places(length_groups(unspaced, "words")) == {"2 words": [0, 3], "3–4 words": [1], "5–6 words": [2]}


def test_baselines_of_sentences() -> None:
    train = [Example("good ale", None, 1), Example("bad ale", None, 0), Example("good", "hall", 1)]
    dev = [Example("bad", "hall", 0), Example("good soup", None, 1)]
    assert majority(train, dev) == [1, 1]
    assert tfidf(train[:2] * 5, dev) == [0, 1]
    assert tfidf(train[:1], dev) == [1, 1]
    order = [Example("good not bad", None, 1), Example("bad not good", None, 0)]
    assert tfidf(order * 5, order[::-1]) == [0, 1], "pairs of words tell their order"


@pytest.mark.parametrize(("good", "bad"), [("☀", "☂"), ("a", "b"), ("a ☀ !", "b ☂ ?")])
def test_texts_without_words_are_told_apart_by_their_characters(good: str, bad: str) -> None:
    train = [Example(good, None, 1), Example(bad, None, 0), Example(f"{bad} {bad}", None, 0)]
    assert tfidf(train * 5, [Example(bad, None, 0), Example(good, None, 1)]) == [0, 1]
    task = ClassificationTask(("bad", "good"), train * 5, train)
    found = {name: outcome.predicted.tolist() for name, outcome in task.baselines.items()}
    assert found == {"majority": [0, 0, 0], "tfidf": [1, 0, 0]}
    assert task.notes == {"tfidf": "of single characters, as no training text has a word of two letters"}


def test_baselines_fitted_to_a_part_say_so() -> None:
    train = [Example("good ale", None, 1)] * 3 + [Example("bad ale", None, 0)] * 1200
    dev = [Example("good ale", None, 1), Example("bad ale", None, 0)]
    whole, part = (ClassificationTask(("bad", "good"), train, dev, drawn=drawn) for drawn in (None, [0, 1, 2, 3]))
    assert whole.notes == {}
    said = "fitted to 4 of 1,203 training examples, those that the models of the first seed were given"
    assert part.notes == {"majority, tfidf": said}
    assert [task.baselines["majority"].predicted.tolist() for task in (whole, part)] == [[0, 0], [1, 1]]


def test_questions_are_grouped_by_the_first_word_that_asks_where_twenty_have_it() -> None:
    asked = ["In WHAT year?"] * 20 + ["Who, and when?"] * 19 + ["Whom did she meet?"] * 21 + ["Name it"]
    found = _places(question_words(asked))
    assert [*found.items()] == [("what", [*range(20)]), ("whom", [*range(39, 60)]), ("other", [*range(20, 39), 60])]


OVERLAPS = [
    ("the mill of Ada met King Otto Rex Maximus Magnus 1601 there.", "the mill", "King Otto Rex Maximus"),
    ("In 1601 Ada left.", "who in 1601", "Ada"),
    ("Ada built a mill", "who was Ada", "mill"),  # no name is left: the last word
    ("Ada left. ?!", "left or right", "Ada"),
    ("", "who", ""),
    ("Ada Lund built the mill. Bob Ros burned the old hall.", "Who burned the old hall?", "Bob Ros"),
    ("Ada Lund built the mill. Bob Ros burned the old hall.", "Who built the mill?", "Ada Lund"),
]


@pytest.mark.parametrize(("context", "asked", "answer"), OVERLAPS)
def test_word_overlap_takes_names_and_numbers_of_the_nearest_sentence(context: str, asked: str, answer: str) -> None:
    start, end = overlap_span(Question("q", context, asked, ()))
    assert context[start:end] == answer


def test_words_are_those_of_scikit_learn() -> None:
    texts = ["a I ☀", "x1", "naïve_", "a-b c", "A\u0130", "don't", ""]
    analyser = TfidfVectorizer().build_analyzer()
    assert [has_words([Example(text, None, 0)]) for text in texts] == [bool(analyser(text)) for text in texts]


def test_words_have_all_of_their_marks() -> None:
    """In Hindi, whose vowel signs are not letters for Python's regular expressions."""
    start, end = overlap_span(Question("q", "मुंबई नगर और दिल्ली", "दिल्ली", ()))
    assert (start, end) == (len("मुंबई नगर और "), len("मुंबई नगर और दिल्ली"))
    train = [Example(f"यह {word} है", None, label) for word, label in (("अच्छी", 1), ("बुरी", 0)) for _ in range(5)]
    assert tfidf(train, [Example("बुरी फिल्म", None, 0), Example("अच्छी फिल्म", None, 1)]) == [0, 1]


def test_text_without_spaces_is_counted_by_its_signs() -> None:
    around = [("今天我觉得这部电影", "极了"), ("昨天我觉得这部电影", "极了吧"), ("iPhone上我觉得这部电影", "极了啊")]
    kinds = (("好", 1), ("坏", 0))
    train = [Example(before + how + after, None, label) for before, after in around for how, label in kinds]
    assert tfidf(train * 5, [Example("那个故事真好", None, 1), Example("那个故事真坏", None, 0)]) == [1, 0]
    context = "小猫在树上睡觉. 小狗在河里游泳."
    start, _ = overlap_span(Question("q", context, "谁在河里", ()))
    assert start > context.index(".")
