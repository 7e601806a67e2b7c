from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrace.core.errors import InputError
from retrace.tokens import blocks
from retrace.tokens.blocks import cut_blocks, find_documents, open_stream, write_stream
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import SubwordTokenizer, token_id, train_tokenizer

MARKS = st.sampled_from(["[CLS]", "[SEP]", "[PAD]", "<unk>", "[UNK]", "one", " ", "\n", "\U0001f600", "##two"])
TEXT = ["one two three four five", "six seven eight nine ten"] * 200

TOKENIZER = train_tokenizer(TokenizerSettings(vocab_size=50), lambda: TEXT)


@pytest.mark.parametrize(("size", "kind"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_no_more_bytes_than_they_need(tmp_path: Path, monkeypatch, size: int, kind: type) -> None:
    monkeypatch.setattr(SubwordTokenizer, "size", size)
    write_stream(tmp_path / "s.npy", TOKENIZER, [TEXT[:1]])
    assert open_stream(tmp_path / "s.npy").dtype == kind


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 49))
def test_blocks_are_the_stream_from_the_offset(tokens: int, length: int, offset: int) -> None:
    stream = np.arange(tokens)
    if tokens - offset < length:
        with pytest.raises(InputError, match="do not fill one block"):
            cut_blocks(stream, length, offset)
        return
    blocks = cut_blocks(stream, length, offset)
    assert blocks.shape == ((tokens - offset) // length, length)
    assert offset or np.array_equal(blocks, cut_blocks(stream, length))
    assert blocks.ravel().tolist() == list(range(offset, offset + blocks.size))


@given(st.lists(st.text(max_size=12) | st.lists(MARKS, max_size=6).map("".join), min_size=1, max_size=9))
def test_a_stream_loses_no_token_and_no_boundary(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Whatever is in a text, also what looks like a special token; in batches and parts of any size."""
    path = tmp_path_factory.mktemp("stream") / "s.npy"
    begin, end = token_id(TOKENIZER, "[CLS]"), token_id(TOKENIZER, "[SEP]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BATCH", 2)
        patch.setattr(blocks, "SCANNED", 3)
        counts, ends = write_stream(path, TOKENIZER, [texts[:1], texts[1:]])
        stream = open_stream(path)
        found = [stream[first:last].tolist() for first, last in find_documents(stream, begin)]
    alone = [TOKENIZER.encode_documents([text])[0] for text in texts]
    assert found == [ids[1:-1] for ids in alone]
    assert ends == [sum(map(len, alone[:1])), len(stream)]
    assert isinstance(stream, np.memmap)
    assert stream.tolist() == [number for ids in alone for number in ids]
    assert all(number not in (begin, end) for document in found for number in document)
    assert counts == {"words": sum(len(text.split()) for text in texts), "tokens": len(stream)}
