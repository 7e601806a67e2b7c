import hashlib
from pathlib import Path

import pytest

from retrace.core.errors import InputError
from retrace.hub.pins import Pin, PinnedFolder, folder_digest, read_initial_checkpoint

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _origin(value: object) -> Pin | PinnedFolder | None:
    return read_initial_checkpoint({"family": "bert", "model": {"checkpoint": value, "random_seed": None}}).origin


@pytest.fixture
def folder(here: Path) -> Path:
    folder = Path("weights")
    (folder / "more").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "more" / "a").write_text("b")
    return folder


def test_the_digest_is_of_names_and_bytes(folder: Path) -> None:
    sums = [hashlib.sha256(content).hexdigest() for content in (b"{}", b"b")]
    lines = f"config.json {sums[0]}\nmore/a {sums[1]}\n"
    digest = folder_digest(folder)
    assert digest == hashlib.sha256(lines.encode()).hexdigest()[:12]
    (folder / ".cache").mkdir()
    (folder / ".cache" / "note").write_text("hidden")
    assert folder_digest(folder) == digest
    (folder / "more" / "a").rename(folder / "more" / "c")
    assert folder_digest(folder) != digest


def test_random_weights_a_commit_of_the_hub_and_a_folder_with_its_digest(folder: Path) -> None:
    assert _origin(None) is None
    assert _origin(f"org/name@{COMMIT}") == Pin("org/name", COMMIT)
    digest = folder_digest(folder)
    assert _origin(f"weights@{digest}") == PinnedFolder(folder, digest)
    folder.rename("weights@home")
    assert str(_origin(f"weights@home@{digest}")) == f"weights@home@{digest}"


@pytest.mark.parametrize("value", ["weights", "weights@0123456789ab", f"weights@{COMMIT[:39]}", "weights@"])
def test_another_digest_is_an_error_that_says_what_to_write(folder: Path, value: str) -> None:
    said = f"^params.yaml: model.checkpoint: '{value}' does not match the folder, which is now weights@"
    with pytest.raises(InputError, match=f"{said}{folder_digest(folder)}$"):
        _origin(value)


@pytest.mark.parametrize("value", ["org/name", "org/name@main", f"org/name@{COMMIT[:12]}", "nowhere@0123456789ab", ""])
def test_neither_a_commit_nor_a_folder(folder: Path, value: str) -> None:
    with pytest.raises(InputError, match=r"is not allowed; expected org/name@commit, all 40 digits of it, or folder@"):
        _origin(value)


def test_a_further_checkpoint_says_its_family_and_may_be_drawn_anew() -> None:
    entry = {"family": "llama", "checkpoint": f"org/name@{COMMIT}", "random_seed": 3}
    start = read_initial_checkpoint({"checkpoints": {"tiny": entry}}, "tiny")
    assert (str(start.origin), start.family, start.seed) == (f"org/name@{COMMIT}", "llama", 3)
    with pytest.raises(InputError, match=r"^params.yaml: model.random_seed: it needs model.checkpoint"):
        read_initial_checkpoint({"family": "bert", "model": {"checkpoint": None, "random_seed": 1}})
