"""Malformed data files, made from valid ones, and what readers should do with them.

The expected outcome follows from the fault: a byte inserted into a line is refused there, and a file whose rows are
intact is read with as many rows as it was made from.
"""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from retrace.datasets.card import examples_card
from retrace.datasets.examples import read_sentences
from retrace.datasets.text import read_documents
from retrace.files.settings import ClassificationSettings
from retrace.files.tasks import read_files
from tests.campaigns.cases import Case, Fault, cases_of

WORDS = ("river", "guild", "weaver", "song", "hall", "ale", "bridge", "lamp", "stone", "mill", "rope", "fern")
LONG = "long word " * (1 << 20)  # 10 MB
DEEP = "[" * 100_000
DEV = {"dev.jsonl": b'{"text": "held out", "label": "0"}\n{"text": "held back", "label": "1"}\n'}


def line_faults(draw: Random, lines: Sequence[str], rows: int) -> Iterator[Fault]:
    """Faults of any file of ASCII lines; the first leaves it as it is."""
    number = draw.choice([number for number, line in enumerate(lines) if number and line])
    column = draw.randrange(len(lines[number]))
    whole, place = "\n".join(lines) + "\n", f":{number + 1}:{column + 1}: "
    at = sum(len(line) + 1 for line in lines[:number]) + column
    first, rest = whole[:at].encode(), whole[at:].encode()
    yield from (
        ("encoding", first + b"\xe9" + rest, f"{place}byte 0xe9 is not UTF-8"),
        ("encoding", first + b"\xc0\xaf" + rest, f"{place}byte 0xc0 is not UTF-8"),
        ("surrogate", first + b"\xed\xa0\x80" + rest, f"{place}byte 0xed is not UTF-8"),
        ("NUL", first + b"\0" + rest, f"{place}a NUL"),
        ("encoding", whole.encode("utf-16"), ":1:1: byte 0xff is not UTF-8"),
        ("encoding", whole.encode("utf-16-le"), ":1:2: a NUL"), ("encoding", whole.encode("utf-32-be"), ":1:1: a NUL"),
        ("not the format", b"\x89PNG\r\n\x1a\n", ":1:1: byte 0x89 is not UTF-8"),
        ("not the format", b"\x1f\x8b\x08" + draw.randbytes(80), ":1:2: byte 0x8b is not UTF-8"),
        ("empty file", b"", ": the file is empty"), ("no file", None, ": no such file"),
        ("BOM", b"\xef\xbb\xbf" + whole.encode(), rows), ("line ends", whole.replace("\n", "\r\n").encode(), rows),
        ("line ends", "".join(line + draw.choice(("\n", "\r\n")) for line in lines).encode(), rows),
        ("line ends", whole.removesuffix("\n").encode(), rows),
    )  # fmt: skip


def sentence(draw: Random) -> str:
    """Four words."""
    return " ".join(draw.choices(WORDS, k=4))


def text_cases(draw: Random) -> Iterator[Case]:
    """Running text; a row is a document."""
    count = draw.randint(3, 6)
    paragraphs = [f"{sentence(draw)} .\n{sentence(draw)} .\n" for _ in range(count)]
    plain = "\n".join(paragraphs)
    articles = "".join(f" \n = {draw.choice(WORDS)} = \n \n {each}" for each in paragraphs)
    faults: list[Fault] = [
        *line_faults(draw, plain.split("\n")[:-1], count),
        *line_faults(draw, articles.split("\n")[:-1], count),
        ("line ends", plain.replace("\n", "\r").encode(), count),
        ("truncated", plain.rstrip().rpartition("\n")[0].encode(), count),
        ("truncated", plain.encode()[:1], 1),
        *(("empty text", nothing, ": it contains no text") for nothing in (b" \n\n\t\n", b"\xef\xbb\xbf")),
        ("10 MB line", lambda: f"{LONG}\n\n{LONG}".encode(), 2),
        ("one letter", b"a", 1),
        ("emoji", "\U0001f600\n\n\U0001f468\u200d\U0001f469\u200d\U0001f467\n".encode(), 2),
        ("white space", plain.replace("\n\n", "\n \t\n\n\n").encode(), count),
        ("odd line ends", "one\x0ctwo\u2028three\x85four\n\nfive\n".encode(), 2),
        ("nesting", b" = A = \n one \n = = B = = \n two \n = = = C = = = \n three \n", 1),
    ]
    yield from cases_of("text", "t.txt", lambda path: (len(list(read_documents(path))), []), faults)


def table_faults(draw: Random, delimiter: str, column: str, empty: str) -> Iterator[Fault]:
    """Faults of a table of `column` and label, without quotes; `empty` is what is said of one without rows."""
    count = draw.randint(4, 9)
    texts = [sentence(draw) for _ in range(count)]
    labels = [str(row % 2) for row in range(count)]
    row = draw.randrange(count)
    place = f":{row + 2}: "
    header = delimiter.join((column, "label"))

    def table(*changed: str, head: str = header) -> bytes:
        lines = [delimiter.join(cells) for cells in zip(texts, labels, strict=True)]
        lines[row : row + 1] = changed or lines[row : row + 1]
        return "".join(f"{line}\n" for line in (head, *lines)).encode()

    def cells(*changed: str) -> bytes:
        return table(delimiter.join(changed))

    text, label, no_label = texts[row], labels[row], ":2: no column 'label'"
    no_text, no_row = f":2: no column '{column}'", f": {empty}"
    yield from line_faults(draw, table().decode().splitlines(), count)
    yield from (
        ("line ends", table().replace(b"\n", b"\r"), ":1: not a row: a carriage return"),
        ("line ends", cells(text + "\r" + text, label), f"{place}not a row: a carriage return"),
        ("missing column", table(text), f"{place}columns: 1; expected 2, as in the header"),
        ("missing column", table(head=f"{column}{delimiter}mood"), no_label),
        ("missing column", table(head=f"body{delimiter}label"), no_text),
        ("missing column", table().partition(b"\n")[2], no_text),
        ("missing column", table().replace(delimiter.encode(), b";"), no_text),
        ("extra column", cells(text, label, "x"), f"{place}columns: 3; expected 2, as in the header"),
        ("extra column", cells(text, label, ""), f"{place}columns: 3; expected 2, as in the header"),
        ("extra column", table(head=header + delimiter + "x"), ":2: columns: 2; expected 3, as in the header"),
        ("twice", table(head=f"label{delimiter}label"), ":1: the header has the column 'label' twice"),
        ("truncated", table().rstrip()[:-2], f":{count + 1}: columns: 1; expected 2, as in the header"),
        ("truncated", f"{header}\n".encode(), no_row), ("truncated", header.encode()[:3], no_row),
        *(("empty text", cells(blank, label), f"{place}the {column} is empty") for blank in ("", " ", "\u00a0\u2003")),
        ("not the format", b"{}\n{}\n", no_text),
        ("blank lines", table("", delimiter.join((text, label)), "", ""), count),
        ("twice", cells(text, label) + cells(text, label).partition(b"\n")[2], 2 * count),
        ("10 MB line", lambda: cells(LONG, label), count), ("white space", cells(f"  {text} ", label), count),
        *((fault, cells(odd, label), count)
          for fault, odd in (("one letter", "a"), ("emoji", "\U0001f600"), ("emoji", "\u0301"))),
    )  # fmt: skip


def sentence_cases(draw: Random) -> Iterator[Case]:
    """SST-2's table."""
    faults = list(table_faults(draw, "\t", "sentence", "no row below the header"))
    for label in ("1.0", "0.5", "", "2", "-1", "null", "True", "\uff11", "1 ", "nan", "9" * 400):
        content = f"sentence\tlabel\na\t1\nb\t{label}\n".encode()
        faults.append(("label", content, f":3: label {label!r} is not allowed; expected 0 or 1"))
    faults.append(("quotes", b'sentence\tlabel\n"a\t1\nb "c" d"\t0\n', 2))
    yield from cases_of("SST-2", "s.tsv", lambda path: (len(read_sentences(path)), []), faults)


def task_cases(draw: Random) -> Iterator[Case]:
    """Classification tasks as tsv and csv."""
    for name, mark in (("f.tsv", "\t"), ("f.csv", ",")):
        faults = list(table_faults(draw, mark, "text", "it contains no example"))
        for label in ("", " "):
            content = f"text{mark}label\na{mark}1\nb{mark}{label}\nc{mark}0\n".encode()
            faults.append(("label", content, f":3: label {label!r} is not allowed; expected text or a whole"))
        one, odd = (f"text{mark}label\na{mark}1\nb{mark}{labels}\n".encode() for labels in ("1.0", f"0\nc{mark}0.5"))
        faults.append(("label", one, ": every label is 1; expected two classes or more"))
        yield from cases_of(name[2:], name, read_task, faults, DEV)
        yield Case(name[2:], "label", name, odd, read_task, 3, "dev has no example of 0.5", DEV)
    quotes: list[Fault] = [
        ("quotes", b'text,label\na,1\n"b,0\nc,1\nd,0\n', ":3: not a row: a quote in it is never closed"),
        ("quotes", b'text,label\na,1\n"b"c,0\n', ":3: not a row: ',' expected after '\"'"),
        ("quotes", b'text,label\na,1\n"b,0\nc,1\n"d",0\n', ":3: not a row: ',' expected after '\"'"),
        ("quotes", b'text,label\na,1\n"b,0\nc,1"\n', ":3: columns: 1; expected 2, as in the header"),
        ("quotes", b'text,label\na,1\nb "c",0\n"d ""e""\nf",1\n', 3),
        ("quotes", b'text,label\n"one\ntwo",1\nb,0\n,1\n', ":5: the text is empty"),
    ]
    yield from cases_of("csv", "f.csv", read_task, quotes, DEV)


def json_line_cases(draw: Random) -> Iterator[Case]:
    """Classification tasks as json lines."""
    count = draw.randint(4, 9)
    lines = [json.dumps({"text": sentence(draw), "label": row % 2}) for row in range(count)]
    row = draw.randrange(count)
    place = f":{row + 1}:"

    def changed(line: str) -> bytes:
        return ("\n".join([*lines[:row], line, *lines[row + 1 :]]) + "\n").encode()

    def cells(text: str, label: str) -> bytes:
        return changed(f'{{"text": {text}, "label": {label}}}')

    labels = {"0.5": "0.5", "null": "None", "true": "True", "[]": "[]", "{}": "{}", '""': "''", '" "': "' '"}
    texts = {"null": "None", "5": "5", "[]": "[]", '{"a": 1}': "{'a': 1}", "true": "True"}
    deeply = f"{place} not json: maximum recursion depth"
    faults: list[Fault] = [
        *line_faults(draw, lines, count),
        *(("label", cells('"a"', written), f"{place} label {seen} is not allowed; expected text or")
          for written, seen in labels.items()),
        *(("label", cells('"a"', written), f"{place} not json: {written} is not a number")
          for written in ("NaN", "1e999")),
        *(("empty text", cells(written, "1"), f"{place} text {seen} is not allowed; expected text")
          for written, seen in texts.items()),
        ("label", cells('"a"', "1" * 5000), f"{place} not json: Exceeds the limit"),
        ("empty text", cells('" "', "1"), f"{place} the text is empty"),
        ("missing column", changed('{"label": 1}'), f"{place} no column 'text'; the columns are: label"),
        ("missing column", changed("{}"), f"{place} no column 'text'; the columns are: "),
        ("twice", changed('{"text": "a", "label": 1, "label": 0}'), f"{place} not json: the key 'label' occurs"),
        ("truncated", changed('{"text": "a'), f"{place}10: not json: Unterminated string"),
        ("quotes", changed("{'text': 'a', 'label': 1}"), f"{place}2: not json: Expecting property"),
        ("not the format", changed('{"text": "a", "label": 1} x'), f"{place}27: not json: Extra data"),
        ("not the format", changed('["a", 1]'), f"{place} not a json object"),
        ("not the format", changed("a,1"), f"{place}1: not json: Expecting value"),
        ("not the format", f"[{','.join(lines)}]".encode(), ":1: not a json object"),
        ("nesting", changed(DEEP), deeply), ("nesting", cells(DEEP, "1"), deeply),
        ("nesting", cells('{"a":' * 50_000, "1"), deeply),
        ("surrogate", cells('"a\\ud800"', "1"), f"{place} '\\ud800' is an unpaired surrogate"),
        ("surrogate", cells('"\\udc00\\ud800"', "1"), f"{place} '\\udc00' is an unpaired surrogate"),
        ("10 MB line", lambda: cells('"a"', json.dumps([[]] * 2_000_000)), f"{place} label "),
        ("truncated", changed('{"text": "a", '), (f"{place}15: not json: ", f"{place}13: ")),
        ("blank lines", changed(f"\n{lines[row]}\n\n"), count), ("label", cells('"a"', "1.0"), count),
        ("extra column", changed('{"text": "a", "label": 1, "more": [7, {"x": null}]}'), count),
        ("surrogate", cells('"\\ud83d\\ude00"', "1"), count), ("emoji", cells('"\U0001f600"', "1"), count),
        ("one letter", cells('"a"', "1"), count), ("10 MB line", lambda: cells(json.dumps(LONG), "1"), count),
    ]  # fmt: skip
    yield from cases_of("jsonl", "f.jsonl", read_task, faults, DEV)


def parquet_cases(draw: Random) -> Iterator[Case]:
    """Classification tasks as parquet."""
    count = draw.randint(4, 9)
    texts, row = [sentence(draw) for _ in range(count)], draw.randrange(count)
    labels = [number % 2 for number in range(count)]

    def made(text: Any = texts, label: Any = labels, **more: Any) -> bytes:
        return parquet(pa.table({"text": text, "label": label, **more}))

    def with_label(label: Any) -> list[Any]:
        return [*labels[:row], label, *labels[row + 1 :]]

    right, whole = made(), pa.table({"text": texts, "label": labels})
    invalid = pa.array([b"\xff" + texts[0].encode()[1:], *(text.encode() for text in texts[1:])]).view(pa.string())
    doubled = pa.table([texts, labels, labels], ["text", "label", "label"])
    cuts = [right[: int(len(right) * part)] for part in (0.01, 0.25, 0.5, 0.99)]
    faults: list[Fault] = [
        ("empty file", b"", ": not parquet: "), ("no file", None, ": no such file"),
        *(("truncated", content, ": not parquet: ") for content in (*cuts, right[:-1], b"PAR1PAR1")),
        ("not the format", b"text,label\na,1\n", ": not parquet: "),
        ("not the format", right[:-8] + b"\xff\xff\xff\x7fPAR1", ": not parquet: "),
        ("encoding", made(text=invalid), ": row 1: byte 0xff of text is not UTF-8"),
        ("label", made(label=with_label(0.5)), f": row {row + 1}: label 0.5 is not allowed; expected text or"),
        ("label", made(label=with_label(None)), f": row {row + 1}: label None is not allowed; expected text or"),
        ("label", made(label=[bool(label) for label in labels]), ": row 1: label False is not allowed"),
        ("empty text", made(text=["  "] * count), ": row 1: the text is empty"),
        ("empty text", made(text=pa.nulls(count, pa.string())), ": row 1: text None is not allowed"),
        ("empty text", made(text=[b"a"] * count), ": row 1: text b'a' is not allowed; expected text"),
        ("missing column", parquet(whole.select(["text"])), ": row 1: no column 'label'; the columns are: text"),
        ("nesting", made(text=[[text] for text in texts]), ": row 1: no column 'text'; the columns are"),
        ("twice", parquet(doubled), ": the column 'label' occurs twice"),
        ("truncated", parquet(whole[:0]), ": it contains no example"),
        # Kilobytes with gigabytes in them: a text that many rows refer to, runs of a number.
        ("zip bomb", lambda: repeated("a" * (1 << 20), 100_000), ": it unpacks to more than"),
        ("zip bomb", lambda: repeated("a", 30_000_000), ": it unpacks to more than"),
        ("zip bomb", lambda: repeated("a" * 1000, 2_000_000), ": it unpacks to more than"),
        ("label", made(label=[float(label) for label in labels]), count),
        ("label", made(label=pa.array(map(str, labels)).dictionary_encode()), count),
        ("extra column", made(more=[[0.5]] * count, even=[{"a": None}] * count), count),
        ("emoji", made(text=["\U0001f600"] * count), count),
        ("10 MB line", lambda: made(text=[LONG, *texts[1:]]), count),
    ]  # fmt: skip
    yield from cases_of("parquet", "f.parquet", read_task, faults, DEV)


def parquet(table: pa.Table) -> bytes:
    """A parquet file of a table."""
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", store_schema=False)
    return file.getvalue()


def repeated(text: str, rows: int) -> bytes:
    """A parquet file of one text many times over, which it keeps once."""
    zeros = pa.array(memoryview(bytes(4 * rows)).cast("i"), pa.int32())
    return parquet(pa.table({"text": pa.DictionaryArray.from_arrays(zeros, [text]), "label": zeros}))


def read_task(path: Path, **columns: str) -> tuple[int, list[str]]:
    """Read a file as the training data of a classification task."""
    given = {"folder": "data/own", "train": path.name, "dev": "dev.jsonl", **columns}
    settings = ClassificationSettings.model_validate(given).model_copy(update={"folder": "."})
    data = read_files(settings, "classification.own")
    return len(data.parts["train"]), examples_card(data)["findings"]
