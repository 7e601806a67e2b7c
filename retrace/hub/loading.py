"""What `datasets` does for a data set of the hub: it reads files of any format, streams, and knows parts of splits.

Apart from what reads the rows that are kept, so that `datasets` is imported only where it is needed. It gets the files
from where they were fetched, so that the commit in params.yaml is what is read, with the network and without: where it
cannot reach the hub, `datasets` itself takes the latest it has.
"""

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile

import datasets
import pyarrow as pa
import yaml
from datasets.data_files import DataFilesDict, DataFilesList
from datasets.exceptions import DatasetGenerationError, DatasetsError
from huggingface_hub import DatasetCard

from retrace.core.errors import InputError
from retrace.hub.checkpoint import Pin
from retrace.hub.repository import fetch, listing
from retrace.hub.session import hub_session, hub_token
from retrace.hub.settings import HubDataset

CARD = "README.md"
SAYS = (CARD, "dataset_infos.json", ".huggingface.yaml")  # what a repository says of its data, nowadays all in the card
DEFAULT = "default"  # in params.yaml: the config that the data set itself takes where none is named


def prepare(source: HubDataset, key: str, folder: Path) -> None:
    """Fetch the data set that `key` in params.yaml describes, and write rows and dataset_info.json to `folder`.

    Only files of the config are fetched. Raises InputError where they cannot be had.
    """
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    with TemporaryDirectory() as made, _session(source, key, made):
        said = fetch(source.pin, "dataset", SAYS)
        card = _read_card(said)
        builder = _builder(source, card, said, Path(made).resolve() / "rows")
        builder.info.license = _licence(card) or ""
        builder.download_and_prepare(str(folder))


def open_stream(source: HubDataset, split: str, key: str, rows: int, batch: int) -> tuple[Any, Iterator[pa.Table]]:
    """The features as dataset_info.json has them, and the first `rows` of a split, `batch` at a time.

    Raises InputError where they cannot be had.
    """
    pin = source.pin
    with _session(source, key):
        found = datasets.load_dataset(
            pin.repository, _config(source), revision=pin.commit, split=split, streaming=True, token=hub_token()
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
    return _licence(_read_card(fetch(pin, "dataset", [CARD])))


@contextmanager
def _session(source: HubDataset, key: str, made: str = "") -> Iterator[None]:
    """Errors of the hub and of `datasets` are one line, without the folder that was `made` for it."""
    try:
        with hub_session(f"params.yaml: {key}.repository: {source.pin}"):
            yield
    except (ValueError, FileNotFoundError, DatasetsError, yaml.YAMLError) as error:  # no such config or split
        cause = error.__cause__ if isinstance(error, DatasetGenerationError) and error.__cause__ else error
        lines = [line.strip() for line in str(cause).strip().splitlines()[:2]]  # the second names what there is
        said = " ".join(lines).replace(f" in {Path(made).resolve()}/rows", "") if made else " ".join(lines)
        raise InputError(f"params.yaml: {key}: {source.pin}: {said}") from error


def _builder(source: HubDataset, card: Mapping[str, Any], said: Path, view: Path) -> datasets.DatasetBuilder:
    """What reads the config's files, all of them fetched.

    `datasets` finds out which they are, and of what format, from the names of a repository's files and from its card.
    So it gets a folder, `view`, with all the names and nothing in them, and the card of this config alone, by whose
    files it would otherwise not judge the format, but by those of the first one.
    """
    for name in listing(source.pin, "dataset"):
        path = (view / name).resolve()
        if not path.is_relative_to(view):
            raise ValueError(f"{name!r} leads out of the repository")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name in SAYS[1:]:
        if (said / name).is_file():
            shutil.copyfile(said / name, view / name)
    (view / CARD).write_text(f"---\n{yaml.safe_dump(_card_of(card, source.config), sort_keys=False)}---\n")
    try:
        builder = datasets.load_dataset_builder(str(view), _config(source))
    except BadZipFile:  # it looks for the format inside
        raise ValueError("the data is in zip archives, which are only read with stream, a number of rows") from None
    named = builder.config.data_files
    if not isinstance(named, DataFilesDict):
        raise ValueError("No data files found")
    files = {split: [Path(path).relative_to(view).as_posix() for path in paths] for split, paths in named.items()}
    fetched = fetch(source.pin, "dataset", [escape(name) for names in files.values() for name in names])
    builder.config.data_files = DataFilesDict(
        {split: DataFilesList([str(fetched / name) for name in names], []) for split, names in files.items()}
    )
    return builder


def _config(source: HubDataset) -> str | None:
    return None if source.config == DEFAULT else source.config


def _batches(rows: datasets.IterableDataset, name: str, size: int) -> Iterator[pa.Table]:
    with hub_session(name):
        yield from rows.with_format("arrow").iter(size)


def _read_card(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    return DatasetCard.load(path).data.to_dict() if path.is_file() else {}


def _card_of(card: Mapping[str, Any], config: str) -> dict[str, Any]:
    """What `datasets` reads of a card, with this config alone where the card has it."""
    # Once `configs` was a list of names.
    configs = [one for one in card.get("configs") or [] if isinstance(one, Mapping)]
    asked = [one for one in configs if one.get("config_name", DEFAULT) == config]
    found = {"configs": asked or configs, "dataset_info": card.get("dataset_info")}
    return {key: value for key, value in found.items() if value}


def _licence(card: Mapping[str, Any]) -> str | None:
    found = card.get("license")
    return ", ".join(found) if isinstance(found, list) else found
