"""Data sets in parquet, as `datasets` writes it, in the published layout; some of the embedded corpus at toy size."""

import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset, DatasetInfo, Features, List, SplitDict, SplitInfo, Value
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCard, DatasetCardData

from stages.corpus.glue import Sentence, read_sentences
from stages.corpus.sample.corpus import SampleSettings, write_sample
from stages.corpus.source import questions_path, running_text, sentences_path
from stages.corpus.squad import Question, read_questions
from stages.corpus.text import UNKNOWN, text_path
from tests.toy import SAMPLE

WIKITEXT, GLUE = "Salesforce/wikitext", "nyu-mll/glue"
SQUAD, SQUAD_V1 = "rajpurkar/squad_v2", "rajpurkar/squad"
CONFIGS = {SQUAD: "squad_v2", SQUAD_V1: "plain_text"}

_TEXT = Features({"text": Value("string")})
_SENTENCES = Features(
    {"sentence": Value("string"), "label": ClassLabel(names=["negative", "positive"]), "idx": Value("int32")}
)
_ANSWERS = {"text": List(Value("string")), "answer_start": List(Value("int32"))}
_QUESTIONS = Features(
    {name: Value("string") for name in ("id", "title", "context", "question")} | {"answers": _ANSWERS}
)

Splits = dict[str, Dataset]
Files = dict[str, bytes]


@cache
def published_datasets() -> dict[str, Files]:
    """The files of each data set, by name."""
    with tempfile.TemporaryDirectory() as made:
        write_sample(Path(made), SampleSettings(**SAMPLE))
        return datasets_of(Path(made))


def datasets_of(source: Path) -> dict[str, Files]:
    """The same of any data source's folder."""
    text = {}
    for part in ("train", "valid", "test"):
        with text_path(running_text(source), part).open(encoding="utf-8") as file:
            text[part] = list(file)
    sentences = {part: read_sentences(sentences_path(source, part)) for part in ("train", "dev")}
    questions = {part: read_questions(questions_path(source, part)) for part in ("train", "dev")}
    return {WIKITEXT: wikitext(text), GLUE: glue(sentences), SQUAD: squad(SQUAD, questions)}


def wikitext(parts: Mapping[str, Sequence[str]]) -> Files:
    """WikiText-2 of the lines of `train`, `valid` and `test`; one of its configs has marks for words left out."""
    marked = any(UNKNOWN in line for line in parts["train"])
    raw, other = (_without_marks, str) if marked else (str, _without_names)
    return repository({"wikitext-2-raw-v1": _wikitext(parts, raw), "wikitext-2-v1": _wikitext(parts, other)})


def _wikitext(parts: Mapping[str, Sequence[str]], change: Callable[[str], str]) -> Splits:
    """A row a line, with its end; a line without text is a row without anything."""
    splits = {"test": "test", "train": "train", "validation": "valid"}
    rows = {
        split: [{"text": change(line) if line.strip() else ""} for line in parts[part]]
        for split, part in splits.items()
    }
    return {split: Dataset.from_list(found, _TEXT) for split, found in rows.items()}


def _without_marks(line: str) -> str:
    return " ".join(word for word in line.split(" ") if word != UNKNOWN)


def _without_names(line: str) -> str:
    return " ".join(UNKNOWN if word[:1].isupper() else word for word in line.split(" "))


def glue(parts: Mapping[str, Sequence[Sentence]]) -> Files:
    """SST-2 of `train` and `dev`: sentences end in a space, as published; the test split's labels are withheld."""

    def rows(part: str, labelled: bool) -> list[dict[str, Any]]:
        return [
            {"sentence": f"{sentence.text} ", "label": sentence.label if labelled else -1, "idx": number}
            for number, sentence in enumerate(parts[part])
        ]

    splits = {"train": rows("train", True), "validation": rows("dev", True), "test": rows("dev", False)}
    return repository({"sst2": {split: Dataset.from_list(found, _SENTENCES) for split, found in splits.items()}})


def squad(name: str, parts: Mapping[str, Sequence[Question]]) -> Files:
    """SQUAD or SQUAD_V1 of `train` and `dev`, a row a question; without an answer both lists are empty."""

    def rows(part: str) -> list[dict[str, Any]]:
        return [
            {
                "id": question.id,
                "title": question.title,
                "context": question.context,
                "question": question.text,
                "answers": {
                    "text": [answer.text for answer in question.answers],
                    "answer_start": [answer.start for answer in question.answers],
                },
            }
            for question in parts[part]
        ]

    splits = {"train": "train", "validation": "dev"}
    return repository(
        {CONFIGS[name]: {split: Dataset.from_list(rows(part), _QUESTIONS) for split, part in splits.items()}}
    )


def repository(configs: Mapping[str, Splits]) -> Files:
    """CONFIG/SPLIT-00000-of-00001.parquet and README.md, whose yaml names the configs and their features.

    The folder of a config that is called default is data.
    """
    files = {
        f"{_folder(config)}/{split}-00000-of-00001.parquet": _parquet(rows)
        for config, splits in configs.items()
        for split, rows in splits.items()
    }
    infos = DatasetInfosDict({config: _info(config, splits) for config, splits in configs.items()})
    card = DatasetCardData()
    infos.to_dataset_card_data(card)
    card["configs"] = [
        {
            "config_name": config,
            "data_files": [{"split": split, "path": f"{_folder(config)}/{split}-*"} for split in splits],
        }
        for config, splits in configs.items()
    ]
    return {**files, "README.md": str(DatasetCard(f"---\n{card}\n---\n\nA tiny stand-in.\n")).encode()}


def _folder(config: str) -> str:
    return "data" if config == "default" else config


def _info(config: str, splits: Splits) -> DatasetInfo:
    listed = {split: SplitInfo(split, rows.data.nbytes, len(rows)) for split, rows in splits.items()}
    size = sum(info.num_bytes for info in listed.values())
    features = next(iter(splits.values())).features
    return DatasetInfo(
        config_name=config, features=features, splits=SplitDict(listed), dataset_size=size, download_size=size
    )


def _parquet(rows: Dataset) -> bytes:
    buffer = io.BytesIO()
    rows.to_parquet(buffer)
    return buffer.getvalue()
