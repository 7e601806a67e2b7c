"""Parts of a data set by length, scored on their own."""

from collections.abc import Sequence

import numpy as np

PARTS = 4


def length_groups(texts: Sequence[str], unit: str) -> dict[str, np.ndarray]:
    """Up to four groups of about equal size, by words of the text: "1–8 words" → (N,), bool."""
    lengths = np.array([len(text.split()) for text in texts])
    ends = np.unique(np.quantile(lengths, np.arange(1, PARTS + 1) / PARTS, method="lower"))
    groups, first = {}, int(lengths.min())
    for end in map(int, ends):
        name = f"{first}–{end} {unit}" if end > first else f"{end} {unit}"
        groups[name] = (lengths >= first) & (lengths <= end)
        first = end + 1
    return groups
