"""Repositories of data sets as people lay them out, read as `datasets` reads them."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.hub import LocalHub, WrongBytes
from tests.hub.client import run_client

pytestmark = pytest.mark.slow

ROWS = [{"text": "a b", "label": 1}, {"text": "c, d", "label": 0}]
OTHER = [{"text": "another config's", "label": 0}]


def _csv(rows: list[dict[str, Any]], mark: str = ",") -> bytes:
    lines = [mark.join(f'"{value}"' for value in row.values()) for row in rows]
    return "\n".join([mark.join(rows[0]), *lines, ""]).encode()


def _jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _card(*lines: str) -> dict[str, bytes]:
    return {"README.md": "\n".join(["---", "license: mit", *lines, "---", "# Rows", ""]).encode()}


LABELS = (
    "  features:",
    "  - {name: text, dtype: string}",
    "  - {name: label, dtype: {class_label: {names: {'0': bad, '1': good}}}}",
)
TRAIN, TEST = _csv(ROWS), _csv(ROWS[:1])
# The layout, the config asked for, and its files.
LAYOUTS: dict[str, tuple[dict[str, bytes], str, set[str]]] = {
    "no card, splits by name": ({"train.csv": TRAIN, "test.csv": TEST}, "default", {"train.csv", "test.csv"}),
    "no configs, in data": (
        {**_card(), "data/train-00000-of-00001.csv": TRAIN, "data/test-00000-of-00001.csv": TEST, "notes.txt": b"x"},
        "default",
        {"data/train-00000-of-00001.csv", "data/test-00000-of-00001.csv"},
    ),
    "no configs, splits as folders": (
        {**_card(), "train/one.jsonl": _jsonl(ROWS[:1]), "train/two.jsonl": _jsonl(ROWS[1:]),
         "test/one.jsonl": _jsonl(ROWS[:1])},
        "default",
        {"train/one.jsonl", "train/two.jsonl", "test/one.jsonl"},
    ),
    "folders of configs": (
        {**_card("configs:", "- {config_name: a, data_dir: first}", "- {config_name: b, data_dir: second}"),
         "first/train.csv": _csv(OTHER), "second/train.csv": TRAIN, "second/test.csv": TEST},
        "b",
        {"second/train.csv", "second/test.csv"},
    ),
    "files in folders of configs": (
        {**_card("configs:", "- {config_name: a, data_files: [{split: train, path: a.csv}]}",
                 "- {config_name: b, data_dir: in/second, data_files: [{split: train, path: t*.csv}]}"),
         "a.csv": _csv(OTHER), "in/second/train.csv": TRAIN, "in/second/other.csv": TEST, "train.csv": _csv(OTHER)},
        "b",
        {"in/second/train.csv"},
    ),
    "the default of several": (
        {**_card("configs:", "- {config_name: a, data_files: a.csv}",
                 "- {config_name: b, data_files: b.csv, default: true}"),
         "a.csv": _csv(OTHER), "b.csv": TRAIN},
        "default",
        {"b.csv"},
    ),
    "one config of another name": (
        {**_card("configs:", "- {config_name: plain_text, data_files: rows.csv}"), "rows.csv": TRAIN},
        "default",
        {"rows.csv"},
    ),
    "settings of a config, and features": (
        {**_card("configs:", "- {config_name: a, data_files: a.csv}", "- {config_name: b, data_files: b.csv, sep: ;}",
                 "dataset_info:", "- config_name: a", "  features: [{name: text, dtype: string}]",
                 "- config_name: b", *LABELS),
         "a.csv": _csv(OTHER), "b.csv": _csv(ROWS, ";")},
        "b",
        {"b.csv"},
    ),
    "packed files": (
        {**_card("configs:", "- {config_name: default, data_files: [{split: train, path: data/*}]}"),
         "data/rows.jsonl.gz": gzip.compress(_jsonl(ROWS), mtime=0)},
        "default",
        {"data/rows.jsonl.gz"},
    ),
    "what old repositories say": (
        {"dataset_infos.json": json.dumps({"default": {"features": {
            "text": {"dtype": "string", "_type": "Value"},
            "label": {"names": ["bad", "good"], "_type": "ClassLabel"},
        }}}).encode(), "train.csv": TRAIN},
        "default",
        {"train.csv"},
    ),
}  # fmt: skip
# `datasets` takes the format of a card's first config for that of all.
MIXED = {
    **_card("configs:", "- {config_name: a, data_files: a.jsonl}", "- {config_name: b, data_files: b.csv}"),
    "a.jsonl": _jsonl(OTHER),
    "b.csv": TRAIN,
}


def _read(asked: dict[str, str], stream: int | None) -> dict[str, Any]:
    """The rows and class names of the training split of each pin and config."""
    from retrace.hub.datasets import open_split
    from retrace.hub.settings import HubDataset

    found = {}
    for pin, config in asked.items():
        split = open_split(HubDataset(repository=pin, config=config, stream=stream), "train", "hub.text")
        found[pin] = [[row for _, row in split.records], {name: list(of) for name, of in split.classes.items()}]
    return found


def _read_otherwise(asked: dict[str, str]) -> list[dict[str, Any]]:
    """The rows of the training split as `datasets` alone gives them, and as a stream."""
    from datasets import load_dataset

    plain = {}
    for pin, config in asked.items():
        name, commit = pin.split("@")
        rows = load_dataset(name, None if config == "default" else config, revision=commit, split="train")
        plain[pin] = rows.to_list()
    return [plain, {pin: rows for pin, (rows, _) in _read(asked, 10).items()}]


def test_layouts_are_read_as_datasets_reads_them(hub: LocalHub, tmp_path: Path) -> None:
    pins = {
        f"org/layout-{number}@{hub.add('dataset', f'org/layout-{number}', files)}": name
        for number, (name, (files, _, _)) in enumerate(LAYOUTS.items())
    }
    asked, home = {pin: LAYOUTS[name][1] for pin, name in pins.items()}, tmp_path / "home"
    mixed = f"org/mixed@{hub.add('dataset', 'org/mixed', MIXED)}"
    found = run_client(hub, home, _read, {**asked, mixed: "b"}, None)
    assert found.pop(mixed)[0] == ROWS
    fetched = [seen.path for seen in hub.requests if "/resolve/" in seen.path]
    for pin, name in pins.items():
        assert found[pin][0] == ROWS, name
        repository, commit = pin.split("@")
        start = f"/datasets/{repository}/resolve/{commit}/"
        files = {path.removeprefix(start) for path in fetched if path.startswith(start)}
        assert files - {"README.md", "dataset_infos.json"} == LAYOUTS[name][2], name
    named = {name for pin, name in pins.items() if found[pin][1] == {"label": ["bad", "good"]}}
    assert named == {"settings of a config, and features", "what old repositories say"}
    same = dict.fromkeys(pins, ROWS)
    assert run_client(hub, tmp_path / "another-home", _read_otherwise, asked) == [same, same]

    shutil.rmtree(home / "retrace")
    asked_before = len(hub.requests)
    assert run_client(hub, home, _read, asked, None, variables={"HF_HUB_OFFLINE": "1"}) == found
    assert len(hub.requests) == asked_before


def test_wrong_bytes_of_equal_files_are_fetched_anew(hub: LocalHub, tmp_path: Path) -> None:
    """The client keeps equal files once, so that the second has nothing left to remove."""
    pin = f"org/twins@{hub.add('dataset', 'org/twins', {'train.csv': TRAIN, 'test.csv': TRAIN})}"
    hub.fail(r"\.csv", 1, WrongBytes())
    with pytest.raises(AssertionError, match="it was removed, run again to fetch it anew"):
        run_client(hub, tmp_path / "home", _read, {pin: "default"}, None)
    assert run_client(hub, tmp_path / "home", _read, {pin: "default"}, None)[pin][0] == ROWS
