"""The rows of a data set of the Hugging Face Hub that is pinned to a commit.

`datasets` reads the files once, whatever their format, and writes the rows as Arrow under HF_HOME, from where pyarrow
reads them with or without network. It is given files that have already been fetched, so that they are those of the
pinned commit: offline, `datasets` itself takes the latest version it has. It is imported only where needed, as that
takes seconds.
"""

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile

import pyarrow as pa
import yaml
from huggingface_hub import DatasetCard, constants

from retrace.core.errors import InputError, first_line
from retrace.core.files import read_object
from retrace.core.settings import file_of
from retrace.datasets.text import Table
from retrace.hub.repository import fetch, hub_session, hub_token, is_text, listing
from retrace.hub.settings import HubDataset

INFO = "dataset_info.json"  # where `datasets` writes sizes of splits, features, licence
CARD = "README.md"
OLD_INFOS, BESIDE = "dataset_infos.json", ".huggingface.yaml"  # in old repositories; BESIDE overrides the card's keys
DESCRIBING = (CARD, OLD_INFOS, BESIDE)
DEFAULT = "default"  # in params.yaml: the data set's own default config, whatever its name
# No such config or split, a script, malformed rows, or a card with values of other types or nested too deeply; besides
# the errors of `datasets`.
MISTAKES = (ValueError, TypeError, LookupError, RuntimeError, FileNotFoundError, yaml.YAMLError)
ELSEWHERE = "its card names {!r}, which this commit does not have"
BATCH = 1000  # rows read at a time, which is much faster than one by one


def open_split(source: HubDataset, split: str, key: str) -> Table:
    """A split of the data set that is at `key` of the settings.

    Raises InputError if it cannot be read.
    """
    name = source.split_name(split)
    features, batches = _stream(source, split, key) if source.stream else _open_kept(source, split, key)
    rows = chain.from_iterable(_python_rows(name, batch) for batch in batches)
    classes = {column: tuple(feature["names"]) for column, feature in _of_type(features, "ClassLabel").items()}
    if mixed := _of_type(features, "Json"):  # columns with values of several types, each stored as its json
        rows = (row | {name: json.loads(row[name]) for name in mixed if row[name] is not None} for row in rows)
    return Table(name, ((f"{name}: row {number}", row) for number, row in enumerate(rows, start=1)), classes)


def _python_rows(name: str, batch: Any) -> list[dict[str, Any]]:
    """The rows of a batch; raises InputError if Python cannot hold a value, such as a date after the year 9999."""
    try:
        return batch.to_pylist()
    except (OverflowError, ValueError) as error:
        raise InputError(f"{name}: {first_line(error)}") from None


def _of_type(features: Mapping[str, Any], name: str) -> dict[str, Mapping[str, Any]]:
    """The columns of one of `datasets`' types."""
    return {key: of for key, of in features.items() if isinstance(of, Mapping) and of.get("_type") == name}


def licence(source: HubDataset, key: str) -> str | None:
    """The licence on the data set's card, if any."""
    if source.stream:
        return _licence(_read_card(fetch(source.pin, "dataset", [CARD]))) or None
    return read_object(_kept(source, key) / INFO)["license"] or None


def _stream(source: HubDataset, split: str, key: str) -> tuple[Any, Iterator[pa.Table]]:
    """The features and the first `source.stream` rows of a split; no further rows are fetched."""
    import datasets

    # Where the hub fails, `datasets` would take any commit that its cache holds, so it is given an empty one.
    with TemporaryDirectory() as empty, _session(source, key):
        builder: Any = datasets.load_dataset_builder(
            source.pin.repository, _config(source), revision=source.pin.commit, token=hub_token(), cache_dir=empty
        )
        _require_inside(builder.config.data_files or {}, f"hf://datasets/{source.pin}")
        rows = builder.as_streaming_dataset(split).take(source.stream or 0)

    def batches() -> Iterator[pa.Table]:
        with _session(source, key):
            yield from rows.with_format("arrow").iter(BATCH)

    return (rows.features or datasets.Features()).to_dict(), batches()


def _open_kept(source: HubDataset, split: str, key: str) -> tuple[Any, Iterable[pa.RecordBatch]]:
    """The features and all rows of a split or of an expression such as train[:90%]."""
    folder = _kept(source, key)
    info = read_object(folder / INFO)
    sizes = {name: one["num_examples"] for name, one in info["splits"].items()}
    if split in sizes:
        return info["features"], _table(folder, split, sizes[split]).to_batches(BATCH)
    import datasets

    with _session(source, key):
        parts = datasets.ReadInstruction.from_spec(split).to_absolute(sizes)
    tables = [_table(folder, part.splitname, sizes[part.splitname])[part.from_ : part.to] for part in parts]
    return info["features"], pa.concat_tables(tables).to_batches(BATCH)


def _kept(source: HubDataset, key: str) -> Path:
    """The folder with the config's splits as Arrow, and INFO; made from its files where there is none."""
    home = Path(constants.HF_HOME) / "retrace" / f"datasets-{version('datasets')}"
    folder = home / source.pin.repository / source.pin.commit / source.config
    if (folder / INFO).is_file():
        return folder
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    with TemporaryDirectory() as made, _session(source, key, made):
        described = fetch(source.pin, "dataset", DESCRIBING)
        card = _read_card(described)
        builder = _builder(source, card, described, Path(made).resolve() / "rows")
        builder.info.license = _licence(card)
        builder.download_and_prepare(str(folder))
    return folder


def _table(folder: Path, split: str, rows: int) -> pa.Table:
    """A split of so many rows in one file, or in several called NAME-SPLIT-00000-of-00002.arrow.

    Raises InputError if a file is gone or was cut short, which Arrow does not notice between two batches of rows.
    """
    files = sorted([*folder.glob(f"*-{split}.arrow"), *folder.glob(f"*-{split}-*-of-*.arrow")])
    with suppress(pa.ArrowException, OSError):
        table = pa.concat_tables(pa.ipc.open_stream(pa.memory_map(str(file))).read_all() for file in files)
        if len(table) >= rows:
            return table
    raise InputError(f"{folder}: rows of {split} are missing; remove this folder and run again")


@contextmanager
def _session(source: HubDataset, key: str, made: str = "") -> Iterator[None]:
    """Turn errors of the hub and of `datasets` into one line, which does not name the temporary folder `made`."""
    from datasets.exceptions import DatasetGenerationError, DatasetsError

    try:
        with hub_session(f"{file_of(key)}: {key}.repository: {source.pin}"):
            yield
    except (DatasetsError, *MISTAKES) as error:
        cause = error.__cause__ if isinstance(error, DatasetGenerationError) and error.__cause__ else error
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        message = " ".join(line.strip() for line in lines[:2])  # the second lists what exists
        message = message.replace(f" in {Path(made).resolve()}/rows", "")
        raise InputError(f"{file_of(key)}: {key}: {source.pin}: {message}") from error


def _builder(source: HubDataset, card: Mapping[str, Any], described: Path, view: Path) -> Any:
    """The `DatasetBuilder` of the config, whose files are fetched here.

    `datasets` infers these files and their format from the file names of a repository and from its card. So it is
    shown the folder `view`, which has empty files of the same names, and a card with this config alone: otherwise it
    would infer the format from the files of the first config.
    """
    import datasets
    from datasets.data_files import DataFilesDict, DataFilesList

    for name in listing(source.pin, "dataset"):
        path = (view / name).resolve()
        if not path.is_relative_to(view):
            raise ValueError(f"{name!r} leads out of the repository")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        if name == OLD_INFOS:
            shutil.copyfile(described / name, path)
    told = _card_of(card, source.config)
    _require_no_address(told.get("configs", ()))
    (view / CARD).write_text(f"---\n{yaml.safe_dump(told, sort_keys=False)}---\n")
    try:
        builder = datasets.load_dataset_builder(str(view), _config(source))
    except BadZipFile:  # `datasets` looks inside for the format
        raise ValueError("the data is in zip archives; only `stream`, a number of rows, can read these") from None
    named = builder.config.data_files
    if not isinstance(named, DataFilesDict):
        raise ValueError("No data files found")
    _require_inside(named, str(view))
    files = {split: [Path(path).relative_to(view).as_posix() for path in paths] for split, paths in named.items()}
    fetched = fetch(source.pin, "dataset", [escape(name) for names in files.values() for name in names])
    builder.config.data_files = DataFilesDict(
        {split: DataFilesList([str(fetched / name) for name in names], []) for split, names in files.items()}
    )
    return builder


def _require_no_address(configs: Iterable[Mapping[str, Any]]) -> None:
    """Raise ValueError if configs of a card name an address: `datasets` would ask there before `_require_inside`."""
    for config in configs:
        files = config.get("data_files")
        entries = [config.get("data_dir"), *(files if isinstance(files, list) else [files])]
        named = [entry.get("path") if isinstance(entry, Mapping) else entry for entry in entries]
        for path in chain.from_iterable(each if isinstance(each, list) else [each] for each in named):
            if isinstance(path, str) and ("://" in path or "::" in path):
                raise ValueError(ELSEWHERE.format(path))


def _require_inside(files: Mapping[str, Iterable[str]], root: str) -> None:
    """Raise ValueError unless all files, by split, are below `root`, as a card may name any path."""
    for path in chain.from_iterable(files.values()):
        inside = path.removeprefix(f"{root}/")
        if inside == path or ".." in Path(inside).parts:
            raise ValueError(ELSEWHERE.format(inside))


def _config(source: HubDataset) -> str | None:
    return None if source.config == DEFAULT else source.config


def _read_card(folder: Path) -> dict[str, Any]:
    card, beside = folder / CARD, folder / BESIDE
    found = DatasetCard.load(card).data.to_dict() if card.is_file() else {}
    return found | (yaml.safe_load(beside.read_text(encoding="utf-8")) or {} if beside.is_file() else {})


def _card_of(card: Mapping[str, Any], config: str) -> dict[str, Any]:
    """The part of a card that `datasets` reads, reduced to this config, or the default one, if the card lists it."""
    # In old cards `configs` is a list of names.
    configs = [one for one in card.get("configs") or [] if isinstance(one, Mapping)]
    chosen = [one for one in configs if one.get("config_name", DEFAULT) == config]
    if config == DEFAULT and not chosen:
        chosen = [one for one in configs if one.get("default")]
    found = {"configs": chosen or configs, "dataset_info": card.get("dataset_info")}
    return {key: value for key, value in found.items() if value}


def _licence(card: Mapping[str, Any]) -> str:
    found = card.get("license")
    if not is_text(found):
        return ""
    return ", ".join(found) if isinstance(found, list) else str(found)
