import errno
import math
import os
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from retrace.core import files
from retrace.core.errors import InputError
from retrace.core.files import (
    STEADY_DIGITS,
    atomic_file,
    atomic_folder,
    file_digests,
    numbered_lines,
    parse_json,
    read_json,
    read_object,
    require_file,
    rounded,
    size,
    write_json,
    write_text,
)


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


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), SafetensorError("No space left (os error 28)")])
@pytest.mark.parametrize("atomic", [atomic_file, atomic_folder])
def test_a_full_disk_is_reported_whichever_library_writes(tmp_path: Path, atomic: Any, error: Exception) -> None:
    said = r"No space left on device; 0 KiB of it was written and .+ is free: '.+/out'"
    with pytest.raises(OSError, match=said), atomic(tmp_path / "out"):
        raise error
    assert _names(tmp_path) == []


def test_a_disk_that_fills_up_during_a_copy_is_reported_alike(tmp_path: Path, monkeypatch) -> None:
    """For a file, shutil names the source too; its error for a folder has no number, and names no file."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    source = tmp_path / "source"
    write_text(source / "x", "x")
    monkeypatch.setattr(os, "sendfile", full)
    said = r"No space left on device; 0 KiB of it was written and .+ is free: '.+/out'$"
    copies: list[Callable[[Path], object]] = [lambda to: shutil.copyfile(source / "x", to / "x")]
    copies.append(lambda to: shutil.copytree(source, to, dirs_exist_ok=True))
    for copy in copies:
        with pytest.raises(OSError, match=said), atomic_folder(tmp_path / "out") as folder:
            copy(folder)
        assert _names(tmp_path) == ["source"]


def test_system_errors_name_the_target_file(tmp_path: Path) -> None:
    (tmp_path / "out/in").mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match=r"Is a directory: '[^']+/out'$"):
        write_text(tmp_path / "out", "a folder is there")
    with pytest.raises(PermissionError, match=r"Permission denied: '.+/a'$"), atomic_folder(tmp_path / "a"):
        raise SafetensorError("I/O error: Permission denied (os error 13)")
    with pytest.raises(FileNotFoundError, match=r"'elsewhere'$"), atomic_folder(tmp_path / "a"):
        Path("elsewhere").read_text()
    assert _names(tmp_path) == ["out"]


def test_what_a_user_has_to_mend_is_not_blamed_on_the_target(tmp_path: Path) -> None:
    said = "model/tokenizer.json: not a tokenizer: Permission denied (os error 13)"
    with pytest.raises(InputError, match=re.escape(said)), atomic_file(tmp_path / "out"):
        raise InputError(said)


def test_a_folder_replaces_the_old_one_once_it_is_complete(tmp_path: Path) -> None:
    (tmp_path / ".out.partial/stale").mkdir(parents=True)  # of a writer that was killed
    for name in ("a", "b"):
        with atomic_folder(tmp_path / "out") as folder:
            (folder / name).mkdir()
            (folder / name / "x").write_text(name)
    with pytest.raises(KeyError):
        _fail_in(atomic_folder(tmp_path / "out"), lambda folder: (folder / "c").write_text("half"))
    assert [p.relative_to(tmp_path).as_posix() for p in sorted(tmp_path.rglob("*"))] == ["out", "out/b", "out/b/x"]


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    """Such as models/ on a larger disk."""
    (tmp_path / "large").mkdir()
    (tmp_path / "large/old").touch()
    link, file = tmp_path / "models", tmp_path / "link.yaml"
    link.symlink_to("large")
    file.symlink_to("params.yaml")
    for name in ("a", "b"):
        with atomic_folder(link) as aside:
            (aside / name).touch()
        write_text(file, name)
    assert _names(tmp_path) == ["large", "link.yaml", "models", "params.yaml"]
    assert (_names(tmp_path / "large"), (tmp_path / "params.yaml").read_text()) == (["b"], "b")
    assert link.is_symlink()
    assert file.is_symlink()


def test_a_link_into_dvcs_cache_is_replaced_and_what_is_there_stays(tmp_path: Path) -> None:
    """`cache.type symlink` makes such links; the cached file has the content of other commits too."""
    cached, out = tmp_path / "files/md5/5d/41402abc4b2a76b9719d911017c592", tmp_path / "report.html"
    cached.parent.mkdir(parents=True)
    cached.write_text("hello")
    out.symlink_to(cached)
    write_text(out, "new")
    assert (out.is_symlink(), out.read_text(), cached.read_text()) == (False, "new", "hello")


def test_a_writer_interrupted_while_it_replaces_a_folder_keeps_the_old_one(tmp_path: Path, monkeypatch) -> None:
    with atomic_folder(tmp_path / "out", summed=True) as folder:
        (folder / "x").write_text("old")
    replace = Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        if path.name == ".out.partial":
            assert not target.exists(), "moved as a whole"
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "out") as folder:
        (folder / "x").write_text("new")
    assert _names(tmp_path) == ["out"]
    assert (tmp_path / "out/x").read_text() == "old"


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch) -> None:
    """And its name before the writer goes on: a power failure leaves what there was or all that is new."""
    there: list[list[str]] = []  # when something was flushed
    monkeypatch.setattr(os, "fsync", lambda fd: there.append(_names(tmp_path)))
    write_text(tmp_path / "a", "x")
    assert there == [[".a.partial"], ["a"]]
    there.clear()
    with atomic_folder(tmp_path / "b") as folder:
        (folder / "x").touch()
    assert there == [[".b.partial", "a"]] * 2 + [["a", "b"]]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path, monkeypatch) -> None:
    read: list[Path] = []
    monkeypatch.setattr(files, "file_digest", lambda path: read.append(path) or "0")
    (tmp_path / "a").touch()
    assert file_digests([tmp_path, tmp_path, tmp_path / "a"]) == {str(tmp_path / "a"): "0"}
    assert len(read) == 1


def test_json_is_written_for_people_to_read_and_has_no_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert _names(tmp_path) == []
    write_json(tmp_path / "a.json", {"where": "Łódź", "at": [1]})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "where": "Łódź",\n  "at": [\n    1\n  ]\n}\n'


def test_floats_are_rounded_and_nothing_else(tmp_path: Path) -> None:
    figures = {"f1": 27.140777191558442, "few": 1.5e-9, "count": 12345678, "note": "1.23456789", "ok": True}
    write_json(tmp_path / "a.json", rounded({"sst2": [figures], "ends": (1.23456789, 1), "none": None}))
    assert read_json(tmp_path / "a.json") == {"sst2": [figures | {"f1": 27.1408}], "ends": [1.23457, 1], "none": None}
    assert rounded(figures, STEADY_DIGITS)["f1"] == 27.1407771916


def test_digits_that_differ_between_processors_do_not_change_what_is_written() -> None:
    borders = [count / 128 for count in range(1, 128)]  # some, as 0.1015625, lie between two figures of six digits
    raw = {"any": [math.exp(number / 7) for number in range(-99, 99)], "borders": borders}
    pages = [rounded({name: [x * (1 + by) for x in of] for name, of in raw.items()}) for by in (-1e-15, 0.0, 1e-15)]
    assert pages[0] == pages[1] == pages[2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ": the file is empty"),
        (b"[1]", ": expected a json object, found list"),
        (b'{"a": 1,\n "b": }', ":2:7: not json: Expecting value"),
        (b'{"a": 1, "b": 2, "b": 3}', ":1: not json: the key 'b' occurs twice in an object"),
        (b"[" * 100_000, ":1: not json: maximum recursion depth"),
        (b"1" * 4301, ":1: not json: Exceeds the limit"),
        (b'{"a": NaN}', ":1: not json: NaN is not a number"),
        (b'{"a": 1e999}', ":1: not json: 1e999 is not a number"),
        (b'{"a": -1e999}', ":1: not json: -1e999 is not a number"),
        (b'{"a":\n "\\uDC00"}', ":2: '\\udc00' is an unpaired surrogate; save the file as UTF-8"),
        (
            b'{"a": "\\\\ud83d\\ud83d\\ude42",\n "b": "\\ude42"}',
            ":2: '\\ude42' is an unpaired surrogate; save the file as UTF-8",
        ),
        (b'{"a":\n\xc3\xa9\xe9', ":2:2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        (b'\xef\xbb\xbf["\xe9', ":1:3: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        (b'{"a":\n b\0', ":2:3: a NUL; save the file as UTF-8"),
    ],
)
def test_invalid_json_objects_are_refused_with_their_place(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}{said}')}"):
        read_object(path)


def test_lines_count_from_where_the_json_starts() -> None:
    for start in (1, 7):
        with pytest.raises(InputError, match=rf"^rows\.jsonl:{start + 1}:1: not json"):
            parse_json("[\n", Path("rows.jsonl"), start)
    with pytest.raises(InputError, match=r"^rows\.jsonl:1:2: not json"):
        parse_json("[", Path("rows.jsonl"))
    assert parse_json('["\\ud83d\\ude42", 1e308, -0.0]', Path("rows.jsonl")) == ["🙂", 1e308, 0.0]


def test_lines_are_numbered_without_line_breaks_and_the_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa\r\n\xef\xbb\xbfb \n\nc")
    assert list(numbered_lines(tmp_path / "a")) == [(1, "a"), (2, "\ufeffb "), (3, ""), (4, "c")]
    with pytest.raises(InputError, match=r"b: no such file$"):
        list(numbered_lines(tmp_path / "b"))


def test_a_path_that_is_no_file_is_said_to_be_what_it_is(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path, "it is a folder; expected a file"),
        (Path("/dev/null"), "it is not a regular file"),
        (tmp_path / "none", "no such file"),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {said}')}$"):
            require_file(path)


def test_sizes_are_in_binary_units() -> None:
    counts = (0, 1536, 2**20 - 2**10, 2**20, 2**30 - 2**20, 2**30, 3 * 2**29)
    shown = ["0 KiB", "2 KiB", "1023 KiB", "1 MiB", "1023 MiB", "1.0 GiB", "1.5 GiB"]
    assert [size(count) for count in counts] == shown


def test_a_writer_killed_as_it_removed_the_former_folder_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    for name in ("out", ".out.former.partial"):
        write_text(tmp_path / name / "x", "old")
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "y").write_text("new")
    assert (_names(tmp_path), _names(tmp_path / "out")) == (["out"], ["y"])


def test_a_link_under_the_temporary_name_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / ".a.partial").symlink_to("other")
    write_text(tmp_path / "a", "new")
    assert _names(tmp_path) == ["a", "other"]
    assert ((tmp_path / "other").read_text(), (tmp_path / "a").read_text()) == ("kept", "new")
