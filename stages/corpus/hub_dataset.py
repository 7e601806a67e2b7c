"""A data set of the Hugging Face Hub, pinned to a commit, as rows.

Its files are fetched once and read by `datasets` from where they are kept, so that the commit in params.yaml is what is
read, with the network and without; `datasets` itself, where it cannot reach the hub, takes the latest it has.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import datasets
from datasets.exceptions import DatasetsError
from huggingface_hub import DatasetCard

from stages.corpus.hub_settings import HubDataset
from stages.harness.errors import InputError
from stages.harness.hub import Pin, fetch
from stages.harness.hub_session import hub_session, hub_token

CARD = "README.md"
BATCH = 1000  # rows read at a time, which is much faster than one by one
# What is fetched of a repository that does not say which files a config has.
DATA_FILES = tuple(f"*.{kind}{packed}" for kind in ("parquet", "jsonl", "json", "csv", "tsv") for packed in ("", ".gz"))


@dataclass(frozen=True)
class Split:
    """A split's rows, and the names of the classes in those columns that hold classes by number."""

    name: str  # for messages
    rows: Any  # a Dataset or an IterableDataset
    classes: dict[str, tuple[str, ...]]

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each row's place and cells by column."""
        with hub_session(self.name):
            batches = self.rows.with_format("arrow").iter(BATCH)
            rows = (row for batch in batches for row in batch.to_pylist())
            for number, row in enumerate(rows, start=1):
                yield f"{self.name}: row {number}", row


def open_split(source: HubDataset, split: str, key: str) -> Split:
    """A split of the data set that `key` in params.yaml describes.

    Raises InputError where it cannot be had.
    """
    pin = source.pin
    try:
        with hub_session(f"params.yaml: {key}.repository: {pin}"):
            if source.stream:
                rows = _streamed(pin, source.config, split).take(source.stream)
            else:
                rows = cast(datasets.Dataset, _prepared(pin, source.config).as_dataset(split))
    except (ValueError, FileNotFoundError, DatasetsError) as error:  # no such config or split
        raise InputError(f"params.yaml: {key}: {pin}: {str(error).splitlines()[0]}") from error
    columns = (rows.features or {}).items()
    classes = {name: tuple(of.names) for name, of in columns if isinstance(of, datasets.ClassLabel)}
    return Split(f"{pin} {source.config} {split}", rows, classes)


def licence(source: HubDataset) -> str | None:
    """What the data set's card gives as its licence."""
    found = _card(source.pin).get("license")
    return ", ".join(found) if isinstance(found, list) else found


@cache
def _prepared(pin: Pin, config: str) -> datasets.DatasetBuilder:
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    folder = fetch(pin, "dataset", [CARD, *(_files(_card(pin), config) or DATA_FILES)])
    builder = datasets.load_dataset_builder(str(folder), config)
    builder.download_and_prepare()
    return builder


def _streamed(pin: Pin, config: str, split: str) -> datasets.IterableDataset:
    return datasets.load_dataset(
        pin.repository, config, revision=pin.commit, split=split, streaming=True, token=hub_token()
    )


@cache
def _card(pin: Pin) -> dict[str, Any]:
    path = fetch(pin, "dataset", [CARD]) / CARD
    return DatasetCard.load(path).data.to_dict() if path.is_file() else {}


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
