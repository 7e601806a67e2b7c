import errno
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from safetensors import SafetensorError

from retrace.core.files import STEADY_DIGITS, atomic_file, atomic_folder, read_json, rounded, write_json, write_text


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
        _fail_in(atomic_file(path), lambda aside: aside.write_text("half"))
    assert path.read_text() == "old"
    assert _names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "full"), SafetensorError("I/O error: No space left on device (os error 28)")],
    ids=["python", "rust"],
)
@pytest.mark.parametrize("atomic", [atomic_file, atomic_folder])
def test_a_full_disk_is_named_whoever_writes(
    tmp_path: Path, atomic: Callable[[Path], AbstractContextManager[Path]], error: Exception
) -> None:
    said = r"No space left on device; 0 KiB of it were written and .+ are free: '.+/out'"
    with pytest.raises(OSError, match=said), atomic(tmp_path / "out"):
        raise error
    assert _names(tmp_path) == []


def test_what_the_system_refuses_is_said_of_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "out/in").mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match=r"'.+/out'$"):
        write_text(tmp_path / "out", "a folder is there")
    with pytest.raises(PermissionError, match=r"Permission denied: '.+/a'$"), atomic_folder(tmp_path / "a"):
        raise SafetensorError("I/O error: Permission denied (os error 13)")
    with pytest.raises(FileNotFoundError, match=r"'elsewhere'$"), atomic_folder(tmp_path / "a"):
        Path("elsewhere").read_text()
    assert _names(tmp_path) == ["out"]


def test_a_failed_folder_leaves_the_old_one_whole(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("1")
    with pytest.raises(KeyError):
        _fail_in(atomic_folder(tmp_path / "out"), lambda folder: (folder / "b").write_text("2"))
    assert _names(tmp_path) == ["out"]
    assert _names(tmp_path / "out") == ["a"]


def test_a_folder_replaces_the_one_before(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with atomic_folder(tmp_path / "out") as folder:
            (folder / name).mkdir()
            (folder / name / "x").write_text(name)
    assert [p.relative_to(tmp_path).as_posix() for p in sorted(tmp_path.rglob("*"))] == ["out", "out/b", "out/b/x"]


def test_what_a_killed_writer_left_aside_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".out.partial").mkdir()
    (tmp_path / ".out.partial" / "stale").write_text("x")
    with atomic_folder(tmp_path / "out") as folder:
        assert _names(folder) == []


def test_json_refuses_not_a_number(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert _names(tmp_path) == []


def test_figures_are_written_with_so_many_digits_and_all_else_as_it_is(tmp_path: Path) -> None:
    figures = {"f1": 27.140777191558442, "few": 1.5e-9, "count": 12345678, "note": "1.23456789", "ok": True}
    write_json(tmp_path / "a.json", rounded({"sst2": [figures], "none": None}))
    assert read_json(tmp_path / "a.json") == {"sst2": [figures | {"f1": 27.1408}], "none": None}
    assert rounded(figures, STEADY_DIGITS)["f1"] == 27.1407771916


def test_the_last_digits_that_processors_disagree_on_leave_the_file_as_it_is(tmp_path: Path) -> None:
    borders = [count / 128 for count in range(1, 128)]  # some, as 0.1015625, lie between two figures of six digits
    raw = {"any": [math.exp(number / 7) for number in range(-99, 99)], "borders": borders}
    pages = []
    for shift in (-1e-15, 0.0, 1e-15):
        write_json(tmp_path / "a.json", rounded({name: [x * (1 + shift) for x in of] for name, of in raw.items()}))
        pages.append((tmp_path / "a.json").read_bytes())
    assert pages[0] == pages[1] == pages[2]
