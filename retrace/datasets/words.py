"""What a word is: a run of letters and digits with their marks, or one Chinese or Japanese character."""

import re
from unicodedata import category

UNSPACED = "\u3040-\u30ff\u3400-\u9fff"  # Japanese and Chinese, which have no spaces between words
LETTER = rf"[^\W{UNSPACED}]"  # a digit and an underscore, too
# Accents and vowel signs, such as those of Hindi and Arabic, which are not in Python's \w.
MARKS = "".join(char for char in map(chr, range(0x20000)) if category(char).startswith("M"))
WORD_PATTERN = rf"[{UNSPACED}]|{LETTER}+(?:[{MARKS}]+{LETTER}*)*"
WORD = re.compile(WORD_PATTERN)
