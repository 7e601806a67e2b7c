"""Token streams on disk, memory-mapped, and cut into blocks of one length.

A stream is an array file of all documents in order, each between the tokens that begin and end one. Neither writing nor
reading holds more than a batch of it in memory.
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from retrace.core.errors import InputError
from retrace.tokens.tokenizer import SubwordTokenizer, token_id

BATCH = 256  # documents encoded at a time
SCANNED = 1 << 20  # tokens searched at a time


@dataclass
class Counted:
    """Counts of what a stream contains."""

    documents: int = 0
    words: int = 0
    characters: int = 0
    bytes: int = 0
    tokens: int = 0
    unknown: int = 0  # tokens that are the unknown token


def write_stream(path: Path, tokenizer: SubwordTokenizer, documents: Iterable[str]) -> Counted:
    """Encode `documents` into the array file `path` (one row of token ids, the smallest type that holds them)."""
    kind = np.dtype(np.uint16 if tokenizer.size <= np.iinfo(np.uint16).max else np.uint32)
    unknown = None if tokenizer.special.unknown is None else token_id(tokenizer, tokenizer.special.unknown)
    counted = Counted()
    raw = path.with_suffix(".raw")
    with raw.open("wb") as file:
        for batch in _batches(documents):
            for text, encoded in zip(batch, tokenizer.encode_documents(batch), strict=True):
                ids = np.asarray(encoded, kind)
                file.write(ids.tobytes())
                counted.documents += 1
                counted.words += len(text.split())
                counted.characters += len(text)
                counted.bytes += len(text.encode())
                counted.tokens += len(ids)
                counted.unknown += encoded.count(unknown) if unknown is not None else 0
    _with_header(raw, path, kind, counted.tokens)
    return counted


def open_stream(path: Path) -> np.ndarray:
    """The token ids of a stream, memory-mapped: shape (tokens,)."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    return np.load(path, mmap_mode="r")


def cut_blocks(stream: np.ndarray, length: int, offset: int = 0) -> np.ndarray:
    """The stream from `offset` on, cut into whole blocks: a view of shape (blocks, length).

    Raises InputError where the stream is shorter than one block.
    """
    count = (len(stream) - offset) // length
    if count < 1:
        raise InputError(f"the text has {len(stream)} tokens, which do not fill one block of {length}")
    return stream[offset : offset + count * length].reshape(count, length)


def find_documents(stream: np.ndarray, begin: int) -> np.ndarray:
    """First position and end of each document, without the special tokens around it: (documents, 2)."""
    parts = range(0, len(stream), SCANNED)
    starts = np.concatenate([np.flatnonzero(stream[part : part + SCANNED] == begin) + part for part in parts])
    return np.stack([starts + 1, np.append(starts[1:], len(stream)) - 1], axis=1)


def _with_header(raw: Path, path: Path, kind: np.dtype, count: int) -> None:
    """Make an array file of raw ids; a full disk would kill a process that writes to mapped memory instead."""
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (count,)}
    with raw.open("rb") as ids, path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        shutil.copyfileobj(ids, file)
    raw.unlink()


def _batches(documents: Iterable[str]) -> Iterator[list[str]]:
    documents = iter(documents)
    while batch := list(islice(documents, BATCH)):
        yield batch
