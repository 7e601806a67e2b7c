from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrace.core.errors import InputError
from retrace.tokens.blocks import cut_blocks, open_stream, write_stream
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import train_tokenizer

TEXT = ["one two three four five", "six seven eight nine ten"] * 200


def test_a_stream_is_every_document_in_order(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TokenizerSettings(vocab_size=50), lambda: TEXT, "k")
    counted = write_stream(tmp_path / "s.npy", tokenizer, TEXT)
    stream = open_stream(tmp_path / "s.npy")
    assert isinstance(stream, np.memmap)
    assert stream.dtype == np.uint16
    assert stream.tolist() == [i for text in TEXT for i in tokenizer.encode(text).ids]
    characters = sum(len(text) for text in TEXT)
    assert counted == {"documents": 400, "words": 2000, "characters": characters, "bytes": characters,
                       "tokens": len(stream), "unknown": 0}  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == ["s.npy"]


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 49))
def test_blocks_are_the_stream_from_the_offset(tokens: int, length: int, offset: int) -> None:
    stream = np.arange(tokens)
    if tokens - offset < length:
        with pytest.raises(InputError, match="do not fill one block"):
            cut_blocks(stream, length, offset)
        return
    blocks = cut_blocks(stream, length, offset)
    assert blocks.shape == ((tokens - offset) // length, length)
    assert blocks.ravel().tolist() == list(range(offset, offset + blocks.size))
