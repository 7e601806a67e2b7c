"""SemEval-2014 task 4 (Pontiki et al. 2014): the terms of a sentence that name an aspect, each with a polarity."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from retrace.core.errors import InputError


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each aspect term its sentence's place, the sentence as `text`, and `term`, `polarity`, `from` and `to`.

    Raises InputError where the file is missing or not such xml, naming the sentence.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        sentences = ElementTree.parse(path).getroot().iter("sentence")
    except ElementTree.ParseError as error:
        raise InputError(f"{path}:{error.position[0]}: not xml: {error}") from None
    for number, sentence in enumerate(sentences, start=1):
        where = f"{path}: sentence {sentence.get('id', f'number {number}')}"
        for aspect in sentence.iter("aspectTerm"):
            missing = [name for name in ("term", "polarity") if name not in aspect.attrib]
            if missing:
                raise InputError(f"{where}: an aspectTerm without {missing[0]!r}")
            yield where, {"text": sentence.findtext("text"), **aspect.attrib}
