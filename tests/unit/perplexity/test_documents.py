import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from retrace.perplexity import measures


def _measured(sums: list[float], scored: list[float], words: list[int]) -> measures.Measured:
    sizes = measures.Sizes(np.array([4, 6]), np.array(words), np.array([20, 33]))
    return measures.Losses(math.nan, np.array(sums), np.array(scored)), sizes


@pytest.mark.usefixtures("here")
def test_what_was_measured_of_each_document_is_read_back_with_its_mean() -> None:
    some, none = _measured([2.0, 7.5], [1.0, 2.0], [2, 3]), _measured([0.0, 0.0], [0.0, 0.0], [1, 1])
    measures.DOCUMENTS.parent.mkdir()
    measures.write_documents({"dev": {"masked": some, "unigram": none}, "test": {"masked": none}})
    table = pd.read_parquet(measures.DOCUMENTS)
    assert list(table) == ["split", "measure", "loss", "scored", "tokens", "words", "bytes"]
    assert table.index.tolist() == [*range(6)]
    found = measures.read_documents(measures.DOCUMENTS.read_bytes())
    assert list(found) == [("dev", "masked"), ("dev", "unigram"), ("test", "masked")]
    losses, sizes = found["dev", "masked"]
    assert losses.mean == 9.5 / 3  # nats on three tokens
    assert (losses.sums.tolist(), losses.scored.tolist()) == ([2.0, 7.5], [1.0, 2.0])
    assert [of.tolist() for of in (sizes.tokens, sizes.words, sizes.bytes)] == [[4, 6], [2, 3], [20, 33]]
    assert math.isnan(found["dev", "unigram"][0].mean)


def test_documents_are_the_same_where_all_their_sizes_are() -> None:
    one = _measured([2.0, 7.0], [1.0, 2.0], [2, 3])
    assert measures.are_same_documents(one, _measured([1.0, 1.0], [9.0, 9.0], [2, 3]))
    for size in ("tokens", "words", "bytes"):
        assert not measures.are_same_documents(one, (one[0], replace(one[1], **{size: np.array([4, 7])})))
