import hashlib
from pathlib import Path

import pytest

from retrace.core.errors import InputError
from retrace.hub.checkpoint import PinnedFolder, folder_digest, read_initial_checkpoint
from retrace.hub.repository import Pin

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _origin(value: object) -> Pin | PinnedFolder | None:
    return read_initial_checkpoint({"family": "bert", "model": {"from": value}}).origin


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = Path("weights")
    (folder / "more").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "more" / "a").write_text("b")
    return folder


def test_null_is_random_weights() -> None:
    assert _origin(None) is None


def test_a_commit_of_the_hub() -> None:
    assert _origin(f"org/name@{COMMIT}") == Pin("org/name", COMMIT)


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


def test_a_folder_with_its_digest(folder: Path) -> None:
    digest = folder_digest(folder)
    assert _origin(f"weights@{digest}") == PinnedFolder(folder, digest)
    folder.rename("weights@home")
    assert str(_origin(f"weights@home@{digest}")) == f"weights@home@{digest}"


@pytest.mark.parametrize("value", ["weights", "weights@0123456789ab", f"weights@{COMMIT[:39]}", "weights@"])
def test_another_digest_is_an_error_that_says_what_to_write(folder: Path, value: str) -> None:
    with pytest.raises(InputError) as caught:
        _origin(value)
    assert str(caught.value) == (
        f"params.yaml: model.from: {value!r} is not the folder as it is now; that is weights@{folder_digest(folder)}"
    )


@pytest.mark.parametrize("value", ["org/name", "org/name@main", f"org/name@{COMMIT[:12]}", "nowhere@0123456789ab", ""])
def test_neither_a_commit_nor_a_folder(folder: Path, value: str) -> None:
    with pytest.raises(InputError, match=r"is not allowed; expected org/name@commit, all 40 digits of it, or folder@"):
        _origin(value)


def test_other_keys_and_types() -> None:
    with pytest.raises(InputError, match=r"model.form: unknown key; allowed: from"):
        read_initial_checkpoint({"family": "bert", "model": {"form": None}})
    with pytest.raises(InputError, match=r"model.from is missing"):
        read_initial_checkpoint({"family": "bert", "model": {}})
    with pytest.raises(InputError, match=r"model.from: 3 is not allowed"):
        _origin(3)


def test_a_named_model_says_its_family_and_may_be_drawn_anew(tmp_path: Path) -> None:
    commit = "0" * 40
    params = {"models": {"tiny": {"family": "llama", "from": f"org/name@{commit}", "random": 3}}}
    start = read_initial_checkpoint(params, "tiny")
    assert (str(start.origin), start.family, start.seed) == (f"org/name@{commit}", "llama", 3)


def test_a_named_model_is_from_somewhere() -> None:
    with pytest.raises(InputError, match=r"^params.yaml: models.tiny.from: nothing is named; expected org/name@commit"):
        read_initial_checkpoint({"models": {"tiny": {"family": "llama", "from": None}}}, "tiny")
    with pytest.raises(InputError, match=r"^params.yaml: model.from: nothing is named"):
        read_initial_checkpoint({"family": "bert", "model": {"from": None, "random": 1}})
