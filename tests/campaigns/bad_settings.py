"""Malformed params.yaml, data/params.yaml and published.yaml.

What a key allows is what docs/settings.md says: a key with a default may be left out, and a value that is not allowed
is refused in the same words.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache, partial, reduce
from operator import getitem
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from retrace.cli.check import check_settings
from retrace.core.settings import DATA_PARAMS, PARAMS, build_file, file_of, read_yaml
from retrace.study.published import PublishedStudy
from tests.campaigns.bad_files import line_faults
from tests.campaigns.cases import Case, Fault, cases_of
from tests.toy import ROOT

_ROW = re.compile(r"\| `(?P<key>[^`]+)` \| (?P<allowed>[^|]*) \| (?P<default>[^|]*) \|")
OTHER_TYPES = {
    "a number": "many", "a whole": "many", "true or": "maybe", "a string": 7, "a list": 3, "one of": 7, "a mapping": 3,
}  # fmt: skip
OUTSIDE = (  # of what is allowed: a number that the words name, and what is added to it
    (r"above (\S+)", 0), (r"of (\d+) or more$", -1), (r"from \S+ to below (\S+)", 0), (r"from (\S+) to \S+", -1),
    (r"between (\S+) and", 0),
)  # fmt: skip
STUDY = """title: T
source: S
tables:
- name: scores
  title: Scores
  columns: [accuracy, F1]
  scale: fraction
  rows:
    tuned: {figures: [a, b], published: ["0.5", "0.6"]}
    frozen: {figures: [c, null], published: ["0.4", null]}
"""
CELLS = 4
PIN = f"org/name@{'0' * 40}"


class Key(NamedTuple):
    """A line of docs/settings.md."""

    name: str
    allowed: str
    has_default: bool

    @property
    def outside(self) -> Any:
        """A value of the right type that is not allowed; None if all are allowed."""
        if self.allowed.startswith("one of"):
            return "odd"
        bounds = ((re.search(pattern, self.allowed), step) for pattern, step in OUTSIDE)
        return next((int(found[1]) + step for found, step in bounds if found), None)


def documented_keys() -> list[Key]:
    """All keys of docs/settings.md except those that contain a name of the user's own."""
    rows = _ROW.finditer((ROOT / "docs/settings.md").read_text())
    found = [Key(row["key"], row["allowed"], bool(row["default"].strip())) for row in rows]
    return [key for key in found if "NAME" not in key.name]


def settings_cases(draw: Random) -> Iterator[Case]:
    """Every key removed, misspelt, of another type, out of range, null; sections; and values that clash."""
    for key in documented_keys():
        file, allowed = file_of(key.name), f"is not allowed; expected {key.allowed}"
        *above, last = key.name.split(".")
        section, at = reduce(getitem, above, _files()[file]), draw.randrange(len(last))
        missing = [] if key.has_default else [f"{file}: {key.name} is missing"]
        if key.name in ("files.sst2.dev", "files.squad.dev"):  # null by default, which goes with a split only
            missing = [f"{file}: {key.name[:-3]}split: null is not allowed; expected either dev or split"]
        if key.name == "tokenizer.train_on":  # the running text alone by default
            missing = [f"{file}: tokenizer.with_questions: true is not allowed; expected false, as train_on leaves out"]
        misspelt = f"{key.name[: -len(last)]}{last[:at]}q{last[at:]}"
        if last in section:
            yield _case("removed", {key.name: _GONE}, *missing)
        values = {key.name: _GONE, misspelt: section.get(last)}
        yield _case("misspelt", values, f"{file}: {misspelt}: un", *missing)
        other = next(value for words, value in OTHER_TYPES.items() if key.allowed.startswith(words))
        yield _case("type", {key.name: other}, f"{file}: {key.name}: {other!r} {allowed}")
        if key.outside is not None:
            yield _case("out of range", {key.name: key.outside}, f"{file}: {key.name}: {key.outside!r} {allowed}")
        if "null" not in key.allowed:
            yield _case("null", {key.name: None}, f"{file}: {key.name}: null {allowed}")
    for file in (PARAMS, DATA_PARAMS):
        for section, value in _files()[file].items():
            if isinstance(value, dict):
                yield _case("removed", {section: _GONE}, f"{file}: {section} is missing", f"{file}: {section}.")
                for other in (3, "x", [1], None):
                    yield _case("type", {section: other}, f"{file}: {section}: ", f"{file}: {section}.")
    for said, *clashes in CLASHES:
        for values in clashes:
            key, value = next(iter(values.items()))
            shown = str(value).lower() if isinstance(value, bool) else repr(value)
            yield _case("clash", values, f"{file_of(key)}: {key}{said.replace(' VALUE', f': {shown} is not allowed')}")
    for values in RIGHT:
        yield _case("clash", values)


# Values that the words of docs/settings.md do not rule out.
TASK = {"folder": "data/own/a", "train": "t.csv", "dev": "d.csv", "pair": "b"}
TRAINED = {"lr": 0.001, "epochs": 1, "batch_size": 8}
CLASHES: tuple[tuple[Any, ...], ...] = (  # the message after the first key of each; VALUE stands for "… is not allowed"
    (" VALUE; expected a list with some of", {"tokenizer.train_on": []}),
    (" VALUE; expected at", {"finetune.tasks": [], "finetune.questions": []},
     {"finetune.tasks": [], "finetune.squad_methods": []}),
    (" VALUE; expected a list of 1", {"finetune.methods": []}, {"finetune.seeds": []}, {"metrics.classification": []},
     {"metrics.question_answering": []}),
    (" VALUE; expected each once", {"finetune.seeds": [1, 1]}, {"tokenizer.train_on": ["text", "text"]},
     {"metrics.every_epoch": ["f1", "f1"]}),
    (" VALUE; expected false, as train_on", {"tokenizer.with_questions": True, "tokenizer.train_on": ["text"]}),
    ("[1]: -1 is not allowed; expected a whole number from", {"finetune.seeds": [1, -1]}),
    (" VALUE; expected at least one of", {"metrics.every_epoch": []}),
    (" VALUE; expected a whole number of 6 or more or null", {"squad.train_length": 5}),
    (" VALUE; expected at most model.max_positions (256)", {"squad.max_length": 257}, {"sst2.max_length": 257},
     {"squad.train_length": 257}, {"pretrain.block_size": 257}),
    (" VALUE; expected at least 46, to fit max_answer_length and 16",
     {"squad.max_length": 45, "family": "llama", "squad.answers": "generative"}),
    (".max_length: 4 is not allowed; expected at least 5, to fit a token of each text",
     {"own": {**TRAINED, "max_length": 4}, "classification": {"own": TASK}}),
    (" VALUE; expected a whole number above", {"sst2.epochs": 1.5}, {"sst2.epochs": True}),
    (" VALUE; expected a whole number from 6 to 16777215", {"tokenizer.vocab_size": 5}),
    (" VALUE; it must divide hidden_size (128)", {"model.heads": 3}),
    (" VALUE; rotary positions need heads of an", {"model.heads": 128}),
    (" VALUE with family: bert", {"model.rope_theta": 1000.0, "family": "bert"}),
    (" VALUE with family: modernbert", {"model.kv_heads": 2}, {"pretrain.next_sentence": True}),
    (" VALUE; it needs the task's own dropout above 0", {"sst2.rdrop": 1.0},
     {"squad.rdrop": 0.5, "squad.dropout": 0.0}),
    (" VALUE; it needs answers: extractive", {"squad.rdrop": 1.0, "squad.dropout": 0.1, "family": "llama",
     "squad.answers": "generative"}),
    (" VALUE with family: llama, which has no dropout layer", {"sst2.dropout": 0.1, "family": "llama"}),
    (".$(id): the name is not allowed; expected letters, digits, _ and -", {"checkpoints": {"$(id)": {}}}),
    (": it needs model.checkpoint, whose sizes it takes", {"model.random_seed": 1}),
    (" VALUE; expected at most 2, the epochs", {"pretrain.text_epochs": 3, "pretrain.epochs": 2}),
    (" VALUE; expected at most 0, with next_sent", {"pretrain.text_epochs": 1, "pretrain.next_sentence": True,
     "family": "bert", "model.rope_theta": None}),
    (" VALUE; expected 1 or more with model.check", {"pretrain.epochs": 0}),
    (" VALUE; ex", {"pretrain.optimizer.decay_start": 0.5, "pretrain.optimizer.warmup_ratio": 0.6}),
    (" VALUE; expected at most pretrain.max_lr (0.01)", {"lr": 0.02}),
    (" VALUE; expected a number above 0", {"lr": float("inf")}, {"lr": float("nan")}),
    (" VALUE; expected a whole number from 0 to 4294967295", {"seed": 10**18}),
    (": a whole number of 100 bits is not allowed; expected at most 63", {"seed": 10**30}),
    (" VALUE; expected at most art", {"sample.questioned": 5601}),
    (" VALUE; expected a folder in", {"files.text": "elsewhere"}, {"files.squad.folder": "x"},
     {"files.text": "data/own/../x"}),
    (" VALUE; exp", {"files.squad.test": "dev-v2.0.json"}),
    (" VALUE; expected a name wi", {"hub.text.config": "../../x"}),
    (" VALUE", {"model.checkpoint": "org/name@main"}, {"hub.text.repository": "org/name@main"},
     {"hub.text.repository": f"../x@{'1' * 40}"}),
    (" VALUE; expected either dev or split", {"hub.sst2.split": 0.8}),
)  # fmt: skip
RIGHT: tuple[dict[str, Any], ...] = (
    {"finetune.tasks": []}, {"finetune.questions": []}, {"finetune.squad_methods": []}, {"squad.max_length": 6},
    {"sst2.max_length": 3}, {"sst2.max_length": 256}, {"sst2.max_length": 512, "model.checkpoint": PIN},
    {"family": "llama", "squad.answers": "generative", "squad.max_length": 46},
    {"sst2.rdrop": 1.0, "sst2.dropout": 0.3}, {"squad.rdrop": 0.5, "squad.dropout": 0.1},
    {"family": "llama", "model.dropout": 0.1}, {"classification": {"own": TASK}, "own": {**TRAINED, "max_length": 5}},
    {"family": "bert", "model.rope_theta": None, "model.heads": 128, "pretrain.next_sentence": True},
)  # fmt: skip


def yaml_faults(draw: Random, text: str, rows: int) -> Iterator[Fault]:
    """Faults of any file of keys and values."""
    lines = text.rstrip("\n").split("\n")
    yield from line_faults(draw, lines, rows)
    end = len(lines)
    levels = "".join(f"  - &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    for fault, added in (
        ("nesting", "deep: " + "[" * 50_000), ("nesting", "deep: " + '{"a": ' * 50_000),
        ("entities", f"laughs:\n  - &a0 ha\n{levels}"), ("entities", "own: &a [*a]"),
        ("huge number", f"digits: {'1' * 5000}"), ("line ends", "a: 1\n\tb: 2"), ("twice", "a: 1\na: 2"),
        ("quotes", "a: 'b"), ("nesting", "a: [1, 2"), ("nesting", "a: {b: 1]"), ("entities", "a: *b"),
        ("not the format", "a: !!python/object/apply:os.system [ls]"), ("not the format", "just words"),
        ("not the format", "a: b: c"), ("not the format", "%a\n---\nb: 1"), ("not the format", "]"),
    ):  # fmt: skip
        is_whole = (fault == "entities" and "*b" not in added) or "deep" in added  # which line is of no use
        places = [""] if is_whole else [f":{line}" for line in range(end, end + 4)]
        yield fault, f"{text}{added}\n".encode(), tuple(f"{place}:" for place in places)
    yield "NUL", f"{text}a: \x07\n".encode(), f":{end + 1}:4: "
    for whole in ("# nothing\n", "[]\n", "- lr: 1\n", "5\n", "lr\n"):
        yield "not the format", whole.encode(), ": expected keys and values, found "
    for key in ("1: 2", "? [1, 2]\n: 3", "? {a: b}\n: 3", "true: 1", "null: 1", "2020-01-01: 1"):
        yield "misspelt", f"{text}{key}\n".encode(), (": ", f":{end + 1}:")
    yield "10 MB line", lambda: f"{text}long: {'a' * 10_000_000}\n".encode(), ": long: unknown key; allowed: "
    plain = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    cut = plain[: plain.rindex("{") + 1]
    yield "truncated", cut.encode(), tuple(f":{line}:" for line in range(1, end + 2))


def file_cases(draw: Random) -> Iterator[Case]:
    """The three files with the faults of any text."""
    for path, other in ((PARAMS, DATA_PARAMS), (DATA_PARAMS, PARAMS)):
        faults, beside = yaml_faults(draw, (ROOT / path).read_text(), 0), (ROOT / other).read_bytes()
        yield from cases_of(str(path), str(path), _check, faults, {str(other): beside})
    name = "published.yaml"
    yield from cases_of(name, name, _read_study, yaml_faults(draw, STUDY, CELLS))
    for old, new, *expected in STUDIES:
        assert old in STUDY
        content, lines = STUDY.replace(old, new, 1).encode(), tuple(f"{name}: {said}" for said in expected)
        yield Case(name, "label" if '"' in new else "type", name, content, _read_study, lines or CELLS)


STUDIES = (  # tests/unit/study/test_published.py has more
    ("title: T\n", "", "title is missing"),
    ("title: T", "name: T", "title is missing", "name: unknown key"),
    ("title: T", "title: 7", "title: 7 is not allowed; expected a string"),
    ("tables:\n", "tables:\n- 5\n", "tables[0]: 5 is not allowed"),
    ("scale: fraction", "scale: [fraction]", "tables[0].scale: ['fraction'] is not allowed"),
    ("columns: [accuracy, F1]", "columns: []", "tables[0].columns: [] is not allowed; expected at least one"),
    ("columns: [accuracy, F1]", "columns: [F1, 5]", "tables[0].columns[1]: 5 is not allowed; expected a string"),
    ('"0.5"', "[1]", "tables[0].rows.tuned.published[0]: [1] is not allowed; expected a number or a string or null"),
    *(('"0.5"', f'"{figure}"', f"tables[0].tuned: accuracy: {figure!r} is not allowed; expected a figure")
      for figure in ("", "half", "0.5 ± ", "1e999999999", "1e400", "NaN", "\uff15", "1,2345")),
    ('"0.5"', f'"{"1" * 5000}"', "tables[0].tuned: accuracy: '111"),
    ('"0.5"', '" 0.5 "'), ('"0.5"', '"0.5 ± 0.1"'),
    (", published: [\"0.4\", null]", "", "tables[0].rows.frozen.published is missing"),
    ("rows:", "best: row\n  rows:", "tables[0].best: 'row' is not allowed"),
    ("name: scores", "name: ''", "tables[0].name: '' is not allowed; expected letters"),
)  # fmt: skip


_GONE = object()


@cache
def _files() -> dict[Path, dict[str, Any]]:
    return {path: read_yaml(ROOT / path) for path in (PARAMS, DATA_PARAMS)}


def _case(fault: str, values: Mapping[str, Any], *expected: str) -> Case:
    """The project's settings with other values, or without some."""
    changed = deepcopy(_files())
    for key, value in values.items():
        *above, last = key.split(".")
        section = reduce(getitem, above, changed[file_of(key)])
        section.pop(last, None)
        section |= {} if value is _GONE else {last: value}
    file = file_of(next(iter(values)))
    others = {path: new for path, new in changed.items() if path != file}
    beside = {
        str(path): _yaml(new) if new != _files()[path] else (ROOT / path).read_bytes() for path, new in others.items()
    }
    return Case(str(file), fault, str(file), lambda: _yaml(changed[file]), _check, expected or 0, beside=beside)


_yaml = partial(yaml.safe_dump, encoding="utf-8")


def _check(_: Path) -> tuple[int, list[str]]:
    check_settings(read_yaml(PARAMS), read_yaml(DATA_PARAMS))
    return 0, []


def _read_study(path: Path) -> tuple[int, list[str]]:
    return sum(len(list(table.cells())) for table in build_file(PublishedStudy, path).tables), []
