"""Token streams: written to disk, memory-mapped, and cut into blocks of equal length.

A stream is one array of the token ids of all documents in order, each between begin and end token. Neither writing nor
reading holds more than a batch of it in memory.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from retrace.core.errors import InputError
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary

BATCH = 256  # documents encoded at a time
SCANNED = 1 << 20  # tokens searched at a time


def write_stream(path: Path, tokenizer: SubwordTokenizer, documents: Iterable[str]) -> dict[str, int]:
    """Encode `documents` into the array file `path`, as token ids of the smallest type that holds them.

    Returns the numbers of documents, words, characters, bytes, tokens and unknown tokens.
    """
    vocabulary, counts = Vocabulary.of(tokenizer), Counter[str]()
    kind = np.dtype(np.uint16 if vocabulary.size <= 1 << 16 else np.uint32)
    unknown = -1 if vocabulary.unknown is None else vocabulary.unknown
    documents = iter(documents)
    with path.open("wb") as file:
        _write_header(file, kind, 0)
        while batch := list(islice(documents, BATCH)):
            for text, ids in zip(batch, tokenizer.encode_documents(batch), strict=True):
                file.write(np.asarray(ids, kind).tobytes())
                counts.update(
                    documents=1, words=len(text.split()), characters=len(text), bytes=len(text.encode()),
                    tokens=len(ids), unknown=ids.count(unknown),
                )  # fmt: skip
        file.seek(0)
        _write_header(file, kind, counts["tokens"])
    return dict(counts)


def _write_header(file: IO[bytes], kind: np.dtype, count: int) -> None:
    """Begin an array file; the header has the same length whatever the count."""
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(file, header)


def open_stream(path: Path) -> np.ndarray:
    """The token ids of a stream, memory-mapped: shape (tokens,)."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    return np.load(path, mmap_mode="r")


def cut_blocks(stream: np.ndarray, length: int, offset: int = 0) -> np.ndarray:
    """A view of the stream from `offset` on as whole blocks: (blocks, length).

    Raises InputError where the stream is shorter than one block.
    """
    count = (len(stream) - offset) // length
    if count < 1:
        raise InputError(f"the text has {len(stream)} tokens, which do not fill one block of {length}")
    return stream[offset : offset + count * length].reshape(count, length)


def find_documents(stream: np.ndarray, begin: int) -> np.ndarray:
    """Start and end of each document, without the special tokens around it: (documents, 2)."""
    parts = range(0, len(stream), SCANNED)
    starts = np.concatenate([np.flatnonzero(stream[part : part + SCANNED] == begin) + part for part in parts])
    return np.stack([starts + 1, np.append(starts[1:], len(stream)) - 1], axis=1)
