"""Malformed params.yaml, data/params.yaml and published.yaml.

What is allowed of a key is what docs/settings.md says of it: one with a default may be left out, and a value outside of
what is allowed is refused in these words.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from retrace.cli.check import check_settings
from retrace.core.settings import DATA_PARAMS, PARAMS, file_of, read_yaml
from retrace.study.published import read_published
from tests.campaigns.bad_files import line_faults
from tests.campaigns.cases import Case, Fault, cases_of
from tests.toy import ROOT

_ROW = re.compile(r"\| `(?P<key>[^`]+)` \| (?P<allowed>[^|]*) \| (?P<default>[^|]*) \|")
OTHER_TYPES = {
    "a number": "many", "a whole": "many", "true or": "maybe", "text": 7, "a list": 3, "one of": 7, "a sect": 3,
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
        """A value of the right type that is not allowed; none where every one is."""
        if self.allowed.startswith("one of"):
            return "odd"
        bounds = ((re.search(pattern, self.allowed), step) for pattern, step in OUTSIDE)
        return next((int(found[1]) + step for found, step in bounds if found), None)


def documented_keys() -> list[Key]:
    """All keys of docs/settings.md but those with a name of the user's own in them."""
    rows = _ROW.finditer((ROOT / "docs/settings.md").read_text())
    found = [Key(row["key"], row["allowed"], bool(row["default"].strip())) for row in rows]
    return [key for key in found if "NAME" not in key.name]


def settings_cases(draw: Random) -> Iterator[Case]:
    """Every key removed, misspelt, of another type, out of range, null; sections; and values that clash."""
    for key in documented_keys():
        file, allowed = file_of(key.name), f"is not allowed; expected {key.allowed}"
        last = key.name.rpartition(".")[2]
        at = draw.randrange(len(last))
        missing = [] if key.has_default else [f"{file}: {key.name} is missing"]
        if key.name in ("files.sst2.dev", "files.squad.dev"):  # null by default, which goes with a split only
            missing = [f"{file}: {key.name[:-3]}split: null is not allowed; expected either dev or split"]
        misspelt = f"{key.name[: -len(last)]}{last[:at]}q{last[at:]}"
        if _is_there(key.name):
            yield _case("removed", {key.name: _GONE}, *missing)
        values = {key.name: _GONE, misspelt: _value(key.name)}
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
    for values, *expected in CLASHES:
        yield _case("clash", values, *expected)


# Values that the words of docs/settings.md do not rule out, and what is said of them; nothing where they are right.
TASK = {"folder": "a", "train": "t.csv", "dev": "d.csv", "pair": "b"}
TRAINED = {"lr": 0.001, "epochs": 1, "batch_size": 8}
CLASHES: tuple[tuple[Any, ...], ...] = (
    ({"tokenizer.train_on": []}, "params.yaml: tokenizer.train_on: [] is not allowed; expected a list with some of"),
    ({"finetune.tasks": []},),
    ({"finetune.questions": []},),
    ({"finetune.squad_methods": []},),
    ({"finetune.tasks": [], "finetune.questions": []}, "params.yaml: finetune.tasks: [] is not allowed; expected at"),
    ({"finetune.tasks": [], "finetune.squad_methods": []}, "params.yaml: finetune.tasks: [] is not allowed; expected"),
    ({"finetune.methods": []}, "params.yaml: finetune.methods: [] is not allowed; expected a list of 1 or more"),
    ({"finetune.seeds": []}, "params.yaml: finetune.seeds: [] is not allowed; expected a list of 1 or more"),
    ({"finetune.seeds": [1, 1]}, "params.yaml: finetune.seeds: [1, 1] is not allowed; expected each once"),
    ({"finetune.seeds": [1, -1]}, "params.yaml: finetune.seeds[1]: -1 is not allowed; expected a whole number from"),
    ({"metrics.classification": []}, "params.yaml: metrics.classification: [] is not allowed; expected a list of 1"),
    ({"metrics.question_answering": []}, "params.yaml: metrics.question_answering: [] is not allowed; expected a"),
    ({"metrics.every_epoch": []}, "params.yaml: metrics.every_epoch: [] is not allowed; expected at least one of"),
    ({"squad.max_length": 5}, "params.yaml: squad.max_length: 5 is not allowed; expected at least 6, which hold a"),
    ({"squad.max_length": 6},),
    ({"sst2.max_length": 3},),
    ({"squad.max_length": 257}, "params.yaml: squad.max_length: 257 is not allowed; expected at most model.max_pos"),
    ({"sst2.max_length": 257}, "params.yaml: sst2.max_length: 257 is not allowed; expected at most model.max_posit"),
    ({"sst2.max_length": 256},),
    ({"model.checkpoint": PIN, "sst2.max_length": 512},),
    ({"family": "llama", "squad.answers": "generative", "squad.max_length": 45},
     "params.yaml: squad.max_length: 45 is not allowed; expected at least 46, which hold max_answer_length and 16"),
    ({"family": "llama", "squad.answers": "generative", "squad.max_length": 46},),
    ({"classification": {"own": TASK}, "own": {**TRAINED, "max_length": 4}},
     "params.yaml: own.max_length: 4 is not allowed; expected at least 5, which hold a token of each text"),
    ({"classification": {"own": TASK}, "own": {**TRAINED, "max_length": 5}},),
    ({"tokenizer.vocab_size": 5}, "params.yaml: tokenizer.vocab_size: 5 is not allowed; expected a whole number above"),
    ({"model.heads": 3}, "params.yaml: model.heads: 3 is not allowed; it must divide hidden_size (128)"),
    ({"model.heads": 128}, "params.yaml: model.heads: 128 is not allowed; rotary positions need heads of an"),
    ({"family": "bert"}, "params.yaml: model.rope_theta: 1000.0 is not allowed with family: bert"),
    ({"model.kv_heads": 2}, "params.yaml: model.kv_heads: 2 is not allowed with family: modernbert"),
    ({"family": "bert", "model.rope_theta": None, "model.heads": 128, "pretrain.next_sentence": True},),
    ({"family": "llama", "sst2.dropout": 0.1}, "params.yaml: sst2.dropout: 0.1 is not allowed with family: llama,"),
    ({"family": "llama", "model.dropout": 0.1},),
    ({"checkpoints": {"$(id)": {}}}, "data/params.yaml: checkpoints.$(id): the name is not allowed; expected letters,"),
    ({"pretrain.next_sentence": True}, "params.yaml: pretrain.next_sentence: true is not allowed with family: modern"),
    ({"squad.train_length": 257}, "params.yaml: squad.train_length: 257 is not allowed; expected at most model.max_p"),
    ({"model.random_seed": 1}, "params.yaml: model.random_seed: it needs model.checkpoint, whose sizes it takes"),
    ({"pretrain.block_size": 257}, "params.yaml: pretrain.block_size: 257 is not allowed; expected at most model."),
    ({"pretrain.epochs": 0}, "params.yaml: pretrain.epochs: 0 is not allowed; expected 1 or more with model.check"),
    ({"pretrain.optimizer.warmup_ratio": 0.6}, "params.yaml: pretrain.optimizer.decay_start: 0.5 is not allowed; ex"),
    ({"lr": 0.02}, "params.yaml: lr: 0.02 is not allowed; expected at most pretrain.max_lr (0.01)"),
    ({"lr": float("inf")}, "params.yaml: lr: inf is not allowed; expected a number above 0"),
    ({"lr": float("nan")}, "params.yaml: lr: nan is not allowed; expected a number above 0"),
    ({"seed": 10**30}, f"params.yaml: seed: {10**30} is not allowed; expected a whole number from 0 to 4294967295"),
    ({"sst2.epochs": 1.5}, "params.yaml: sst2.epochs: 1.5 is not allowed; expected a whole number above 0"),
    ({"sst2.epochs": True}, "params.yaml: sst2.epochs: true is not allowed; expected a whole number above 0"),
    ({"sample.questioned": 5601}, "data/params.yaml: sample.questioned: 5601 is not allowed; expected at most art"),
    ({"files.text": "elsewhere"}, "data/params.yaml: files.text: 'elsewhere' is not allowed; expected a folder in"),
    ({"files.squad.folder": "x"}, "data/params.yaml: files.squad.folder: 'x' is not allowed; expected a folder in"),
    ({"files.text": "data/own/../x"}, "data/params.yaml: files.text: 'data/own/../x' is not allowed; expected a fol"),
    ({"files.squad.test": "dev-v2.0.json"}, "data/params.yaml: files.squad.test: 'dev-v2.0.json' is not allowed; exp"),
    ({"hub.text.config": "../../x"}, "data/params.yaml: hub.text.config: '../../x' is not allowed; expected a name wi"),
    ({"hub.text.repository": f"../x@{'1' * 40}"}, "data/params.yaml: hub.text.repository: '../x@1111"),
    ({"hub.text.repository": "org/name@main"}, "data/params.yaml: hub.text.repository: 'org/name@main' is not allowed"),
    ({"hub.sst2.split": 0.8}, "data/params.yaml: hub.sst2.split: 0.8 is not allowed; expected either dev or split"),
)  # fmt: skip


def yaml_faults(draw: Random, name: str, text: str, rows: int) -> Iterator[Fault]:
    """What may befall any file of keys and values."""
    lines = text.rstrip("\n").split("\n")
    yield from line_faults(draw, name, lines, rows)
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
        yield fault, f"{text}{added}\n".encode(), tuple(f"{name}{place}:" for place in places)
    yield "NUL", f"{text}a: \x07\n".encode(), (f"{name}:{end + 1}:4: ",)
    for whole in ("# nothing\n", "[]\n", "- lr: 1\n", "5\n", "lr\n"):
        yield "not the format", whole.encode(), (f"{name}: expected keys and values, found ",)
    for key in ("1: 2", "? [1, 2]\n: 3", "? {a: b}\n: 3", "true: 1", "null: 1", "2020-01-01: 1"):
        yield "misspelt", f"{text}{key}\n".encode(), (f"{name}: ", f"{name}:{end + 1}:")
    yield "10 MB line", lambda: f"{text}long: {'a' * 10_000_000}\n".encode(), (f"{name}: long: unknown key; allowed: ",)
    plain = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    cut = plain[: plain.rindex("{") + 1]
    yield "truncated", cut.encode(), tuple(f"{name}:{line}:" for line in range(1, end + 2))


def file_cases(draw: Random) -> Iterator[Case]:
    """The three files with what may befall any text."""
    for path in (PARAMS, DATA_PARAMS):
        other = DATA_PARAMS if path == PARAMS else PARAMS
        text = (ROOT / path).read_text()
        beside = {str(other): (ROOT / other).read_bytes()}
        yield from cases_of(str(path), str(path), _check, yaml_faults(draw, str(path), text, 0), beside)
    name = "published.yaml"
    yield from cases_of(name, name, _read_study, yaml_faults(draw, name, STUDY, CELLS))
    for old, new, *expected in STUDIES:
        fault = "label" if '"' in new else "type"
        assert old in STUDY
        content, lines = STUDY.replace(old, new, 1).encode(), tuple(f"{name}: {said}" for said in expected)
        yield Case(name, fault, name, content, _read_study, lines or CELLS)


STUDIES = (
    ("title: T\n", "", "title is missing"),
    ("title: T", "name: T", "title is missing", "name: unknown key"),
    ("title: T", "title: 7", "title: 7 is not allowed; expected text"),
    ("tables:\n", "tables:\n- 5\n", "tables[0]: 5 is not allowed"),
    ("scale: fraction", "scale: meters", "tables[0].scale: 'meters' is not allowed; expected one of fraction"),
    ("scale: fraction", "scale: {accuracy: fraction}", "tables[0].scale: ['accuracy'] is not allowed; expected all"),
    ("scale: fraction", "scale: [fraction]", "tables[0].scale: ['fraction'] is not allowed"),
    ("columns: [accuracy, F1]", "columns: []", "tables[0].columns: [] is not allowed; expected at least one"),
    ("columns: [accuracy, F1]", "columns: [F1, F1]", "tables[0].columns: ['F1', 'F1'] is not allowed; expected each"),
    ("columns: [accuracy, F1]", "columns: [F1]", "tables[0].figures of tuned: '2 figures' is not allowed; expected 1"),
    ("columns: [accuracy, F1]", "columns: [F1, 5]", "tables[0].columns[1]: 5 is not allowed; expected text"),
    ('"0.5"', "0.5", "tables[0].tuned: accuracy: 0.5 is not allowed; expected text in quotes"),
    ('"0.5"', "[1]", "tables[0].rows.tuned.published[0]: [1] is not allowed; expected a number or text or null"),
    ('"0.5"', '""', "tables[0].tuned: accuracy: '' is not allowed; expected a figure"),
    ('"0.5"', '"half"', "tables[0].tuned: accuracy: 'half' is not allowed; expected a figure"),
    ('"0.5"', '"0.5 ± "', "tables[0].tuned: accuracy: '0.5 ± ' is not allowed; expected a figure"),
    ('"0.5"', '"1e999999999"', "tables[0].tuned: accuracy: '1e999999999' is not allowed; expected a figure"),
    ('"0.5"', '"1e400"', "tables[0].tuned: accuracy: '1e400' is not allowed; expected a figure of less"),
    ('"0.5"', '"50%"', "tables[0].tuned: accuracy: '50%' is not allowed; % is of the scales percent"),
    ('"0.5"', '"NaN"', "tables[0].tuned: accuracy: 'NaN' is not allowed; expected a figure"),
    ('"0.5"', f'"{"1" * 5000}"', "tables[0].tuned: accuracy: '111"),
    ('"0.5"', '"\uff15"', "tables[0].tuned: accuracy: '\uff15' is not allowed; expected a figure"),
    ('"0.5"', '"1,2345"', "tables[0].tuned: accuracy: '1,2345' is not allowed; expected a figure"),
    ('"0.5"', '" 0.5 "'),
    ('"0.5"', '"0.5 ± 0.1"'),
    (", published: [\"0.4\", null]", "", "tables[0].rows.frozen.published is missing"),
    ("null]}", "null, null]}", "tables[0].published of frozen: '3 figures' is not allowed; expected 2"),
    ("rows:", "best: row\n  rows:", "tables[0].best: 'row' is not allowed"),
    ("name: scores", "name: a b", "tables[0].name: 'a b' is not allowed; expected letters"),
    ("name: scores", "name: ''", "tables[0].name: '' is not allowed; expected letters"),
)  # fmt: skip


_GONE = object()


@cache
def _files() -> dict[Path, dict[str, Any]]:
    return {path: YAML(typ="safe", pure=True).load((ROOT / path).read_text()) for path in (PARAMS, DATA_PARAMS)}


def _value(key: str) -> Any:
    """What the project's own files have under a key; null where it is left out."""
    value: Any = _files()[file_of(key)]
    for name in key.split("."):
        value = value.get(name)
    return value


def _is_there(key: str) -> bool:
    above, _, last = key.rpartition(".")
    return last in (_value(above) if above else _files()[file_of(key)])


def _case(fault: str, values: Mapping[str, Any], *expected: str) -> Case:
    """The project's settings with other values, or without some."""
    changed = deepcopy(_files())
    for key, value in values.items():
        *above, last = key.split(".")
        place = changed[file_of(key)]
        for name in above:
            place = place[name]
        if value is _GONE:
            place.pop(last, None)
        else:
            place[last] = value
    file = file_of(next(iter(values)))
    beside = {
        str(path): _yaml(of) if of != _files()[path] else (ROOT / path).read_bytes()
        for path, of in changed.items() if path != file
    }  # fmt: skip
    return Case(str(file), fault, str(file), lambda: _yaml(changed[file]), _check, expected or 0, beside=beside)


def _yaml(values: Mapping[str, Any]) -> bytes:
    file = BytesIO()
    YAML(typ="safe", pure=True).dump(values, file)
    return file.getvalue()


def _check(_: Path) -> tuple[int, list[str]]:
    check_settings(read_yaml(PARAMS), read_yaml(DATA_PARAMS))
    return 0, []


def _read_study(path: Path) -> tuple[int, list[str]]:
    return sum(len(list(table.cells())) for table in read_published(path).tables), []
