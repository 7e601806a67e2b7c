"""Repositories of data sets as people lay them out, read whole and as streams."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from retrace.core.files import write_text
from tests.hub import READ_TOKEN, LocalHub, WrongBytes
from tests.hub.client import run_client

ROWS = [{"text": "a b", "label": 1}, {"text": "c, d", "label": 0}]


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
TRAIN, TEST, OTHER = _csv(ROWS), _csv(ROWS[:1]), _csv([{"text": "of no config asked for", "label": 0}])
# The layout, the config asked for, and its files, which are all but the cards and OTHER.
LAYOUTS: dict[str, tuple[str, dict[str, bytes]]] = {
    "no card, splits by name": ("default", {"train.csv": TRAIN, "test.csv": TEST}),
    "no configs, in data": ("default", {
        **_card(), "data/train-00000-of-00001.csv": TRAIN, "data/test-00000-of-00001.csv": TEST, "notes.txt": OTHER,
    }),
    "no configs, splits as folders": ("default", {
        **_card(), "train/one.jsonl": _jsonl(ROWS[:1]), "train/two.jsonl": _jsonl(ROWS[1:]),
        "test/one.jsonl": _jsonl(ROWS[:1]),
    }),
    "folders of configs": ("b", {
        **_card("configs:", "- {config_name: a, data_dir: first}", "- {config_name: b, data_dir: second}"),
        "first/train.csv": OTHER, "second/train.csv": TRAIN, "second/test.csv": TEST,
    }),
    "files in folders of configs": ("b", {
        **_card("configs:", "- {config_name: a, data_files: [{split: train, path: a.csv}]}",
                "- {config_name: b, data_dir: in/second, data_files: [{split: train, path: t*.csv}]}"),
        "a.csv": OTHER, "in/second/train.csv": TRAIN, "in/second/other.csv": OTHER, "train.csv": OTHER,
    }),
    "the default of several": ("default", {
        **_card("configs:", "- {config_name: a, data_files: a.csv}",
                "- {config_name: b, data_files: b.csv, default: true}"),
        "a.csv": OTHER, "b.csv": TRAIN,
    }),
    "one config of another name": ("default", {
        **_card("configs:", "- {config_name: plain_text, data_files: rows.csv}"), "rows.csv": TRAIN,
    }),
    "settings of a config, and features": ("b", {
        **_card("configs:", "- {config_name: a, data_files: a.csv}", "- {config_name: b, data_files: b.csv, sep: ;}",
                "dataset_info:", "- config_name: a", "  features: [{name: text, dtype: string}]",
                "- config_name: b", *LABELS),
        "a.csv": OTHER, "b.csv": _csv(ROWS, ";"),
    }),
    "packed files": ("default", {
        **_card("configs:", "- {config_name: default, data_files: [{split: train, path: data/*}]}"),
        "data/rows.jsonl.gz": gzip.compress(_jsonl(ROWS), mtime=0),
    }),
    "what old repositories say": ("default", {
        "dataset_infos.json": json.dumps({"default": {"features": {
            "text": {"dtype": "string", "_type": "Value"},
            "label": {"names": ["bad", "good"], "_type": "ClassLabel"},
        }}}).encode(), "train.csv": TRAIN,
    }),
}  # fmt: skip
# `datasets` takes the format of a card's first config for that of all.
MIXED = {
    **_card("configs:", "- {config_name: a, data_files: a.jsonl}",
            "- {config_name: b, data_files: b.csv, default: true}"),
    "a.jsonl": _jsonl([{"text": "another config's", "label": 0}]), "b.csv": TRAIN,
}  # fmt: skip


def _read(asked: dict[str, str], stream: int | None) -> dict[str, Any]:
    """The rows and class names of the training split of each pin and config."""
    from retrace.hub.datasets import open_split
    from retrace.hub.settings import HubDataset

    found = {}
    for pin, config in asked.items():
        split = open_split(HubDataset(repository=pin, config=config, stream=stream), "train", "hub.text")
        found[pin] = [[row for _, row in split.records], {name: list(of) for name, of in split.classes.items()}]
    return found


def test_layouts_are_read_whole_and_as_streams(hub: LocalHub, tmp_path: Path) -> None:
    pins = {}
    for number, (name, (_, files)) in enumerate(LAYOUTS.items()):
        pins[f"org/layout-{number}@{hub.add('dataset', f'org/layout-{number}', files)}"] = name
    asked, home = {pin: LAYOUTS[name][0] for pin, name in pins.items()}, tmp_path / "home"
    mixed = {
        f"org/mixed-{config}@{hub.add('dataset', f'org/mixed-{config}', MIXED)}": config for config in ("b", "default")
    }
    found = run_client(hub, home, _read, {**asked, **mixed}, None)
    assert [found.pop(pin)[0] for pin in mixed] == [ROWS, ROWS]
    fetched = [seen.path for seen in hub.requests if "/resolve/" in seen.path]
    for pin, name in pins.items():
        assert found[pin][0] == ROWS, name
        start = f"/datasets/{pin.replace('@', '/resolve/')}/"
        files = {path.removeprefix(start) for path in fetched if path.startswith(start)}
        wanted = {path for path, content in LAYOUTS[name][1].items() if content != OTHER}
        assert files | {"README.md", "dataset_infos.json"} == wanted | {"README.md", "dataset_infos.json"}, name
    named = {name for pin, name in pins.items() if found[pin][1] == {"label": ["bad", "good"]}}
    assert named == {"settings of a config, and features", "what old repositories say"}
    streamed = run_client(hub, tmp_path / "another-home", _read, asked, 10)
    assert {pin: rows for pin, (rows, _) in streamed.items()} == dict.fromkeys(pins, ROWS)

    shutil.rmtree(home / "retrace")
    requests = len(hub.requests)
    assert run_client(hub, home, _read, asked, None, variables={"HF_HUB_OFFLINE": "1"}) == found
    assert len(hub.requests) == requests


def test_wrong_bytes_of_equal_files_are_fetched_anew(hub: LocalHub, tmp_path: Path) -> None:
    """The client keeps equal files once, so that the second has nothing left to remove."""
    pin = f"org/twins@{hub.add('dataset', 'org/twins', {'train.csv': TRAIN, 'test.csv': TRAIN})}"
    hub.fail(r"\.csv", 1, WrongBytes())
    with pytest.raises(AssertionError, match="it was removed; run again to fetch it anew"):
        run_client(hub, tmp_path / "home", _read, {pin: "default"}, None)
    assert run_client(hub, tmp_path / "home", _read, {pin: "default"}, None)[pin][0] == ROWS


def _mistakes(pins: list[str], stream: int | None) -> list[str]:
    """The message about the training split of each pin."""
    from retrace.core.errors import InputError

    said = []
    for pin in pins:
        try:
            _read({pin: "default"}, stream)
        except InputError as error:
            said.append(str(error))
    return said


def test_a_stream_that_cannot_be_read_is_one_line(hub: LocalHub, tmp_path: Path) -> None:
    files = {
        "script": {"script.py": b"", "train.csv": TRAIN},
        "json": {"train.jsonl": _jsonl(ROWS) + b'{"text": "a",\n'},
        "csv": {"train.csv": TRAIN + b"a,1,2,3\n"},
    }
    pins = [f"org/{name}@{hub.add('dataset', f'org/{name}', of)}" for name, of in files.items()]
    expected = ("scripts are no longer supported", "JSON parse error", "Expected 2 fields in line 4, saw 4")
    for pin, said, line in zip(pins, expected, run_client(hub, tmp_path / "home", _mistakes, pins, 10), strict=True):
        assert line.startswith(f"data/params.yaml: hub.text: {pin}: ")
        assert (said in line, "\n" in line) == (True, False)


@pytest.mark.parametrize("stream", [None, 10])
def test_a_card_cannot_name_data_elsewhere(hub: LocalHub, tmp_path: Path, stream: int | None) -> None:
    """Neither a file of this machine nor, in a stream, one of whatever commit a branch leads to."""
    (tmp_path / "own.csv").write_bytes(TRAIN)
    named = f"{'../' * 40}{(tmp_path / 'own.csv').relative_to('/')}"
    if stream:
        named = "hf://datasets/org/away@main/train.csv"
    card = _card("configs:", f"- {{config_name: default, data_files: {named}}}")
    pin = f"org/away@{hub.add('dataset', 'org/away', {**card, 'train.csv': TRAIN})}"
    said = f"data/params.yaml: hub.text: {pin}: its card names {named!r}, which this commit does not have"
    assert run_client(hub, tmp_path / "home", _mistakes, [pin], stream) == [said]


def test_an_address_that_a_card_names_is_not_asked(hub: LocalHub, tmp_path: Path) -> None:
    """`datasets` would ask any address, and the hub with the token that is stored on this machine."""
    write_text(tmp_path / "home/token", READ_TOKEN)
    hub.add("dataset", "org/other", {"train.csv": TRAIN})
    named = ["hf://datasets/org/other@main/train.csv", *(f"{hub.storage}/{number}.csv" for number in range(3))]
    configs: list[dict[str, Any]] = [
        {"data_files": named[0]}, {"data_files": [{"split": "train", "path": ["train.csv", named[1]]}]},
        {"data_files": [named[2]]}, {"data_dir": f"::{named[3]}", "data_files": "train.csv"},
    ]  # fmt: skip
    pins = []
    for number, config in enumerate(configs):
        told = json.dumps([{"config_name": "default", **config}])
        files = {".huggingface.yaml": f"configs: {told}\n".encode()} if number == 2 else _card(f"configs: {told}")
        pins.append(f"org/{number}@{hub.add('dataset', f'org/{number}', {**files, 'train.csv': TRAIN})}")
    found = run_client(hub, tmp_path / "home", _mistakes, pins, None)
    for pin, path, said in zip(pins, [*named[:3], f"::{named[3]}"], found, strict=True):
        assert said == f"data/params.yaml: hub.text: {pin}: its card names {path!r}, which this commit does not have"
    assert not any(seen.token or "org/other" in seen.path for seen in hub.requests)


def _read_with_little_room(asked: dict[str, str], most: int) -> None:
    """Read where no file can be larger than so many bytes."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    _read(asked, None)


def test_where_there_is_no_room_is_said(hub: LocalHub, tmp_path: Path) -> None:
    pin = f"org/large@{hub.add('dataset', 'org/large', {'train.csv': TRAIN * 8000})}"
    with pytest.raises(AssertionError, match=rf"{pin}: {tmp_path}/home.*: File too large$"):
        run_client(hub, tmp_path / "home", _read_with_little_room, {pin: "default"}, 50_000)
