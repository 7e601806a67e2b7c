"""The table that the benchmark of seeds prints."""

from importlib import import_module

import pandas as pd


def test_only_runs_that_differ_by_their_seed_are_averaged() -> None:
    kind = {"task": "sst2", "method": "full", "precision": "bf16", "processor": "AMX", "processes": 1}
    figures = ((1, 1, 0.75), (1, 2, 1.0), (5, 1, 1.0), (5, 2, 1.0))
    rows = [{**kind, "corpus": corpus, "seed": seed, "accuracy": of} for corpus, seed, of in figures]
    none = dict.fromkeys(("f1", "HasAns_f1", "NoAns_f1"))
    found = import_module("seeds").summary(pd.DataFrame([{**row, **none} for row in rows]))
    assert found[["count", "mean", "std", "min"]].to_numpy().tolist() == [[2, 0.875, 0.1768, 0.75], [2, 1, 0, 1]]
