"""What baselines decided, as evaluation keeps it: reports/baselines/<task>.parquet, a column a baseline."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

BASELINES = Path("reports/baselines")


def write_baselines(task: str, decided: Mapping[str, Sequence[Any]]) -> None:
    """Write class numbers, or `text` and `start` of answers ("" and -1 for none), in the order of the examples."""
    BASELINES.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: list(given) for name, given in decided.items()}), BASELINES / f"{task}.parquet")


def read_baselines(task: str) -> dict[str, list[Any]]:
    """Class numbers or answers by baseline; none where nothing was kept."""
    path = BASELINES / f"{task}.parquet"
    found = pd.read_parquet(path) if path.is_file() else pd.DataFrame()
    return {str(name): values.tolist() for name, values in found.items()}
