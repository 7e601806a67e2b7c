from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from stages.harness.records import read_json, write_json, write_text, written_file, written_folder


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _fail_in(writing: AbstractContextManager[Path], write: Callable[[Path], object]) -> None:
    with writing as aside:
        write(aside)
        raise KeyError


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(KeyError):
        _fail_in(written_file(path), lambda aside: aside.write_text("half"))
    assert path.read_text() == "old"
    assert _names(tmp_path) == ["a.txt"]


def test_a_failed_folder_leaves_the_old_one_whole(tmp_path: Path) -> None:
    with written_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("1")
    with pytest.raises(KeyError):
        _fail_in(written_folder(tmp_path / "out"), lambda folder: (folder / "b").write_text("2"))
    assert _names(tmp_path) == ["out"]
    assert _names(tmp_path / "out") == ["a"]


def test_a_folder_replaces_the_one_before(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with written_folder(tmp_path / "out") as folder:
            (folder / name).mkdir()
            (folder / name / "x").write_text(name)
    assert [p.relative_to(tmp_path).as_posix() for p in sorted(tmp_path.rglob("*"))] == ["out", "out/b", "out/b/x"]


def test_what_a_killed_writer_left_aside_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".out.partial").mkdir()
    (tmp_path / ".out.partial" / "stale").write_text("x")
    with written_folder(tmp_path / "out") as folder:
        assert _names(folder) == []


def test_json_refuses_not_a_number(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert _names(tmp_path) == []


def test_json_round_trip(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": "é"})
    assert read_json(tmp_path / "a.json") == {"b": 1, "a": "é"}
