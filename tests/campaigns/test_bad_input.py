"""A selection of the campaign of malformed input, without what is large."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.campaigns.bad_input import READERS
from tests.campaigns.cases import Case, run_case

LARGE = ("10 MB line", "zip bomb")
MOST = 100  # of a kind


@pytest.mark.parametrize("cases", READERS)
def test_each_is_read_whole_or_refused_at_its_place(cases: Callable[[Random], Iterator[Case]]) -> None:
    small = [case for case in cases(Random(0)) if case.fault not in LARGE]
    chosen = small[:: 1 + len(small) // MOST]
    assert [outcome.problem for case in chosen if (outcome := run_case(case)).problem] == []
    assert chosen
