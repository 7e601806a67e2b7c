"""What `datasets` does for a data set of the hub: it reads files of any format, streams, and knows parts of splits.

Apart from what reads the rows that are kept, so that `datasets` is imported only where it is needed. It gets the files
from where they were fetched, so that the commit in params.yaml is what is read, with the network and without: where it
cannot reach the hub, `datasets` itself takes the latest it has.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from datasets.exceptions import DatasetsError
from huggingface_hub import DatasetCard

from stages.corpus.hub_settings import HubDataset
from stages.harness.errors import InputError
from stages.harness.hub import fetch
from stages.harness.hub_session import hub_session, hub_token
from stages.harness.pin import Pin

CARD = "README.md"
# What is fetched of a repository that does not say which files a config has.
DATA_FILES = tuple(f"*.{kind}{packed}" for kind in ("parquet", "jsonl", "json", "csv", "tsv") for packed in ("", ".gz"))


def prepare(source: HubDataset, key: str, folder: Path) -> None:
    """Fetch the data set that `key` in params.yaml describes, and write rows and dataset_info.json to `folder`.

    Raises InputError where it cannot be had.
    """
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    with _session(source, key):
        card = _card(source.pin)
        files = fetch(source.pin, "dataset", [CARD, *(_files(card, source.config) or DATA_FILES)])
        builder = datasets.load_dataset_builder(str(files), source.config)
        builder.info.license = _licence(card) or ""
        builder.download_and_prepare(str(folder))


def open_stream(source: HubDataset, split: str, key: str, rows: int, batch: int) -> tuple[Any, Iterator[pa.Table]]:
    """The features as dataset_info.json has them, and the first `rows` of a split, `batch` at a time.

    Raises InputError where they cannot be had.
    """
    pin = source.pin
    with _session(source, key):
        found = datasets.load_dataset(
            pin.repository, source.config, revision=pin.commit, split=split, streaming=True, token=hub_token()
        ).take(rows)
    return (found.features or datasets.Features()).to_dict(), _batches(found, f"{pin} {source.config} {split}", batch)


def parts_of(source: HubDataset, split: str, key: str, sizes: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """The splits, first rows and ends that an expression such as train[:90%] means.

    Raises InputError where it means none.
    """
    with _session(source, key):
        parts = datasets.ReadInstruction.from_spec(split).to_absolute(sizes)
    return [(part.splitname, part.from_, part.to) for part in parts]


def licence_of(pin: Pin) -> str | None:
    """What the data set's card gives as its licence."""
    return _licence(_card(pin))


@contextmanager
def _session(source: HubDataset, key: str) -> Iterator[None]:
    try:
        with hub_session(f"params.yaml: {key}.repository: {source.pin}"):
            yield
    except (ValueError, FileNotFoundError, DatasetsError) as error:  # no such config or split
        raise InputError(f"params.yaml: {key}: {source.pin}: {str(error).splitlines()[0]}") from error


def _batches(rows: datasets.IterableDataset, name: str, size: int) -> Iterator[pa.Table]:
    with hub_session(name):
        yield from rows.with_format("arrow").iter(size)


def _card(pin: Pin) -> dict[str, Any]:
    path = fetch(pin, "dataset", [CARD]) / CARD
    return DatasetCard.load(path).data.to_dict() if path.is_file() else {}


def _licence(card: Mapping[str, Any]) -> str | None:
    found = card.get("license")
    return ", ".join(found) if isinstance(found, list) else found


def _files(card: dict[str, Any], config: str) -> list[str]:
    """The patterns of a config's files; none where the card has no such config, or does not say."""
    for one in card.get("configs") or []:
        if one.get("config_name", "default") == config:
            found = _texts(one.get("data_files"))
            return [f"{one['data_dir']}/*"] if not found and "data_dir" in one else found
    return []


def _texts(files: Any) -> list[str]:
    """The paths in a card's `data_files`: one, a list of them, or entries with a split and one or more."""
    if isinstance(files, str):
        return [files]
    if isinstance(files, dict):
        return _texts(files.get("path", list(files.values())))
    return [path for each in files or [] for path in _texts(each)]
