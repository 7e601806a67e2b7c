"""Predictions on disk: what is written is what is read, and a wrong column is named on both sides."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retrace.core.errors import InputError
from retrace.perplexity import measures
from retrace.results import predictions
from retrace.results.grid import Kind
from retrace.results.predictions import read_predictions, write_predictions

CLASSES = {"epoch": 0, "id": 0, "label": 1, "logit_0": 0.5, "logit_1": -0.5, "logit_2": 0.0}
ANSWER = {"epoch": 1, "id": "a", "text": "", "start": None, "score": 1.0, "null_score": None}


@pytest.mark.parametrize(("kind", "row"), [("classification", CLASSES), ("question_answering", ANSWER)])
def test_what_is_written_is_read(tmp_path: Path, kind: Kind, row: dict[str, Any]) -> None:
    write_predictions(tmp_path / "p.parquet", kind, [row, row])
    found = read_predictions(tmp_path / "p.parquet", kind)
    assert list(found) == list(row)
    assert found.astype(object).where(found.notna(), None).to_dict("records") == [row, row]


@pytest.mark.parametrize(
    ("kind", "row", "problem"),
    [
        ("classification", {**CLASSES, "logit_1": "x"}, "column logit_1: expected double, found string"),
        ("classification", {**CLASSES, "logit_4": 1.0}, "column logit_3: expected double, found none"),
        ("classification", {"epoch": 0, "id": 0, "logit_0": 1.0, "logit_1": 1.0}, "column label: expected int64"),
        ("question_answering", {**ANSWER, "id": 3}, "column id: expected string, found int64"),
        ("question_answering", {**ANSWER, "answer": ""}, "column answer: not expected; question_answering has epoch"),
    ],
)
def test_a_wrong_column_is_named_by_writer_and_reader(tmp_path: Path, kind: Kind, row, problem: str) -> None:
    path = tmp_path / "p.parquet"
    with pytest.raises(InputError, match=rf"p.parquet: {problem}"):
        write_predictions(path, kind, [row])
    assert not path.exists()
    pq.write_table(pa.Table.from_pylist([row]), path)
    with pytest.raises(InputError, match=rf"p.parquet: {problem}"):
        read_predictions(path, kind)


def test_a_file_of_another_format_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_bytes(b"PAR1 cut")
    with pytest.raises(InputError, match=r"^[^\n]*p\.parquet: not parquet: [^\n]*$"):
        read_predictions(tmp_path / "p.parquet", "classification")


ONE = np.ones(1)
SPLITS = {"valid": {"masked": (measures.Losses(1.0, ONE, ONE), measures.Sizes(ONE, ONE, ONE))}}
WRITTEN = [
    (measures.DOCUMENTS, pd.DataFrame, "to_parquet", lambda: measures.write_documents(SPLITS)),
    (predictions.BASELINES / "sst2.parquet", pq, "write_table", lambda: predictions.write_baselines("sst2", {})),
]


@pytest.mark.parametrize(("path", "library", "name", "write"), WRITTEN)
def test_what_is_written_is_there_as_a_whole_or_as_before(here: Path, monkeypatch, path, library, name, write) -> None:
    def half_written(*given: Any, **named: Any) -> None:
        next(Path(of) for of in given if isinstance(of, (str, Path))).write_text("half")
        raise KeyboardInterrupt

    path.parent.mkdir(parents=True, exist_ok=True)
    write()
    before = path.read_bytes()
    monkeypatch.setattr(library, name, half_written)
    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_bytes() == before
