"""Malformed documents: questions, SemEval's xml, checkpoints with their tokenizers, published figures."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from safetensors.numpy import save

from retrace.core.files import read_json
from retrace.datasets.card import count_questions
from retrace.hub.checkpoint import copy_checkpoint
from retrace.hub.pins import InitialCheckpoint, PinnedFolder
from retrace.models import heads  # noqa: F401 - which takes seconds, and more memory than a case may
from retrace.tokens.tokenizer import load_tokenizer
from tests.campaigns.bad_files import DEEP, LONG, WORDS, line_faults, read_task, sentence
from tests.campaigns.cases import Case, Content, Fault, cases_of

NUMBERS = "1" * 5000
HELD_OUT = {"data": [{"paragraphs": [{"context": "Ada did.", "qas": [
    {"id": "dev", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}]}]}]}  # fmt: skip


def question_cases(draw: Random) -> Iterator[Case]:
    """SQuAD's json; a row is a question."""
    count = draw.randint(4, 8)
    chosen = draw.randrange(count)
    name = f"question q{chosen}"

    def document() -> dict[str, Any]:
        qas = []
        for number in range(count):
            words = [WORDS[number], *draw.choices(WORDS, k=3)]
            answer = {"text": words[0], "answer_start": 4}
            qas.append((f"The {' '.join(words)} .", {"id": f"q{number}", "question": "What?", "answers": [answer]}))
        return {"data": [{"title": "T", "paragraphs": [{"context": text, "qas": [qa]} for text, qa in qas]}]}

    right = document()

    def written(change: Callable[..., object]) -> tuple[bytes, list[str]]:
        """The file after a change of a paragraph, its question and its answer."""
        changed = deepcopy(right)
        paragraph = changed["data"][0]["paragraphs"][chosen]
        change(paragraph, paragraph["qas"][0], paragraph["qas"][0]["answers"][0])
        text = json.dumps(changed, indent=1)
        return text.encode(), text.split("\n")

    def begins(lines: list[str], key: str, number: int = chosen) -> str:
        """Where the object that holds the key begins; there is one of each for every question before it."""
        at = [place for place, line in enumerate(lines) if line.strip().startswith(f'"{key}"')][number]
        indent = len(lines[at]) - len(lines[at].lstrip())
        return next(
            f"f.json:{place + 1}:{indent}: "
            for place in range(at, -1, -1)
            if lines[place].endswith("{") and len(lines[place]) == indent
        )

    faults: list[Fault] = []

    def refuse(fault: str, key: str, said: str, change: Callable[..., object] | None = None, **values: Any) -> None:
        """It is refused where the object begins that has the key, in which these values are, or after a change."""
        part = {"context": 0, "question": 1, "id": 1, "answer_start": 2}[key]
        content, lines = written(change or (lambda *parts: parts[part].update(values)))
        faults.append((fault, content, (begins(lines, key) + said,)))

    def accept(fault: str, change: Callable[..., object]) -> None:
        faults.append((fault, written(change)[0], count))

    def misplaced(start: int, text: str = WORDS[chosen]) -> str:
        return f"{name}: the answer {text!r} is not at character {start}"

    no_text, no_question = f"{name}: no 'text' of type str", f"{name}: no 'question' of type str"
    for start in (3, 5, -1, -4, 400, 10**30):
        refuse("answer's place", "answer_start", misplaced(start), answer_start=start)
    for start in (4.0, "4", None, True, [4]):
        refuse("type", "answer_start", f"{name}: no 'answer_start' of type int", answer_start=start)
    for text in ("", " ", "\u00a0"):
        said = f"{name}: the answer {text!r} is empty; an unanswerable question has no answers"
        refuse("empty text", "answer_start", said, text=text)
    refuse("type", "answer_start", no_text, text=None)
    refuse("missing column", "answer_start", no_text, lambda p, q, a: a.pop("text"))
    refuse("answer's place", "answer_start", misplaced(4, WORDS[chosen].title()), text=WORDS[chosen].title())
    refuse("answer's place", "answer_start", misplaced(4),
           lambda p, q, a: p.update(context="\U0001f600" + p["context"]))  # fmt: skip
    refuse("answer's place", "answer_start", f"{misplaced(6)}, but at that byte; offsets count",
           lambda p, q, a: (p.update(context="Th\u20ac" + p["context"][3:]), a.update(answer_start=6)))  # fmt: skip
    for impossible in ("false", 1, 0.0, []):
        said = f"{name}: is_impossible {impossible!r} is not allowed; expected true or false"
        refuse("type", "question", said, is_impossible=impossible)
    refuse("unanswerable", "question", f"{name}: is_impossible is true, but there are answers", is_impossible=True)
    for answers in (None, {}, "none", 3):
        refuse("type", "question", f"{name}: no 'answers' of type list", answers=answers)
    refuse("nesting", "question", f"{name}: 'answers' holds 'Ada'; expected objects", answers=["Ada"])
    refuse("missing column", "question", f"{name}: no 'answers' of type list", lambda p, q, a: q.pop("answers"))
    refuse("missing column", "id", no_question, question=None)
    for identifier in (7, None, ["q"]):
        refuse("type", "question", "article 1: no 'id' of type str", id=identifier)
    for kind in (None, {}, "x"):
        refuse("type", "context", "article 1: no 'qas' of type list", qas=kind)
    refuse("nesting", "context", "article 1: 'qas' holds [1]; expected objects", qas=[[1]])
    for context in (None, 5, ["a"]):
        refuse("type", "context", "article 1: no 'context' of type str", context=context)
    content, lines = written(lambda p, q, a: q.update(id="q0" if chosen else "q1"))
    twice = ("q0", chosen) if chosen else ("q1", 1)
    faults.append(("twice", content, (begins(lines, "id", twice[1]) + f"question {twice[0]}: the id occurs twice",)))

    text = json.dumps(right, indent=1)
    lines = text.split("\n")
    faults += line_faults(draw, "f.json", lines, count)
    for whole, place, said in (
        *((top, "1:1", "not SQuAD: the top level has no list called 'data'")
          for top in ("[]", "null", '{"data": {}}', '{"data": "x"}')),
        ('{"data":\n[5]}', "1:1", "'data' holds 5; expected objects"),
        ('{"data":\n[{}]}', "2:2", "article 1: no 'paragraphs' of type list"),
        ('{"data":\n[{"paragraphs": {}}]}', "2:2", "article 1: no 'paragraphs' of type list"),
        ('{"data":\n[{"paragraphs": [""]}]}', "2:2", "article 1: 'paragraphs' holds ''; expected objects"),
        ('{"data":\n[{"title": 5, "paragraphs": []}]}', "2:2", "article 1: title 5 is not allowed; expected text"),
        ('{"data": [{"title": "a\\ud800"}]}', "1", "'\\ud800' is half of a character"),
        ('{"data": [{"title": "a", "title": "b"}]}', "1", "not json: the key 'title' occurs twice"),
        (f'{{"data": {DEEP}', "1", "not json: nested too deeply"),
        ('{"data":' * 50_000, "1", "not json: nested too deeply"),
        (f'{{"data":\n {NUMBERS}}}', "1", "not json: a number of more than"),
        (text + "\n}", f"{len(lines) + 1}:1", "not json: Extra data"),
        (text.replace('"', "'"), "2:2", "not json: Expecting property name"),
        ('{\n"data": [,]}', "2:10", "not json: Expecting value"),
    ):  # fmt: skip
        faults.append(("not the format", whole.encode(), (f"f.json:{place}: {said}",)))
    faults.append(("empty file", b'{"data": []}', ("f.json: no question in it",)))
    faults.append(("empty file", b'{"data": [{"paragraphs": []}]}', ("f.json: no question in it",)))
    cut = draw.randrange(len(text) // 2, len(text) - 10)
    faults.append(("truncated", text[:cut].encode(), tuple(f"f.json:{line + 1}:" for line in range(len(lines)))))
    faults.append(("truncated", text[:-1].encode(), (f"f.json:{len(lines) - 1}:3: not json: Expecting ',' delimiter",)))
    accept("unanswerable", lambda p, q, a: q.update(is_impossible=True, answers=[]))
    accept("unanswerable", lambda p, q, a: q.update(is_impossible=True, plausible_answers=[a], answers=[]))
    accept("unanswerable", lambda p, q, a: (q.update(is_impossible=True), q.pop("answers")))
    accept("missing column", lambda p, q, a: q.update(is_impossible=None))
    accept("one letter", lambda p, q, a: (p.update(context="a"), a.update(text="a", answer_start=0)))
    accept("emoji", lambda p, q, a: (p.update(context="\U0001f600"), a.update(text="\U0001f600", answer_start=0)))
    accept("twice", lambda p, q, a: q["answers"].append(a))
    accept("10 MB line", lambda p, q, a: p.update(context=p["context"] + LONG))
    yield from cases_of("SQuAD", "f.json", _read_questions, faults, {"dev.json": json.dumps(HELD_OUT).encode()})
    for fault, change, said in (
        ("white space", lambda p, q, a: a.update(text=f" {a['text']} ", answer_start=3), "1 answers of train begin or"),
        ("empty text", lambda p, q, a: q.update(question=" "), "1 questions of train have no text"),
        ("empty text", lambda p, q, a: (p.update(context=""), q.update(answers=[])), "1 questions of train are on an"),
    ):
        content, beside = written(change)[0], {"dev.json": json.dumps(HELD_OUT).encode()}
        yield Case("SQuAD", fault, "f.json", content, _read_questions, count, said, beside)


def _read_questions(path: Path) -> tuple[int, list[str]]:
    counts, findings = count_questions({"train": path, "dev": Path("dev.json")})
    return counts["train"]["questions"], findings


def xml_cases(draw: Random) -> Iterator[Case]:
    """SemEval's xml; a row is an aspect term."""
    count = draw.randint(4, 8)
    chosen = draw.randrange(count)
    entries = [
        f'<sentence id="s{row}"><text>{sentence(draw)}</text><aspectTerms>'
        f'<aspectTerm term="{draw.choice(WORDS)}" polarity="{row % 2}"/></aspectTerms></sentence>'
        for row in range(count)
    ]
    place = f"f.xml: sentence s{chosen}: "

    def changed(old: str, new: str, head: str = "") -> bytes:
        lines = [*entries[:chosen], entries[chosen].replace(old, new, 1), *entries[chosen + 1 :]]
        return "\n".join([f"{head}<sentences>", *lines, "</sentences>"]).encode()

    right, line = changed("", ""), f"f.xml:{chosen + 2}:"
    laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE s [<!ENTITY a0 "ha">{laughs}]>'
    long = f'<!DOCTYPE s [<!ENTITY a "{"a" * 100_000}">]>'
    outside = '<!DOCTYPE s [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    faults: list[Fault] = [
        ("empty file", b"", ("f.xml:1:1: not xml: no element found",)),
        ("no file", None, ("f.xml: no such file",)),
        ("truncated", right[:-12], (f"f.xml:{count + 2}:1: not xml: no element found",)),
        ("truncated", right[: len(right) // 2], tuple(f"f.xml:{row + 2}:" for row in range(count))),
        ("nesting", changed("</text>", ""), (f"{line}", )),
        ("nesting", changed("<text>", "<text><text>"), (f"{line}",)),
        ("nesting", changed("<text>", "<text>" + "<b>" * 200_000), (f"{line}",)),
        ("encoding", changed("<text>", "<text>\u00e9").decode().encode("latin-1"), (line,)),
        ("encoding", right.decode().encode("utf-16"), count),
        ("encoding", b'<?xml version="1.0" encoding="latin-1"?>'
         + changed("<text>", "<text>\u00e9").decode().encode("latin-1"), count),
        ("encoding", b'<?xml version="1.0" encoding="klingon"?>' + right, ("f.xml:1:31:", "f.xml:1: ")),
        ("surrogate", changed("<text>", "<text>&#xd83d;"), (line,)),
        ("NUL", changed("<text>", "<text>\0"), (line,)),
        ("NUL", changed("<text>", "<text>&#0;"), (line,)),
        ("BOM", b"\xef\xbb\xbf" + right, count),
        ("line ends", right.replace(b"\n", b"\r\n"), count),
        ("line ends", right.replace(b"\n", b"\r"), count),
        ("not the format", changed("<text>", "<text>fish & chips"), (line,)),
        ("not the format", b"text,label\na,1\n", ("f.xml:1:1: not xml: syntax error",)),
        ("not the format", b"<html><body/></html>", ("f.xml: no example in it",)),
        ("not the format", right + b"<more/>", (f"f.xml:{count + 2}:13: not xml: junk after document element",)),
        ("missing column", changed("<text>", "<a>").replace(b"</text>", b"</a>"), ("f.xml:",)),
        ("missing column", right.replace(b"text>", b"txt>"), ("f.xml: sentence s0: text None is not allowed",)),
        ("missing column", changed('term="', 'word="'), (f"{place}an aspectTerm without 'term'",)),
        ("missing column", changed("polarity", "mood"), (f"{place}an aspectTerm without 'polarity'",)),
        ("label", changed('polarity="', 'polarity="" was="'), (f"{place}polarity '' is not allowed",)),
        ("label", changed('polarity="', 'polarity=" " was="'), (f"{place}polarity ' ' is not allowed; expected text",)),
        ("twice", changed('polarity="', 'polarity="1" polarity="'), (line,)),
        ("twice", changed(f'id="s{chosen}"', 'id="s"').replace(b'id="s0"', b'id="s"'), count),
        ("extra column", changed('polarity="', 'from="1" to="x" polarity="'), count),
        ("quotes", changed('polarity="', "polarity="), (line,)),
        ("emoji", changed("<text>", "<text>\U0001f600"), count),
        ("white space", changed("<text>", "<text>\t\u2003"), count),
        ("10 MB line", lambda: changed("<text>", f"<text>{LONG}"), count),
        ("entities", changed("<text>", "<text>&a;", '<!DOCTYPE s [<!ENTITY a "b">]>'), count),
        ("entities", changed("<text>", "<text>&b;"), (line,)),
        ("entities", changed("<text>", "<text>&a9;", bomb), (line, "f.xml:1:")),
        ("entities", changed("<text>", "<text>" + "&a;" * 20_000, long), (line, "f.xml:1:")),
        ("entities", changed("<text>", "<text>&a;", outside), (f"{line}",)),
    ]  # fmt: skip
    held_out = "".join(f'<sentence><text>a</text><aspectTerm term="b" polarity="{n}"/></sentence>' for n in (0, 1))
    beside = {"dev.xml": f"<sentences>{held_out}</sentences>".encode()}
    yield from cases_of("SemEval xml", "f.xml", _read_aspects, faults, beside)


def _read_aspects(path: Path) -> tuple[int, list[str]]:
    return read_task(path, label="polarity", dev="dev.xml")


def checkpoint_cases(draw: Random) -> Iterator[Case]:
    """A folder with a model and its tokenizer; a row is a token of the vocabulary."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefghijklmnopqrstuvwxyz"]
    size, where = len(tokens), "model/tokenizer.json: "
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {token: number for number, token in enumerate(tokens)}},
    }  # fmt: skip
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    config = {
        "model_type": "bert", "vocab_size": size, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 16, "pad_token_id": 0,
    }  # fmt: skip
    weights = save({"bert.embeddings.word_embeddings.weight": np.zeros((size, 8), np.float32)})
    right = {
        "model/tokenizer.json": json.dumps(tokenizer).encode(),
        "model/tokenizer_config.json": json.dumps(names).encode(),
        "model/config.json": json.dumps(config).encode(),
        "model/model.safetensors": weights,
    }

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
    yield case("twice", "tokenizer.json", with_model(vocab=dict.fromkeys(tokens, 3)),
               f"{where}not a tokenizer: [CLS] and [UNK] have the same id")  # fmt: skip
    yield case("huge number", "tokenizer.json", with_model(vocab={**tokenizer["model"]["vocab"], "x": 2**31}),
               f"model: the tokenizer has {2**31 + 1} tokens, but the model only {size} emb")  # fmt: skip
    yield case(
        "missing column",
        "tokenizer.json",
        None,
        "model: there is no tokenizer.json in it, nor vocab.txt to make one from",
    )
    few = {token: number for number, token in enumerate(tokens[:5])}
    yield case("one letter", "tokenizer.json", with_model(vocab={**few, "x": 5}, unk_token="no"), *no_tokenizer)
    for field, content in (
        ("not the format", b"[1]"), ("not the format", b"{"), ("encoding", b"\xff\xfe{}"), ("nesting", DEEP.encode()),
        ("huge number", f'{{"a": {NUMBERS}}}'.encode()), ("empty file", b""),
    ):  # fmt: skip
        yield case(field, "tokenizer_config.json", content, "model/tokenizer_config.json:")
        yield case(field, "config.json", content, "model/config.json:")
        yield case(field, "model.safetensors.index.json", content, "model/model.safetensors.index.json:")
    yield case("type", "tokenizer_config.json", b'{"cls_token": 5, "sep_token": ["x"]}')
    yield case("missing column", "tokenizer_config.json", b'{"cls_token": "[NO]"}')
    yield case("missing column", "config.json", None, "model: there is no config.json in it")
    for value in ("gone", None, 5, ["bert"], {}, "gpt", "../bert"):
        found = None if value == "gone" else value
        yield case("type", "config.json", with_config(model_type=value), f"model: model_type: {found!r} is not allowed")
    yield case("type", "config.json", with_config(model_type="llama"), "params.yaml: family: bert is not allowed; ")
    for value in ("gone", "many", None, [], 3.5, -1, 0):
        yield case("type", "config.json", with_config(vocab_size=value), "model/config.json: no model",
                   "model: the tokenizer has 43")  # fmt: skip
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
    for index in ({}, {"weight_map": {}}, {"weight_map": []}, {"weight_map": "x"}, {"weight_map": {"a": 5}}):
        yield case("type", "model.safetensors.index.json", json.dumps(index).encode(), "model/model.safetensors.index")
    for path in ("../model.safetensors", "/etc/passwd", "a/b.safetensors"):
        index = json.dumps({"weight_map": {"a": path}}).encode()
        yield case("not the format", "model.safetensors.index.json", index, "model/model.safetensors.index.json: ")


def _read_checkpoint(_: Path) -> tuple[int, list[str]]:
    origin, out = PinnedFolder(Path("model"), "0" * 12), Path("out")
    out.mkdir()
    copy_checkpoint(out, InitialCheckpoint(origin, "bert"), origin)
    assert read_json(out / "source.json")
    return load_tokenizer(out).size, []
