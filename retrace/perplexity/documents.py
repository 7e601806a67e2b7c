"""The loss of every held-out document: reports/perplexity-documents.parquet, from which two revisions are compared."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from retrace.perplexity.measures import Losses, Measured, Sizes

DOCUMENTS = Path("reports/perplexity-documents.parquet")
COLUMNS = ("loss", "scored", "tokens", "words", "bytes")


def write_documents(splits: Mapping[str, Mapping[str, Measured]]) -> None:
    """Write a row a split, measure and document: loss in nats, scored tokens, and the document's sizes."""
    rows = [
        pd.DataFrame({"split": split, "measure": name, "loss": losses.sums, "scored": losses.scored, **asdict(sizes)})
        for split, measured in splits.items()
        for name, (losses, sizes) in measured.items()
    ]
    pd.concat(rows).to_parquet(DOCUMENTS, index=False)


def read_documents(content: bytes) -> dict[tuple[str, str], Measured]:
    """What was measured, by split and measure."""
    found = {}
    for split, measures in pd.read_parquet(BytesIO(content)).groupby("split"):
        for name, rows in measures.groupby("measure"):
            sums, scored, *sizes = (rows[column].to_numpy() for column in COLUMNS)
            losses = Losses(sums.sum() / scored.sum() if scored.any() else math.nan, sums, scored)
            found[str(split), str(name)] = losses, Sizes(*sizes)
    return found


def are_same_documents(first: Measured, second: Measured) -> bool:
    """Whether both are of the same texts in the same tokens, as far as their sizes tell."""
    return all(np.array_equal(asdict(first[1])[name], of) for name, of in asdict(second[1]).items())
