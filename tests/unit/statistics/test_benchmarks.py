"""Benchmarks: equal methods, intervals that hold the truth and models that have learned, and the table of seeds."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from retrace.statistics.intervals import resamples

chance = import_module("chance")


@pytest.mark.parametrize(("seeds", "most"), [(1, 0.0), (2, 0.08), (3, 0.08)])
def test_hardly_ever_is_one_of_two_equal_methods_called_better(seeds: int, most: float) -> None:
    generator = np.random.default_rng(1)
    weights = np.concatenate(list(resamples(chance.EXAMPLES, 200, seed=0))) / chance.EXAMPLES
    named = [chance.names_a_method(generator, weights, seeds, 0.02) for _ in range(100)]
    assert np.mean(named) <= most


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("examples", [872, 20_000])
def test_intervals_over_seeds_hold_the_truth(seeds: int, examples: int) -> None:
    generator = np.random.default_rng(1)
    assert np.mean([chance.holds_the_truth(generator, examples, None, seeds, 0.02) for _ in range(200)]) >= 0.91


def test_models_that_have_learned_are_not_flagged_and_others_are() -> None:
    found = chance.flagged(4)
    assert found == {"sound": 4, "notices": {}, "learned_nothing": 1, "of_these_flagged": 1}


def test_only_runs_that_differ_by_their_seed_are_averaged() -> None:
    kind = {"task": "sst2", "method": "full", "precision": "bf16", "processor": "AMX", "processes": 1}
    figures = ((1, 1, 0.75), (1, 2, 1.0), (5, 1, 1.0), (5, 2, 1.0))
    rows = [{**kind, "corpus": corpus, "seed": seed, "accuracy": of} for corpus, seed, of in figures]
    none = dict.fromkeys(("f1", "HasAns_f1", "NoAns_f1"))
    found = import_module("seeds").summary(pd.DataFrame([{**row, **none} for row in rows]))
    assert found[["count", "mean", "std", "min"]].to_numpy().tolist() == [[2, 0.875, 0.1768, 0.75], [2, 1, 0, 1]]
