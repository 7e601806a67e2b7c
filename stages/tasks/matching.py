"""Which tokens of a passage occur in the question, graded by how much that says.

The grades follow the exact-match feature of Chen et al. 2017: a word in common is a hint, a rare
word in common a strong one, and words with the same beginning are often forms of one word.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

NONE, COMMON, MIDDLING, RARE, SAME_BEGINNING = range(5)
KINDS = 5
BEGINNING = 5  # letters
_WORD = re.compile(r"[^\W_]+")
COMMON_SHARE, RARE_SHARE = 1e-3, 1e-5  # of all words of the training passages


class WordFrequencies:
    """How often words occur in the passages a reader is trained on."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts = Counter(word for text in texts for word in split_words(text)[0])
        self._total = max(1, sum(self._counts.values()))

    def grade(self, word: str) -> int:
        """COMMON, MIDDLING or RARE."""
        share = self._counts[word] / self._total
        return COMMON if share > COMMON_SHARE else MIDDLING if share > RARE_SHARE else RARE


@lru_cache(maxsize=4096)
def split_words(text: str) -> tuple[list[str], np.ndarray]:
    """Lower-cased runs of letters and digits, and for each character the number of its word or -1."""
    owner = np.full(len(text), -1, dtype=np.int32)
    words = []
    for number, match in enumerate(_WORD.finditer(text)):
        words.append(match.group().lower())
        owner[match.start() : match.end()] = number
    return words, owner


def match_kinds(question: str, passage: str, frequencies: WordFrequencies) -> np.ndarray:
    """For each character of the passage, how its word matches the question: (characters,), int8."""
    asked = set(split_words(question)[0])
    beginnings = {word[:BEGINNING] for word in asked if len(word) >= BEGINNING}
    words, owner = split_words(passage)
    kinds = np.array([*(_kind(word, asked, beginnings, frequencies) for word in words), NONE], dtype=np.int8)
    return kinds[owner]  # -1 takes the last one, NONE


def _kind(word: str, asked: set[str], beginnings: set[str], frequencies: WordFrequencies) -> int:
    if word in asked:
        return frequencies.grade(word)
    return SAME_BEGINNING if len(word) >= BEGINNING and word[:BEGINNING] in beginnings else NONE
