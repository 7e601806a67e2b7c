from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from retrace.core.errors import InputError
from retrace.core.settings import build, check_value, profile_key, read_params, require, section


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5

    def __post_init__(self) -> None:
        require(self.rate > 0, "rate", self.rate, "expected a number above 0")


@dataclass(frozen=True)
class Outer:
    size: int
    kind: Literal["a", "b"] = "a"
    given: str | None = None
    names: tuple[str, ...] = ()
    inner: Inner = Inner()


def test_builds_nested_settings_with_defaults() -> None:
    built = build(Outer, {"x": {"size": 3, "inner": {"rate": 2}, "names": ["p", "q"]}}, "x")
    assert built == Outer(3, inner=Inner(2.0), names=("p", "q"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 1, "sise": 2}, "params.yaml: x.sise: unknown key; allowed: size, kind, given, names, inner"),
        ({}, "params.yaml: x.size is missing"),
        ({"size": "1"}, "params.yaml: x.size: '1' is not allowed; expected a whole number"),
        ({"size": True}, "params.yaml: x.size: True is not allowed; expected a whole number"),
        ({"size": 1.5}, "params.yaml: x.size: 1.5 is not allowed; expected a whole number"),
        ({"size": 1, "kind": "c"}, "params.yaml: x.kind: 'c' is not allowed; expected one of a, b"),
        ({"size": 1, "given": 3}, "params.yaml: x.given: 3 is not allowed; expected text"),
        ({"size": 1, "names": ["a", 1]}, "params.yaml: x.names[1]: 1 is not allowed; expected text"),
        ({"size": 1, "inner": {"rate": 0}}, "params.yaml: x.inner.rate: 0.0 is not allowed; expected a number above 0"),
        ({"size": 1, "inner": 4}, "params.yaml: x.inner: 4 is not allowed; expected a section of keys and values"),
    ],
)
def test_names_key_value_and_what_is_allowed(values: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        build(Outer, {"x": values}, "x")
    assert str(caught.value) == message


def test_reads_numbers_as_dvc_does(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("lr: 5e-4\n")
    assert check_value(read_params(path), "lr", float) == 0.0005


def test_malformed_yaml_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("lr: 1\nseed: [1\n")
    with pytest.raises(InputError, match=r"params\.yaml:\d"):
        read_params(path)


def test_missing_section_says_what_there_is() -> None:
    with pytest.raises(InputError, match=r"profiles\.big\.model is missing; profiles has: small"):
        section({"profiles": {"small": 1}}, "profiles.big.model")


def test_unknown_profile_is_named() -> None:
    with pytest.raises(InputError, match="profile: 'huge' is not allowed; expected one of small, large"):
        profile_key({"profile": "huge", "profiles": {"small": {}, "large": {}}}, "model")
