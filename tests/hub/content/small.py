"""The data of the studies' small runs: published data sets cut down, in rows spread evenly over all there are.

They are those of ../shared/data where that lies beside the checkout, else stand-ins for them.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

from retrace.datasets.examples import Example, read_sentences
from retrace.datasets.squad import Question, read_questions
from retrace.datasets.text import read_documents, text_path
from tests.hub.content.stand_in import write_stand_in
from tests.toy import ROOT

SHARED = ROOT.parent / "shared" / "data"
NEWS = "ag-news"

ARTICLES = {"train": 80, "valid": 30, "test": 30}  # of the running text
LINES = 6  # of an article, with its title
SENTENCES = {"train": 600, "dev": 300}
QUESTIONS = {"train": 480, "dev": 200}
PASSAGE = 70  # words of the longest; with its question it is read in 128 tokens
LABELLED = {"train": 300, "dev": 150, "test": 150}  # rows of other tasks; of SemEval, sentences

Row = TypeVar("Row")


@dataclass(frozen=True)
class Small:
    """All of it."""

    text: dict[str, list[str]]  # lines by part
    sentences: dict[str, list[Example]]
    answerable: dict[str, list[Question]]  # of SQuAD 1.1
    questions: dict[str, list[Question]]  # of SQuAD 2.0: a third without an answer, where there are so many
    news: dict[str, list[dict[str, Any]]]  # text and label, a number
    files: dict[str, dict[str, str]]  # of tasks that are one's own files: folder → name → content

    @property
    def documents(self) -> list[str]:
        """All that there is to train on, by which tokenizers are trained."""
        asked = self.answerable["train"] + self.questions["train"]
        return [
            *filter(str.strip, self.text["train"]),
            *(sentence.text for sentence in self.sentences["train"]),
            *dict.fromkeys(question.context for question in asked),
            *(question.text for question in asked),
            *(row["text"] for row in self.news["train"]),
        ]

    @property
    def science(self) -> list[str]:
        """What is written about science."""
        return [json.loads(line)["text"] for line in self.files["acl-arc"]["train.jsonl"].splitlines()]


@cache
def small_data() -> Small:
    """That of this machine."""
    if SHARED.is_dir():
        return cut_down(SHARED)
    with tempfile.TemporaryDirectory() as made:
        write_stand_in(Path(made))
        return cut_down(Path(made))


def cut_down(data: Path) -> Small:
    """The rows that are kept of the data sets in a folder."""

    def asked(**names: str) -> dict[str, list[Question]]:
        files = {part: read_questions(data / "squad" / f"{name}.json") for part, name in names.items()}
        return {part: _short(questions, QUESTIONS[part]) for part, questions in files.items()}

    jsonl = {name: _rows(data / name) for name in ("acl-arc", NEWS)}
    folder = data / "semeval14-restaurants"
    restaurants = {"Restaurants_Train.xml": "train", "Restaurants_Test_Gold.xml": "test"}
    reviews = {part: read_sentences(data / "sst2" / f"{part}.tsv") for part in SENTENCES}
    files = {name: {f"{part}.jsonl": "".join(rows) for part, rows in parts.items()} for name, parts in jsonl.items()}
    return Small(
        text={part: _lines(text_path(data / "wikitext-2", part), count) for part, count in ARTICLES.items()},
        sentences={part: spread(rows, SENTENCES[part], lambda row: row.label) for part, rows in reviews.items()},
        answerable=asked(train="train-v1.1", dev="dev-v1.1"),
        questions=asked(train="train-v2.0-10-articles", dev="dev-v2.0"),
        news={part: [json.loads(row) for row in rows] for part, rows in jsonl[NEWS].items()},
        files={**files, folder.name: {name: _terms(folder / name, LABELLED[of]) for name, of in restaurants.items()}},
    )


def spread(rows: Sequence[Row], count: int, label: Callable[[Row], Any] = lambda row: 0) -> list[Row]:
    """`count` of the rows, or all where there are fewer, in their order; every label has its share."""
    by_label = sorted(range(len(rows)), key=lambda place: (label(rows[place]), place))
    count = min(count, len(rows))
    return [rows[place] for place in sorted(by_label[number * len(rows) // count] for number in range(count))]


def _lines(path: Path, count: int) -> list[str]:
    """The beginnings of articles as WikiText has them."""
    lines = []
    for article in spread(list(read_documents(path)), count):
        for line in article.split("\n")[:LINES]:
            lines += [" \n", f" {line} \n", " \n"] if line.startswith("= ") else [f" {line} \n"]
    return lines


def _short(questions: Sequence[Question], count: int) -> list[Question]:
    """Questions on short passages; where some have no answer, those are a third if they can be."""
    short = [question for question in questions if len(question.context.split()) <= PASSAGE]
    without = spread([question for question in short if not question.answers], count // 3)
    kept = {question.id for question in without}
    kept |= {question.id for question in spread([each for each in short if each.answers], count - len(without))}
    return [question for question in short if question.id in kept]


def _rows(folder: Path) -> dict[str, list[str]]:
    """The lines that are kept of each jsonl file, by part."""
    texts = {path.stem: path.read_text().splitlines(keepends=True) for path in sorted(folder.glob("*.jsonl"))}
    return {
        part: spread(rows, LABELLED[part], lambda row: str(json.loads(row)["label"])) for part, rows in texts.items()
    }


def _terms(path: Path, count: int) -> str:
    """Sentences with aspect terms, every polarity having its share."""
    root = ElementTree.parse(path).getroot()
    found = [sentence for sentence in root if sentence.find(".//aspectTerm") is not None]
    kept = spread(found, count, lambda each: sorted({str(term.get("polarity")) for term in each.iter("aspectTerm")}))
    for sentence in set(root) - set(kept):
        root.remove(sentence)
    return ElementTree.tostring(root, encoding="unicode")
