"""What needs no language model: the scores that a model must beat before it means anything."""

import re
from collections import Counter
from collections.abc import Sequence

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from retrace.datasets.examples import Example
from retrace.datasets.squad import Question

WORD, CHARACTER = r"(?u)\b\w\w+\b", r"\S"  # what TF-IDF counts: scikit-learn's pattern; and where that finds nothing
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
LONGEST = 4  # words of an answer that the overlap baseline considers


def majority(train: Sequence[Example], dev: Sequence[Example]) -> list[int]:
    """The most frequent class of the training data, for every example."""
    most = Counter(example.label for example in train).most_common(1)[0][0]
    return [most] * len(dev)


def tfidf(train: Sequence[Example], dev: Sequence[Example]) -> list[int]:
    """Logistic regression on TF-IDF of words and pairs of words, settings as scikit-learn has them.

    A word has two letters or more, as there; where no training text has one, each character counts as a word. With one
    class in the training data there is nothing to fit: that class, for every example.
    """
    if len({example.label for example in train}) < 2:
        return majority(train, dev)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD if has_words(train) else CHARACTER)
    features = vectorizer.fit_transform([_both_texts(example) for example in train])
    model = LogisticRegression(max_iter=1000).fit(features, [example.label for example in train])
    return model.predict(vectorizer.transform([_both_texts(example) for example in dev])).tolist()


def has_words(train: Sequence[Example]) -> bool:
    """Whether a training text has a word as TF-IDF counts them."""
    return any(re.search(WORD, _both_texts(example)) for example in train)


def no_answer(questions: Sequence[Question]) -> dict[str, str]:
    """No answer, to every question."""
    return {question.id: "" for question in questions}


def word_overlap(questions: Sequence[Question]) -> dict[str, str]:
    """Always answers: from the sentence that shares most words with the question, the words it does not share.

    The sliding-window baseline of Richardson et al. 2013, as SQuAD's authors used it, at sentence
    level: the longest run of at most four capitalised words or numbers that the question lacks, else
    the last word.
    """
    return {question.id: _overlap_answer(question) for question in questions}


def _both_texts(example: Example) -> str:
    return example.text if example.pair is None else f"{example.text} {example.pair}"


def _overlap_answer(question: Question) -> str:
    asked = set(_WORD.findall(question.text.lower()))
    sentences = _SENTENCE.split(question.context)
    best = max(sentences, key=lambda sentence: len(asked & set(_WORD.findall(sentence.lower()))))
    runs: list[list[re.Match[str]]] = [[]]
    for match in _WORD.finditer(best):
        word = match.group()
        if word.lower() not in asked and (word[0].isupper() or word[0].isdigit()) and len(runs[-1]) < LONGEST:
            runs[-1].append(match)
        elif runs[-1]:
            runs.append([])
    run = max(runs, key=len) or list(_WORD.finditer(best))[-1:]
    return best[run[0].start() : run[-1].end()] if run else best
