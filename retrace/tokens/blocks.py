"""Token streams: written to disk, memory-mapped, and cut into blocks of equal length.

A stream is one array of the token ids of all documents in order, each between begin and end token. Neither writing nor
reading holds more than a batch of it in memory.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from retrace.core.errors import InputError
from retrace.tokens.tokenizer import SubwordTokenizer

BATCH = 256  # documents encoded at a time
SCANNED = 1 << 20  # tokens searched at a time


def write_stream(
    path: Path, tokenizer: SubwordTokenizer, texts: Iterable[Iterable[str]]
) -> tuple[dict[str, int], list[int]]:
    """Encode the documents of all texts into the array file `path`, as token ids of the smallest type that holds them.

    Returns the numbers of words and tokens, and where each text ends, in tokens.
    """
    counts, ends = Counter[str](), list[int]()
    kind = np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (0,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for documents in map(iter, texts):
            while batch := list(islice(documents, BATCH)):
                for text, ids in zip(batch, tokenizer.encode_documents(batch), strict=True):
                    file.write(np.asarray(ids, kind).tobytes())
                    counts.update(words=len(text.split()), tokens=len(ids))
            ends.append(counts["tokens"])
        file.seek(0)
        # The header has the same length whatever the count.
        np.lib.format.write_array_header_1_0(file, header | {"shape": (counts["tokens"],)})
    return dict(counts), ends


def open_stream(path: Path) -> np.ndarray:
    """The token ids of a stream, memory-mapped: shape (tokens,). Raises FileNotFoundError if there is none."""
    return np.load(path, mmap_mode="r")


def cut_blocks(stream: np.ndarray, length: int, offset: int = 0) -> np.ndarray:
    """A view of the stream from `offset` on as whole blocks: (blocks, length).

    Raises InputError if the stream is shorter than one block.
    """
    count = (len(stream) - offset) // length
    if count < 1:
        said = f"the text has {len(stream)} tokens, which do not fill one block of {length}"
        raise InputError(f"params.yaml: pretrain.block_size: {length} is not allowed; {said}")
    return stream[offset : offset + count * length].reshape(count, length)


def find_documents(stream: np.ndarray, begin: int) -> np.ndarray:
    """Start and end of each document, without the special tokens around it: (documents, 2)."""
    parts = range(0, len(stream), SCANNED)
    starts = np.concatenate([np.flatnonzero(stream[part : part + SCANNED] == begin) + part for part in parts])
    return np.stack([starts + 1, np.append(starts[1:], len(stream)) - 1], axis=1)
