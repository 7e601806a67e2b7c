"""Malformed documents: questions, SemEval's xml, checkpoints with their tokenizers, published figures."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

from retrace.core.files import read_json
from retrace.datasets.card import questions_card
from retrace.hub.checkpoint import copy_checkpoint
from retrace.hub.pins import InitialCheckpoint, PinnedFolder
from retrace.models import heads  # noqa: F401 - which takes seconds, and more memory than a case may
from retrace.tokens.tokenizer import load_tokenizer
from tests.campaigns.bad_files import DEEP, LONG, WORDS, line_faults, read_task, sentence
from tests.campaigns.cases import Case, Content, Fault, cases_of
from tests.hub.content.models import BERT, published_models

NUMBERS = "1" * 5000
ASKED = {"id": "dev", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
HELD_OUT = {"data": [{"paragraphs": [{"context": "Ada did.", "qas": [ASKED]}]}]}


def question_cases(draw: Random) -> Iterator[Case]:
    """SQuAD's json; a row is a question."""
    count = draw.randint(4, 8)
    chosen = draw.randrange(count)
    name = f"question q{chosen}"

    qas = []
    for number in range(count):
        words = [WORDS[number], *draw.choices(WORDS, k=3)]
        qa = {"id": f"q{number}", "question": "What?", "answers": [{"text": words[0], "answer_start": 4}]}
        qas.append({"context": f"The {' '.join(words)} .", "qas": [qa]})
    right = {"data": [{"title": "T", "paragraphs": qas}]}

    def written(change: Callable[..., object]) -> bytes:
        """The file after a change of a paragraph, its question and its answer."""
        changed = deepcopy(right)
        paragraph = changed["data"][0]["paragraphs"][chosen]
        change(paragraph, paragraph["qas"][0], paragraph["qas"][0]["answers"][0])
        return json.dumps(changed, indent=1).encode()

    def refused(fault: str, said: str, change: Callable[..., object]) -> Fault:
        return fault, written(change), f": {said}"

    def misplaced(start: int, text: str = WORDS[chosen]) -> str:
        return f"{name}: the answer {text!r} is not at character {start}"

    faults: list[Fault] = []
    title, twice = WORDS[chosen].title(), 0 if chosen else 1
    empty = f"{name}: the answer %r is empty; an unanswerable question has no answers"
    impossible = f"{name}: is_impossible %r is not allowed; expected true or false"
    for holder, said, field, values in (  # what is said where the field of an object has one of the values
        (2, f"{name}: the answer {WORDS[chosen]!r} is not at character %r", "answer_start",
         (3, 5, -1, -4, 400, 10**30)),
        (2, f"{name}: answer_start %r is not allowed; expected a whole number", "answer_start",
         (4.0, "4", None, True, [4])),
        (2, empty, "text", ("", " ", "\u00a0")),
        (2, f"{name}: text %r is not allowed; expected text", "text", (None,)),
        (2, misplaced(4, title), "text", (title,)),
        (1, impossible, "is_impossible", ("false", 1, 0.0, [])),
        (1, f"{name}: is_impossible is true, but there are answers", "is_impossible", (True,)),
        (1, f"{name}: answers %r is not allowed; expected a list", "answers", (None, {}, "none", 3)),
        (1, f"{name}: 'answers' holds 'Ada'; expected objects", "answers", (["Ada"],)),
        (1, f"{name}: question %r is not allowed; expected text", "question", (None,)),
        (1, "article 1: id %r is not allowed; expected text", "id", (7, None, ["q"])),
        (0, "article 1: qas %r is not allowed; expected a list", "qas", (None, {}, "x")),
        (0, "article 1: 'qas' holds [1]; expected objects", "qas", ([[1]],)),
        (0, "article 1: context %r is not allowed; expected text", "context", (None, 5, ["a"])),
    ):  # fmt: skip
        for value in values:
            line = said.replace("%r", repr(value))
            faults.append(refused("value", line, lambda *of, at=holder, new={field: value}: of[at].update(new)))
    faults += [
        refused("missing column", f"{name}: no 'text'; expected text", lambda p, q, a: a.pop("text")),
        refused("missing column", f"{name}: no 'answers'; expected a list", lambda p, q, a: q.pop("answers")),
        refused("value", misplaced(4), lambda p, q, a: p.update(context=f"\U0001f600{p['context']}")),
        refused("value", f"{misplaced(6)}, but at that byte; offsets count",
                lambda p, q, a: (p.update(context="Th\u20ac" + p["context"][3:]), a.update(answer_start=6))),
        refused("unanswerable", f"{name}: is_impossible is false, but there are no answers",
                lambda p, q, a: q.update(is_impossible=False, answers=[])),
        refused("twice", f"question q{twice}: the id occurs twice", lambda p, q, a: q.update(id=f"q{twice}")),
    ]  # fmt: skip

    text = json.dumps(right, indent=1)
    lines = text.split("\n")
    faults += line_faults(draw, lines, count)
    for whole, place, said in (
        *((top, None, "not SQuAD: the top level has no list called 'data'")
          for top in ("[]", "null", '{"data": {}}', '{"data": "x"}')),
        ('{"data":\n[5]}', None, "'data' holds 5; expected objects"),
        ('{"data":\n[{}]}', None, "article 1: no 'paragraphs'; expected a list"),
        ('{"data":\n[{"paragraphs": {}}]}', None, "article 1: paragraphs {} is not allowed; expected a list"),
        ('{"data":\n[{"paragraphs": [""]}]}', None, "article 1: 'paragraphs' holds ''; expected objects"),
        ('{"data": [{"title": "a\\ud800"}]}', "1", "'\\ud800' is an unpaired surrogate"),
        ('{"data": [{"title": "a", "title": "b"}]}', "1", "not json: the key 'title' occurs twice"),
        (f'{{"data": {DEEP}', "1", "not json: maximum recursion depth"),
        ('{"data":' * 50_000, "1", "not json: maximum recursion depth"),
        (f'{{"data":\n {NUMBERS}}}', "1", "not json: Exceeds the limit"),
        (text + "\n}", f"{len(lines) + 1}:1", "not json: Extra data"),
        (text.replace('"', "'"), "2:2", "not json: Expecting property name"),
        ('{\n"data": [,]}', "2:10", "not json: Expecting value"),
    ):  # fmt: skip
        faults.append(("not the format", whole.encode(), f":{place}: {said}" if place else f": {said}"))
    for whole in (b'{"data": []}', b'{"data": [{"paragraphs": []}]}'):
        faults.append(("empty file", whole, ": it contains no question"))
    cut = draw.randrange(len(text) // 2, len(text) - 10)
    faults.append(("truncated", text[:cut].encode(), tuple(f":{line + 1}:" for line in range(len(lines)))))
    faults.append(("truncated", text[:-1].encode(), f":{len(lines) - 1}:3: not json: Expecting ',' delimiter"))
    for fault, change in (
        ("unanswerable", lambda p, q, a: q.update(is_impossible=True, answers=[])),
        ("unanswerable", lambda p, q, a: q.update(is_impossible=True, plausible_answers=[a], answers=[])),
        ("unanswerable", lambda p, q, a: (q.update(is_impossible=True), q.pop("answers"))),
        ("missing column", lambda p, q, a: q.update(is_impossible=None)),
        ("one letter", lambda p, q, a: (p.update(context="a"), a.update(text="a", answer_start=0))),
        ("emoji", lambda p, q, a: (p.update(context="\U0001f600"), a.update(text="\U0001f600", answer_start=0))),
        ("twice", lambda p, q, a: q["answers"].append(a)),
        ("10 MB line", lambda p, q, a: p.update(context=p["context"] + LONG)),
    ):
        faults.append((fault, written(change), count))
    beside = {"dev.json": json.dumps(HELD_OUT).encode()}
    yield from cases_of("SQuAD", "train.json", _read_questions, faults, beside)
    for fault, change, said in (
        ("white space", lambda p, q, a: a.update(text=f" {a['text']} ", answer_start=3), "answers with white space"),
        ("empty text", lambda p, q, a: q.update(question=" "), "questions without text: 1"),
        ("empty text", lambda p, q, a: (p.update(context=""), q.update(answers=[])), "questions on an empty passage"),
    ):
        yield Case("SQuAD", fault, "train.json", written(change), _read_questions, count, f"train: {said}", beside)


def _read_questions(path: Path) -> tuple[int, list[str]]:
    card = questions_card(path.parent)
    return card["parts"]["train"]["questions"], card["findings"]


def xml_cases(draw: Random) -> Iterator[Case]:
    """SemEval's xml; a row is an aspect term."""
    count = draw.randint(4, 8)
    chosen = draw.randrange(count)
    entries = [
        f'<sentence id="s{row}"><text>{sentence(draw)}</text><aspectTerms>'
        f'<aspectTerm term="{draw.choice(WORDS)}" polarity="{row % 2}"/></aspectTerms></sentence>'
        for row in range(count)
    ]
    place = f": sentence s{chosen}: "

    def changed(old: str, new: str, head: str = "") -> bytes:
        lines = [*entries[:chosen], entries[chosen].replace(old, new, 1), *entries[chosen + 1 :]]
        return "\n".join([f"{head}<sentences>", *lines, "</sentences>"]).encode()

    right, line = changed("", ""), f":{chosen + 2}:"
    latin, xml = changed("<text>", "<text>\u00e9").decode().encode("latin-1"), b'<?xml version="1.0" encoding="%s"?>'
    laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE s [<!ENTITY a0 "ha">{laughs}]>'
    long = f'<!DOCTYPE s [<!ENTITY a "{"a" * 100_000}">]>'
    outside = '<!DOCTYPE s [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    faults: list[Fault] = [
        *((fault, changed("<text>", f"<text>{put}"), line) for fault, put in (
            ("nesting", "<text>"), ("nesting", "<b>" * 200_000), ("surrogate", "&#xd83d;"), ("NUL", "\0"),
            ("NUL", "&#0;"), ("not the format", "fish & chips"), ("entities", "&b;"),
        )),
        ("nesting", changed("</text>", ""), line), ("encoding", latin, line),
        ("twice", changed('polarity="', 'polarity="1" polarity="'), line),
        ("quotes", changed('polarity="', "polarity="), line),
        ("entities", changed("<text>", "<text>&a9;", bomb), (line, ":1:")),
        ("entities", changed("<text>", "<text>" + "&a;" * 20_000, long), (line, ":1:")),
        ("entities", changed("<text>", "<text>&a;", outside), line),
        ("empty file", b"", ":1:1: not xml: no element found"), ("no file", None, ": no such file"),
        ("truncated", right[:-12], f":{count + 2}:1: not xml: no element found"),
        ("truncated", right[: len(right) // 2], tuple(f":{row + 2}:" for row in range(count))),
        ("encoding", xml % b"klingon" + right, (":1:31:", ":1: ")),
        ("not the format", b"text,label\na,1\n", ":1:1: not xml: syntax error"),
        ("not the format", b"<html><body/></html>", ": it contains no example"),
        ("not the format", right + b"<more/>", f":{count + 2}:13: not xml: junk after document element"),
        ("missing column", changed("<text>", "<a>").replace(b"</text>", b"</a>"), ":"),
        ("missing column", right.replace(b"text>", b"txt>"), ": sentence s0: text None is not allowed"),
        ("missing column", changed('term="', 'word="'), f"{place}an aspectTerm without 'term'"),
        ("missing column", changed("polarity", "mood"), f"{place}an aspectTerm without 'polarity'"),
        *(("label", changed('polarity="', f'polarity="{no}" was="'), f"{place}polarity {no!r} is not allowed; expected")
          for no in ("", " ")),
        *((fault, content, count) for fault, content in (
            *((fault, changed("<text>", f"<text>{put}")) for fault, put in (
                ("emoji", "\U0001f600"), ("white space", "\t\u2003"), ("10 MB line", LONG),
            )),
            ("encoding", right.decode().encode("utf-16")), ("encoding", xml % b"latin-1" + latin),
            ("BOM", b"\xef\xbb\xbf" + right), ("line ends", right.replace(b"\n", b"\r\n")),
            ("line ends", right.replace(b"\n", b"\r")),
            ("twice", changed(f'id="s{chosen}"', 'id="s"').replace(b'id="s0"', b'id="s"')),
            ("extra column", changed('polarity="', 'from="1" to="x" polarity="')),
            ("entities", changed("<text>", "<text>&a;", '<!DOCTYPE s [<!ENTITY a "b">]>')),
        )),
    ]  # fmt: skip
    held_out = "".join(f'<sentence><text>a</text><aspectTerm term="b" polarity="{n}"/></sentence>' for n in (0, 1))
    beside = {"dev.xml": f"<sentences>{held_out}</sentences>".encode()}
    yield from cases_of("SemEval xml", "f.xml", _read_aspects, faults, beside)


def _read_aspects(path: Path) -> tuple[int, list[str]]:
    return read_task(path, label="polarity", dev="dev.xml")


def checkpoint_cases(draw: Random) -> Iterator[Case]:
    """A folder with a model and its tokenizer; a row is a token of the vocabulary."""
    right = {f"model/{name}": content for name, content in published_models()[BERT].items() if name != "vocab.txt"}
    tokenizer = {**json.loads(right["model/tokenizer.json"]), "added_tokens": [], "post_processor": None}
    right["model/tokenizer.json"] = json.dumps(tokenizer).encode()
    config, weights = json.loads(right["model/config.json"]), right["model/model.safetensors"]
    tokens, where = list(tokenizer["model"]["vocab"]), "model/tokenizer.json: "
    size = len(tokens)

    def case(fault: str, name: str, content: Content, *expected: str) -> Case:
        beside = {path: found for path, found in right.items() if path != f"model/{name}"}
        reader = "tokenizer" if "token" in name or name.startswith("vocab") else "checkpoint"
        return Case(reader, fault, f"model/{name}", content, _read_checkpoint, expected or size, beside=beside)

    def with_config(**changes: Any) -> bytes:
        return json.dumps({name: value for name, value in {**config, **changes}.items() if value != "gone"}).encode()

    def with_model(**changes: Any) -> bytes:
        return json.dumps({**tokenizer, "model": {**tokenizer["model"], **changes}}).encode()

    no_tokenizer, cut = (f"{where}not a tokenizer: ",), draw.randrange(100, 900)
    yield case("BOM", "README.md", b"# none")
    for content in (
        b"", b"{}", b"null", b"[]", b"\xff\xfe", b"\0", right["model/tokenizer.json"][:cut], DEEP.encode(),
        b'{"model":' * 50_000, right["model/tokenizer.json"][:-1], b"\xef\xbb\xbf" + right["model/tokenizer.json"],
        with_model(vocab=None), with_model(vocab=[]), with_model(type="Morse"), with_model(type=5),
        with_model(vocab=dict.fromkeys(tokens, -1)), with_model(vocab=dict.fromkeys(tokens, "x")),
        with_model(vocab=dict.fromkeys(tokens, 10 ** 30)), with_model(max_input_chars_per_word=-1),
        json.dumps({**tokenizer, "added_tokens": {}}).encode(), json.dumps({**tokenizer, "normalizer": 5}).encode(),
    ):  # fmt: skip
        yield case("not the format", "tokenizer.json", content, *no_tokenizer)
    yield case("empty text", "tokenizer.json", with_model(vocab={}), "model: no token begins a text: ")
    same, far = dict.fromkeys(tokens, 3), {**tokenizer["model"]["vocab"], "x": 2**31}
    yield case("twice", "tokenizer.json", with_model(vocab=same), f"{no_tokenizer[0]}[CLS] and [UNK] have the same id")
    said = f"model: the tokenizer has {2**31 + 1} tokens, but the model only {size} emb"
    yield case("huge number", "tokenizer.json", with_model(vocab=far), said)
    said = "model: there is no tokenizer.json in it, nor vocab.txt to make one from"
    yield case("missing column", "tokenizer.json", None, said)
    few = {token: number for number, token in enumerate(tokens[:5])}
    yield case("one letter", "tokenizer.json", with_model(vocab={**few, "x": 5}, unk_token="no"), *no_tokenizer)
    yield case("no unknown token", "tokenizer.json", with_model(unk_token="no"), *no_tokenizer)
    for field, content in (
        ("not the format", b"[1]"), ("not the format", b"{"), ("encoding", b"\xff\xfe{}"), ("nesting", DEEP.encode()),
        ("huge number", f'{{"a": {NUMBERS}}}'.encode()), ("empty file", b""),
    ):  # fmt: skip
        for file in ("tokenizer_config.json", "config.json", "model.safetensors.index.json"):
            yield case(field, file, content, f"model/{file}:")
    yield case("type", "tokenizer_config.json", b'{"cls_token": 5, "sep_token": ["x"]}')
    yield case("missing column", "tokenizer_config.json", b'{"cls_token": "[NO]"}')
    yield case("missing column", "config.json", None, "model: there is no config.json in it")
    for value in ("gone", None, 5, ["bert"], {}, "gpt", "../bert"):
        found = None if value == "gone" else value
        yield case("type", "config.json", with_config(model_type=value), f"model: model_type: {found!r} is not allowed")
    yield case("type", "config.json", with_config(model_type="llama"), "params.yaml: family: bert is not allowed; ")
    for value in ("gone", "many", None, [], 3.5, -1, 0):
        either = "model/config.json: no model", f"model: the tokenizer has {size}"
        yield case("type", "config.json", with_config(vocab_size=value), *either)
    yield case("out of range", "config.json", with_config(vocab_size=size - 1), f"model: the tokenizer has {size} tok")
    for key, value in (
        ("hidden_size", "wide"), ("num_hidden_layers", None), ("num_attention_heads", 3), ("hidden_size", 0),
        ("num_attention_heads", 0), ("hidden_act", "sine"), ("hidden_dropout_prob", "x"), ("hidden_size", -8),
        ("intermediate_size", 2.5), ("max_position_embeddings", "x"), ("layer_norm_eps", "tiny"),
    ):  # fmt: skip
        said = "model/config.json: no model can be made of it: "
        yield case("type", "config.json", with_config(**{key: value}), said)
    for content in (b"", weights[:7], weights[:40], weights[:-1], weights + b"\0", b"\xff" * 64, b"\x80\x02}q\0."):
        yield case("truncated", "model.safetensors", content, "model/model.safetensors: not safetensors: ")
    yield case("missing column", "model.safetensors", None, "model: there is no model.safetensors in it; weights are")
    paths = ({"a": path} for path in ("../model.safetensors", "/etc/passwd", "a/b.safetensors", 5))
    for index in ({}, *({"weight_map": value} for value in ({}, [], "x", *paths))):
        yield case("type", "model.safetensors.index.json", json.dumps(index).encode(), "model/model.safetensors.index")


def _read_checkpoint(_: Path) -> tuple[int, list[str]]:
    origin, out = PinnedFolder(Path("model"), "0" * 12), Path("out")
    out.mkdir()
    copy_checkpoint(out, InitialCheckpoint(origin, "bert"), origin)
    assert read_json(out / "source.json")
    return load_tokenizer(out).size, []
