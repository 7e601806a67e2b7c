"""A selection of the campaign of malformed input, without the large files; and arbitrary bytes for every reader.

Settings that clash are all in it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.campaigns.bad_input import READERS
from tests.campaigns.cases import Case, read_case, run_case

LARGE = ("10 MB line", "zip bomb")
MOST = 100  # of a kind
MARKS = [mark.encode() for mark in (*'\n\r\t"{]<&\0', "\\u", "\\ud800", "\u2028", "1e999", ": ")] + [b"\xff"]
CHANGE = st.tuples(st.integers(0, 9999), st.integers(0, 4), st.binary(max_size=4) | st.sampled_from(MARKS))


@pytest.mark.parametrize("cases", READERS)
def test_each_is_read_whole_or_refused_at_its_place(cases: Callable[[Random], Iterator[Case]]) -> None:
    small = [case for case in cases(Random(0)) if case.fault not in LARGE]
    chosen = small[:: 1 + len(small) // MOST] + [case for case in small if case.fault == "clash"]
    assert [outcome.problem for case in chosen if (outcome := run_case(case)).problem] == []
    assert chosen


def _right() -> list[Case]:
    """A file that each reader accepts, but for a byte-order mark."""
    every = [case for cases in READERS[:-1] for case in cases(Random(0))]
    return list({case.reader: case for case in every if case.fault == "BOM" and case.reader != "checkpoint"}.values())


@pytest.mark.parametrize("case", _right(), ids=lambda case: case.reader)
@given(st.lists(CHANGE, max_size=5))
@settings(max_examples=40)
def test_any_bytes_are_rows_or_one_line(
    case: Case, tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int, bytes]]
) -> None:
    assert isinstance(case.content, bytes)
    content = case.content
    for at, length, put in changes:
        at %= len(content) + 1
        content = content[:at] + put + content[at + length :]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("any"))
        replace(case, content=content).lay_out(Path())
        found = read_case(case)
    assert not isinstance(found, str) or "\n" not in found, found
