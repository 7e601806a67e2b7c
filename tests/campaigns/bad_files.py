"""Malformed files of data, made from valid ones, with what readers are to make of them.

What is expected follows from the fault: a byte that is put into a line is refused there, and a file whose rows are
whole is read with as many rows as it was made of.
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from retrace.datasets.examples import read_sentences
from retrace.datasets.text import read_documents
from retrace.files.settings import ClassificationSettings
from retrace.files.tasks import make_task_card, read_files
from tests.campaigns.cases import Case, Fault, cases_of

WORDS = ("river", "guild", "weaver", "song", "hall", "ale", "bridge", "lamp", "stone", "mill", "rope", "fern")
LONG = "long word " * (1 << 20)  # 10 MB
DEEP = "[" * 100_000
DEV = {"dev.jsonl": b'{"text": "held out", "label": "0"}\n{"text": "held back", "label": "1"}\n'}


def line_faults(draw: Random, name: str, lines: Sequence[str], rows: int) -> Iterator[Fault]:
    """What may befall any file of lines of ASCII; the first stays as it is."""
    number = draw.randrange(1, len(lines))
    while not lines[number]:
        number = draw.randrange(1, len(lines))
    column = draw.randrange(len(lines[number]))
    whole = "\n".join(lines) + "\n"
    at = sum(len(line) + 1 for line in lines[:number]) + column
    place = f"{name}:{number + 1}:{column + 1}: "

    def put(found: bytes) -> bytes:
        return whole[:at].encode() + found + whole[at:].encode()

    yield "encoding", put(b"\xe9"), (f"{place}byte 0xe9 is not UTF-8",)
    yield "encoding", put(b"\xc0\xaf"), (f"{place}byte 0xc0 is not UTF-8",)
    yield "encoding", whole.encode("utf-16"), (f"{name}:1:1: byte 0xff is not UTF-8",)
    yield "encoding", whole.encode("utf-16-le"), (f"{name}:1:2: a NUL",)
    yield "encoding", whole.encode("utf-32-be"), (f"{name}:1:1: a NUL",)
    yield "surrogate", put(b"\xed\xa0\x80"), (f"{place}byte 0xed is not UTF-8",)
    yield "NUL", put(b"\0"), (f"{place}a NUL",)
    yield "BOM", b"\xef\xbb\xbf" + whole.encode(), rows
    yield "line ends", whole.replace("\n", "\r\n").encode(), rows
    yield "line ends", "".join(line + draw.choice(("\n", "\r\n")) for line in lines).encode(), rows
    yield "line ends", whole.removesuffix("\n").encode(), rows
    yield "not the format", b"\x89PNG\r\n\x1a\n", (f"{name}:1:1: byte 0x89 is not UTF-8",)
    yield "not the format", b"\x1f\x8b\x08" + draw.randbytes(80), (f"{name}:1:2: byte 0x8b is not UTF-8",)
    yield "empty file", b"", (f"{name}: the file is empty",)
    yield "no file", None, (f"{name}: no such file",)


def sentence(draw: Random, words: int = 4) -> str:
    """Some words."""
    return " ".join(draw.choices(WORDS, k=words))


def text_cases(draw: Random) -> Iterator[Case]:
    """Running text; a row is a document."""
    count = draw.randint(3, 6)
    paragraphs = [f"{sentence(draw)} .\n{sentence(draw)} .\n" for _ in range(count)]
    plain = "\n".join(paragraphs)
    articles = "".join(f" \n = {draw.choice(WORDS)} = \n \n {each}" for each in paragraphs)
    empty = ("t.txt: no text in it",)
    faults: list[Fault] = [
        *line_faults(draw, "t.txt", plain.split("\n")[:-1], count),
        *line_faults(draw, "t.txt", articles.split("\n")[:-1], count),
        ("line ends", plain.replace("\n", "\r").encode(), count),
        ("truncated", plain.rstrip().rpartition("\n")[0].encode(), count),
        ("truncated", plain.encode()[:1], 1),
        ("empty text", b" \n\n\t\n", empty),
        ("empty text", b"\xef\xbb\xbf", empty),
        ("10 MB line", lambda: f"{LONG}\n\n{LONG}".encode(), 2),
        ("one letter", b"a", 1),
        ("emoji", "\U0001f600\n\n\U0001f468\u200d\U0001f469\u200d\U0001f467\n".encode(), 2),
        ("white space", plain.replace("\n\n", "\n \t\n\n\n").encode(), count),
        ("odd line ends", "one\x0ctwo\u2028three\x85four\n\nfive\n".encode(), 2),
        ("nesting", b" = A = \n one \n = = B = = \n two \n = = = C = = = \n three \n", 1),
    ]
    yield from cases_of("text", "t.txt", lambda path: (len(list(read_documents(path))), []), faults)


def table_faults(draw: Random, name: str, delimiter: str, column: str, empty: str) -> Iterator[Fault]:
    """Of a table of `column` and label, without quotes; a message about an empty one says no `empty`."""
    count = draw.randint(4, 9)
    texts = [sentence(draw) for _ in range(count)]
    labels = [str(row % 2) for row in range(count)]
    row = draw.randrange(count)
    place = f"{name}:{row + 2}: "
    header = delimiter.join((column, "label"))

    def table(*changed: str, head: str = header) -> bytes:
        lines = [delimiter.join(cells) for cells in zip(texts, labels, strict=True)]
        lines[row : row + 1] = changed or lines[row : row + 1]
        return "".join(f"{line}\n" for line in (head, *lines)).encode()

    def cells(*changed: str) -> bytes:
        return table(delimiter.join(changed))

    text, label = texts[row], labels[row]
    yield from line_faults(draw, name, table().decode().splitlines(), count)
    yield "blank lines", table("", delimiter.join((text, label)), "", ""), count
    yield "line ends", table().replace(b"\n", b"\r"), (f"{name}:1: not a row: a carriage return",)
    yield "line ends", cells(text + "\r" + text, label), (f"{place}not a row: a carriage return",)
    yield "missing column", table(text), (f"{place}1 columns where the header has 2",)
    yield "missing column", table(head=f"{column}{delimiter}mood"), (f"{name}:2: no column 'label'",)
    yield "missing column", table(head=f"body{delimiter}label"), (f"{name}:2: no column '{column}'",)
    yield "missing column", table().partition(b"\n")[2], (f"{name}:2: no column '{column}'",)
    yield "missing column", table().replace(delimiter.encode(), b";"), (f"{name}:2: no column '{column}'",)
    yield "extra column", cells(text, label, "x"), (f"{place}3 columns where the header has 2",)
    yield "extra column", cells(text, label, ""), (f"{place}3 columns where the header has 2",)
    yield "extra column", table(head=header + delimiter + "x"), (f"{name}:2: 2 columns where the header has 3",)
    yield "twice", table(head=f"label{delimiter}label"), (f"{name}:1: the header has the column 'label' twice",)
    yield "twice", cells(text, label) + cells(text, label).partition(b"\n")[2], 2 * count
    yield "truncated", table().rstrip()[:-2], (f"{name}:{count + 1}: 1 columns where the header has 2",)
    yield "truncated", f"{header}\n".encode(), (f"{name}: no {empty}",)
    yield "truncated", header.encode()[:3], (f"{name}: no {empty}",)
    for nothing in ("", " ", "\u00a0\u2003"):
        yield "empty text", cells(nothing, label), (f"{place}the {column} is empty",)
    yield "white space", cells(f"  {text} ", label), count
    yield "10 MB line", lambda: cells(LONG, label), count
    yield "one letter", cells("a", label), count
    yield "emoji", cells("\U0001f600", label), count
    yield "emoji", cells("\u0301", label), count
    yield "not the format", b"{}\n{}\n", (f"{name}:2: no column '{column}'",)


def sentence_cases(draw: Random) -> Iterator[Case]:
    """SST-2's table."""
    faults = list(table_faults(draw, "s.tsv", "\t", "sentence", "row below the header"))
    for label in ("1.0", "0.5", "", "2", "-1", "null", "True", "\uff11", "1 ", "nan", "9" * 400):
        content = f"sentence\tlabel\na\t1\nb\t{label}\n".encode()
        faults.append(("label", content, (f"s.tsv:3: label {label!r} is not allowed; expected 0 or 1",)))
    faults.append(("quotes", b'sentence\tlabel\n"a\t1\nb "c" d"\t0\n', 2))
    yield from cases_of("SST-2", "s.tsv", lambda path: (len(read_sentences(path)), []), faults)


def task_cases(draw: Random) -> Iterator[Case]:
    """Classification tasks as tsv and csv."""
    for name, delimiter in (("f.tsv", "\t"), ("f.csv", ",")):
        faults = list(table_faults(draw, name, delimiter, "text", "example in it"))
        for label in ("", " "):
            content = f"text\tlabel\na\t1\nb\t{label}\nc\t0\n".replace("\t", delimiter).encode()
            faults.append(("label", content, (f"{name}:3: label {label!r} is not allowed; expected text or a whole",)))
        one = "text\tlabel\na\t1\nb\t1.0\n".replace("\t", delimiter).encode()
        faults.append(("label", one, (f"{name}: every label is 1; expected two classes or more",)))
        yield from cases_of(name[2:], name, read_task, faults, DEV)
        odd = "text\tlabel\na\t1\nb\t0\nc\t0.5\n".replace("\t", delimiter).encode()
        yield Case(name[2:], "label", name, odd, read_task, 3, "dev has no example of 0.5", DEV)
    quotes: list[Fault] = [
        ("quotes", b'text,label\na,1\n"b,0\nc,1\nd,0\n', ("f.csv:3: not a row: unexpected end of data",)),
        ("quotes", b'text,label\na,1\n"b"c,0\n', ("f.csv:3: not a row: ',' expected after '\"'",)),
        ("quotes", b'text,label\na,1\n"b,0\nc,1\n"d",0\n', ("f.csv:3: not a row: ',' expected after '\"'",)),
        ("quotes", b'text,label\na,1\n"b,0\nc,1"\n', ("f.csv:3: 1 columns where the header has 2",)),
        ("quotes", b'text,label\na,1\nb "c",0\n"d ""e""\nf",1\n', 3),
        ("quotes", b'text,label\n"one\ntwo",1\nb,0\n,1\n', ("f.csv:5: the text is empty",)),
    ]
    yield from cases_of("csv", "f.csv", read_task, quotes, DEV)


def json_line_cases(draw: Random) -> Iterator[Case]:
    """Classification tasks as json lines."""
    count = draw.randint(4, 9)
    lines = [json.dumps({"text": sentence(draw), "label": row % 2}) for row in range(count)]
    row = draw.randrange(count)
    place = f"f.jsonl:{row + 1}: "

    def changed(line: str) -> bytes:
        return ("\n".join([*lines[:row], line, *lines[row + 1 :]]) + "\n").encode()

    def cells(text: str, label: str) -> bytes:
        return changed(f'{{"text": {text}, "label": {label}}}')

    faults: list[Fault] = list(line_faults(draw, "f.jsonl", lines, count))
    for written, seen in (
        ("0.5", "0.5"), ("null", "None"), ("true", "True"), ("[]", "[]"), ("{}", "{}"), ('""', "''"), ('" "', "' '"),
        ("NaN", "nan"), ("1e999", "inf"),
    ):  # fmt: skip
        faults.append(("label", cells('"a"', written), (f"{place}label {seen} is not allowed; expected text or",)))
    for written, seen in (("null", "None"), ("5", "5"), ("[]", "[]"), ('{"a": 1}', "{'a': 1}"), ("true", "True")):
        faults.append(("empty text", cells(written, "1"), (f"{place}text {seen} is not allowed; expected text",)))
    faults += [
        ("blank lines", changed(f"\n{lines[row]}\n\n"), count),
        ("label", cells('"a"', "1.0"), count),
        ("label", cells('"a"', "1" * 5000), (f"{place}not json: a number of more than",)),
        ("empty text", cells('" "', "1"), (f"{place}the text is empty",)),
        ("missing column", changed('{"label": 1}'), (f"{place}no column 'text'; the columns are: label",)),
        ("missing column", changed("{}"), (f"{place}no column 'text'; the columns are: ",)),
        ("extra column", changed('{"text": "a", "label": 1, "more": [NaN, {"x": null}]}'), count),
        ("twice", changed('{"text": "a", "label": 1, "label": 0}'), (f"{place}not json: the key 'label' occurs",)),
        ("truncated", changed('{"text": "a'), (f"f.jsonl:{row + 1}:10: not json: Unterminated string",)),
        ("truncated", changed('{"text": "a", '), (f"f.jsonl:{row + 1}:15: not json: ", f"f.jsonl:{row + 1}:13: ")),
        ("quotes", changed("{'text': 'a', 'label': 1}"), (f"f.jsonl:{row + 1}:2: not json: Expecting property",)),
        ("not the format", changed('{"text": "a", "label": 1} x'), (f"f.jsonl:{row + 1}:27: not json: Extra data",)),
        ("not the format", changed('["a", 1]'), (f"{place}not a json object",)),
        ("not the format", changed("a,1"), (f"f.jsonl:{row + 1}:1: not json: Expecting value",)),
        ("not the format", f"[{','.join(lines)}]".encode(), ("f.jsonl:1: not a json object",)),
        ("nesting", changed(DEEP), (f"{place}not json: nested too deeply",)),
        ("nesting", cells(DEEP, "1"), (f"{place}not json: nested too deeply",)),
        ("nesting", cells('{"a":' * 50_000, "1"), (f"{place}not json: nested too deeply",)),
        ("surrogate", cells('"a\\ud800"', "1"), (f"{place}'\\ud800' is half of a character",)),
        ("surrogate", cells('"\\udc00\\ud800"', "1"), (f"{place}'\\udc00' is half of a character",)),
        ("surrogate", cells('"\\ud83d\\ude00"', "1"), count),
        ("10 MB line", lambda: cells(json.dumps(LONG), "1"), count),
        ("10 MB line", lambda: cells('"a"', json.dumps([[]] * 2_000_000)), (f"{place}label ",)),
        ("one letter", cells('"a"', "1"), count),
        ("emoji", cells('"\U0001f600"', "1"), count),
    ]  # fmt: skip
    yield from cases_of("jsonl", "f.jsonl", read_task, faults, DEV)


def parquet_cases(draw: Random) -> Iterator[Case]:
    """Classification tasks as parquet."""
    count = draw.randint(4, 9)
    texts, row = [sentence(draw) for _ in range(count)], draw.randrange(count)
    labels, place = [number % 2 for number in range(count)], f"f.parquet: row {row + 1}: "

    def made(text: Any = None, label: Any = None, **more: Any) -> bytes:
        columns = {"text": texts if text is None else text, "label": labels if label is None else label, **more}
        return parquet({name: values for name, values in columns.items() if len(values)})

    def with_label(label: Any) -> list[Any]:
        return [*labels[:row], label, *labels[row + 1 :]]

    right, no_file = made(), ("f.parquet: not parquet: ",)
    broken = bytearray(b"\0") + texts[0].encode()[1:]
    broken[0] = 0xFF
    invalid = pa.array([bytes(broken), *(text.encode() for text in texts[1:])]).view(pa.string())
    faults: list[Fault] = [
        ("empty file", b"", no_file),
        ("no file", None, ("f.parquet: no such file",)),
        *(("truncated", right[: int(len(right) * part)], no_file) for part in (0.01, 0.25, 0.5, 0.99)),
        ("truncated", right[:-1], no_file),
        ("truncated", b"PAR1PAR1", no_file),
        ("not the format", b"text,label\na,1\n", no_file),
        ("not the format", right[:-8] + b"\xff\xff\xff\x7fPAR1", no_file),
        ("encoding", made(text=invalid), ("f.parquet: row 1: byte 0xff of text is not UTF-8",)),
        ("label", made(label=with_label(0.5)), (f"{place}label 0.5 is not allowed; expected text or",)),
        ("label", made(label=pa.array(with_label(None))), (f"{place}label None is not allowed; expected text or",)),
        ("label", made(label=[bool(label) for label in labels]), ("f.parquet: row 1: label False is not allowed",)),
        ("label", made(label=[float(label) for label in labels]), count),
        ("label", made(label=pa.array(map(str, labels)).dictionary_encode()), count),
        ("empty text", made(text=["  "] * count), ("f.parquet: row 1: the text is empty",)),
        ("empty text", made(text=pa.nulls(count, pa.string())), ("f.parquet: row 1: text None is not allowed",)),
        ("empty text", made(text=[b"a"] * count), ("f.parquet: row 1: text b'a' is not allowed; expected text",)),
        ("missing column", parquet({"text": texts}), ("f.parquet: row 1: no column 'label'; the columns are: text",)),
        ("nesting", made(text=[[text] for text in texts]), ("f.parquet: row 1: no column 'text'; the columns are",)),
        ("extra column", made(more=[[0.5]] * count, even=[{"a": None}] * count), count),
        ("twice", parquet_table(pa.table([texts, labels, labels], ["text", "label", "label"])),
         ("f.parquet: the column 'label' occurs twice",)),
        ("truncated", parquet_table(pa.table({"text": texts, "label": labels})[:0]), ("f.parquet: no example in it",)),
        ("emoji", made(text=["\U0001f600"] * count), count),
        ("10 MB line", lambda: made(text=[LONG, *texts[1:]]), count),
        # Files of kilobytes with gigabytes in them: one long page, a text that many rows refer to, runs of a number.
        ("zip bomb", lambda: made(text=["a" * (400 << 20), *texts[1:]]), ("f.parquet: it unpacks to more than",)),
        ("zip bomb", lambda: repeated("a" * (1 << 20), 100_000), ("f.parquet: it unpacks to more than",)),
        ("zip bomb", lambda: repeated("a", 30_000_000), ("f.parquet: it unpacks to more than",)),
        ("zip bomb", lambda: repeated("a" * 1000, 2_000_000), ("f.parquet: it unpacks to more than",)),
    ]  # fmt: skip
    yield from cases_of("parquet", "f.parquet", read_task, faults, DEV)


def parquet(columns: Mapping[str, Any]) -> bytes:
    """A parquet file of columns."""
    return parquet_table(pa.table(dict(columns)))


def parquet_table(table: pa.Table) -> bytes:
    """A parquet file of a table."""
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", store_schema=False)
    return file.getvalue()


def repeated(text: str, rows: int) -> bytes:
    """A parquet file of one text many times over, which it keeps once."""
    zeros = pa.array(bytes(4), pa.int32()) if rows == 0 else pa.array(memoryview(bytes(4 * rows)).cast("i"), pa.int32())
    table = pa.table({"text": pa.DictionaryArray.from_arrays(zeros, [text]), "label": zeros})
    return parquet_table(table)


def read_task(path: Path, **columns: str) -> tuple[int, list[str]]:
    """Read a file as the training data of a classification task."""
    settings = ClassificationSettings.model_validate({"folder": ".", "train": path.name, "dev": "dev.jsonl", **columns})
    data = read_files(settings, "classification.own")
    return len(data.parts["train"]), make_task_card(data)["findings"]
