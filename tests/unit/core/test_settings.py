"""How settings are read, and what is said of those that are wrong."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

import pytest
from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.settings import Params, Section, build, parse_yaml, read_params, require, section


class Inner(Section):
    rate: float = Field(default=0.5, gt=0)
    last: float = 1.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        require(self.rate <= self.last, "last", self.last, f"expected at least rate ({self.rate})")
        return self


class Outer(Section):
    size: int = Field(ge=1, le=9)
    kind: Literal["a", "b"] = "a"
    folder: str | None = None
    names: tuple[str, ...] = ()
    columns: str | tuple[str, ...] = "text"
    some: Annotated[tuple[str, ...], Field(min_length=1)] = ("x",)
    share: float | None = Field(default=None, gt=0, lt=1)
    inner: Inner = Inner()
    entries: dict[str, Inner] | None = None


class Read(Params):
    lr: float
    size: int = Field(alias="outer.size")
    task: Inner = Field(alias="${item.task}")
    seed: int = Field(alias="data/params.yaml:sample.seed")
    chosen: dict = Field(alias="data/params.yaml:${data}")
    everything: dict = Field(alias="params.yaml:")

    @model_validator(mode="after")
    def _small(self) -> Self:
        require(self.lr <= self.size, "lr", self.lr, f"expected at most outer.size ({self.size})")
        return self


READ = {"data": "files", "lr": 1, "outer": {"size": 3}, "sst2": {"rate": 1}, "sample": {"seed": 7}, "files": {"a": 1}}


def test_builds_nested_settings_with_defaults() -> None:
    built = build(Outer, {"x": {"size": 3, "inner": {"rate": 1}, "names": ["p", "q"], "columns": ["a"]}}, "x")
    assert built == Outer(size=3, inner=Inner(rate=1.0), names=("p", "q"), columns=("a",))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 1, "sise": 2}, "sise: unknown key; allowed: size, kind, folder, names, columns, some, share, inner"),
        ({}, "size is missing"),
        ({"size": "1"}, "size: '1' is not allowed; expected a whole number from 1 to 9"),
        ({"size": True}, "size: true is not allowed; expected a whole number from 1 to 9"),
        ({"size": 0}, "size: 0 is not allowed; expected a whole number from 1 to 9"),
        ({"size": "1" * 10_000}, f"size: '{'1' * 199}… is not allowed; expected a whole number from 1 to 9"),
        ({"size": 1, "kind": "c"}, "kind: 'c' is not allowed; expected one of a, b"),
        ({"size": 1, "folder": 3}, "folder: 3 is not allowed; expected a string or null"),
        ({"size": 1, "names": ["a", 1]}, "names[1]: 1 is not allowed; expected a string"),
        ({"size": 1, "columns": 3}, "columns: 3 is not allowed; expected a string or a list of names"),
        ({"size": 1, "some": []}, "some: [] is not allowed; expected a list of 1 or more names"),
        ({"size": 1, "share": 1}, "share: 1 is not allowed; expected a number between 0 and 1 or null"),
        ({"size": 1, "share": float("nan")}, "share: nan is not allowed; expected a number between 0 and 1 or null"),
        ({"size": 1, "inner": {"rate": 0}}, "inner.rate: 0 is not allowed; expected a number above 0"),
        ({"size": 1, "inner": {"rate": 2}}, "inner.last: 1.0 is not allowed; expected at least rate (2.0)"),
        ({"size": 1, "inner": 4}, "inner: 4 is not allowed; expected a mapping"),
        ({"size": 1, "entries": {"a": {"rat": 1}}}, "entries.a.rat: unknown key; allowed: rate, last"),
    ],
)
def test_names_key_value_and_what_is_allowed(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=rf"\Aparams\.yaml: x\.{re.escape(message)}.*\Z"):
        build(Outer, {"x": values}, "x")


def test_a_stage_reads_its_keys_from_both_files() -> None:
    read = Read.read(READ, task="sst2")
    assert (read.lr, read.size, read.task.rate, read.seed, read.chosen) == (1.0, 3, 1.0, 7, {"a": 1})
    assert set(read.everything) == {"data", "lr", "outer", "sst2"}
    assert read.settings.keys() == {"lr", "outer.size", "sst2", "sample.seed", "files", "params.yaml"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr": 4}, "params.yaml: lr: 4.0 is not allowed; expected at most outer.size (3)"),
        ({"lr": "4"}, "params.yaml: lr: '4' is not allowed; expected a number"),
        ({"sst2": {"rat": 1}}, "params.yaml: sst2.rat: unknown key; allowed: rate, last"),
        ({"sample": {"seed": None}}, "data/params.yaml: sample.seed: null is not allowed; expected a whole number"),
        ({"sample": {}}, "data/params.yaml: sample.seed is missing; sample has: "),
    ],
)
def test_errors_name_key_and_file(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=rf"\A{re.escape(message)}\Z"):
        Read.read(READ | changes, task="sst2")


def test_reads_numbers_as_dvc_does(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("lr: 5e-4\n")
    assert build(float, read_params(tmp_path), "lr") == 0.0005


@pytest.mark.parametrize(
    ("value", "said"),
    [*((of, "") for of in ("!!int ''", "&a [*a]", "0x" + 6000 * "f", "1" + 30 * "0")),
     ("!!bool abc", "1:7: not a date, a number or a boolean: 'abc'"),
     ("2024-13-45", r"1:7: not a date, a number or a boolean: month must be in 1\.\.12")],
)  # fmt: skip
def test_values_that_no_setting_can_have_are_one_line(tmp_path: Path, value: str, said: str) -> None:
    (tmp_path / "params.yaml").write_text(f"seed: {value}\n")
    with pytest.raises(InputError, match=rf"^[^\n]*params\.yaml:{said}[^\n]*$"):
        read_params(tmp_path)


def test_missing_section_says_what_there_is() -> None:
    with pytest.raises(InputError, match=r"methods\.big\.rank is missing; methods has: small"):
        section({"methods": {"small": 1}}, "methods.big.rank")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr: 1\nsst2: {lr: 1\n", "3:1: expected ',' or '}', but got '<stream end>'"),
        ("lr: 1\nseed: \x07", "2:7: the character '\\x07' is not allowed in YAML"),
        ("lr: 1\nsst2: {2024-01-01: 1}\n", " the key datetime.date(2024, 1, 1) is not allowed; expected text"),
        ("# nothing\n", " expected keys and values, found nothing"),
    ],
)
def test_what_is_no_yaml_is_named_by_its_line_and_column(text: str, said: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(f'params.yaml:{said}')}"):
        parse_yaml(text, Path("params.yaml"))
