from pathlib import Path

import numpy as np
import pytest

from stages.harness.errors import InputError
from stages.perplexity_eval import held_out
from tests.tiny import tiny_tokenizer

DOCUMENTS = [" = Ada = ", "the guild of weavers", " = Bob = ", "the river"]


def test_a_stream_goes_with_its_text(tmp_path: Path) -> None:
    tokenizer, text, tokens = tiny_tokenizer(), tmp_path / "wiki.valid.tokens", tmp_path / "valid.npy"
    text.write_text("\n".join(DOCUMENTS))
    lengths = [
        len(tokenizer.encode(document).ids) for document in ("= Ada =\nthe guild of weavers", "= Bob =\nthe river")
    ]
    np.save(tokens, np.zeros(sum(lengths), np.uint16))
    stream, sizes = held_out(tokens, text, tokenizer)
    assert len(stream) == sum(lengths)
    assert sizes.tokens.tolist() == lengths
    text.write_text("\n".join([*DOCUMENTS, "and more"]))
    with pytest.raises(
        InputError, match=r"valid\.npy: these are not the tokens of .*wiki\.valid\.tokens; run tokenize"
    ):
        held_out(tokens, text, tokenizer)
