"""A data set of the Hugging Face Hub, pinned to a commit, as rows.

`datasets` reads its files once, whatever their format, and keeps the rows as Arrow under HF_HOME. There pyarrow finds
them, with the network and without; `datasets`, which takes long to import, is not needed again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from huggingface_hub import constants

from retrace.core.files import read_object
from retrace.hub.settings import HubDataset

INFO = "dataset_info.json"  # what `datasets` calls it: sizes of splits, features, licence
BATCH = 1000  # rows read at a time, which is much faster than one by one


@dataclass(frozen=True)
class Split:
    """A split's rows, to be read once, and the names of the classes in those columns that hold classes by number."""

    name: str  # for messages
    batches: Iterable[pa.RecordBatch | pa.Table]
    classes: dict[str, tuple[str, ...]]

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each row's place and cells by column."""
        rows = (row for batch in self.batches for row in batch.to_pylist())
        for number, row in enumerate(rows, start=1):
            yield f"{self.name}: row {number}", row


def open_split(source: HubDataset, split: str, key: str) -> Split:
    """A split of the data set that `key` in params.yaml describes.

    Raises InputError where it cannot be had.
    """
    if source.stream:
        from retrace.hub.loading import open_stream

        features, batches = open_stream(source, split, key, source.stream, BATCH)
    else:
        features, batches = _open_kept(source, split, key)
    return Split(f"{source.pin} {source.config} {split}", batches, _classes(features))


def licence(source: HubDataset, key: str) -> str | None:
    """What the data set's card gives as its licence."""
    if source.stream:
        from retrace.hub.loading import licence_of

        return licence_of(source.pin)
    return read_object(_kept(source, key) / INFO)["license"] or None


def _open_kept(source: HubDataset, split: str, key: str) -> tuple[Mapping[str, Any], list[pa.RecordBatch]]:
    folder = _kept(source, key)
    info = read_object(folder / INFO)
    sizes = {name: one["num_examples"] for name, one in info["splits"].items()}
    if split in sizes:
        rows = _table(folder, split)
    else:
        from retrace.hub.loading import parts_of

        parts = parts_of(source, split, key, sizes)
        rows = pa.concat_tables(_table(folder, name)[start:end] for name, start, end in parts)
    return info["features"], rows.to_batches(BATCH)


def _kept(source: HubDataset, key: str) -> Path:
    """The folder that holds the config's splits as Arrow and INFO, made where there is none."""
    home = Path(constants.HF_HOME) / "retrace" / f"datasets-{version('datasets')}"
    folder = home / source.pin.repository / source.pin.commit / source.config
    if not (folder / INFO).is_file():
        from retrace.hub.loading import prepare

        prepare(source, key, folder)
    return folder


def _table(folder: Path, split: str) -> pa.Table:
    """A split of one file, or of several called NAME-SPLIT-00000-of-00002.arrow."""
    files = sorted([*folder.glob(f"*-{split}.arrow"), *folder.glob(f"*-{split}-*-of-*.arrow")])
    return pa.concat_tables(pa.ipc.open_stream(pa.memory_map(str(file))).read_all() for file in files)


def _classes(features: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(one["names"])
        for name, one in features.items()
        if isinstance(one, Mapping) and one.get("_type") == "ClassLabel"
    }
