"""The three data sets in parquet, as `datasets` writes it, from the embedded corpus at toy size."""

import io
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset, DatasetInfo, Features, List, SplitDict, SplitInfo, Value
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCard, DatasetCardData

from stages.corpus.glue import read_sentences
from stages.corpus.sample.corpus import SampleSettings, write_sample
from stages.corpus.source import questions_path, running_text, sentences_path
from stages.corpus.squad import read_questions
from stages.corpus.text import text_path
from tests.toy import SAMPLE

WIKITEXT, GLUE, SQUAD = "Salesforce/wikitext", "nyu-mll/glue", "rajpurkar/squad_v2"

_TEXT = Features({"text": Value("string")})
_SENTENCES = Features(
    {"sentence": Value("string"), "label": ClassLabel(names=["negative", "positive"]), "idx": Value("int32")}
)
_ANSWERS = {"text": List(Value("string")), "answer_start": List(Value("int32"))}
_QUESTIONS = Features(
    {name: Value("string") for name in ("id", "title", "context", "question")} | {"answers": _ANSWERS}
)

Splits = dict[str, Dataset]


@cache
def published_datasets() -> dict[str, dict[str, bytes]]:
    """The files of each data set, by name."""
    with tempfile.TemporaryDirectory() as made:
        write_sample(Path(made), SampleSettings(**SAMPLE))
        return datasets_of(Path(made))


def datasets_of(source: Path) -> dict[str, dict[str, bytes]]:
    """The same of any data source's folder."""
    return {
        WIKITEXT: _repository(
            {"wikitext-2-raw-v1": _wikitext(source, str), "wikitext-2-v1": _wikitext(source, _without_names)}
        ),
        GLUE: _repository({"sst2": _sst2(source)}),
        SQUAD: _repository({"squad_v2": _squad(source)}),
    }


def _wikitext(source: Path, change: Callable[[str], str]) -> Splits:
    """A row a line, with its end; a line without text is a row without anything."""

    def rows(part: str) -> list[dict[str, Any]]:
        with text_path(running_text(source), part).open(encoding="utf-8") as file:
            return [{"text": change(line) if line.strip() else ""} for line in file]

    parts = {"test": "test", "train": "train", "validation": "valid"}
    return {split: Dataset.from_list(rows(part), _TEXT) for split, part in parts.items()}


def _without_names(line: str) -> str:
    """The other config has marks for words that it left out."""
    return " ".join("<unk>" if word[:1].isupper() else word for word in line.split(" "))


def _sst2(source: Path) -> Splits:
    """Sentences end in a space, as the published ones do; the test split's labels are withheld."""

    def rows(part: str, labelled: bool) -> list[dict[str, Any]]:
        found = read_sentences(sentences_path(source, part))
        return [
            {"sentence": f"{sentence.text} ", "label": sentence.label if labelled else -1, "idx": number}
            for number, sentence in enumerate(found)
        ]

    splits = {"train": rows("train", True), "validation": rows("dev", True), "test": rows("dev", False)}
    return {split: Dataset.from_list(found, _SENTENCES) for split, found in splits.items()}


def _squad(source: Path) -> Splits:
    """A row a question; without an answer both lists are empty."""

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
            for question in read_questions(questions_path(source, part))
        ]

    return {
        split: Dataset.from_list(rows(part), _QUESTIONS) for split, part in (("train", "train"), ("validation", "dev"))
    }


def _repository(configs: dict[str, Splits]) -> dict[str, bytes]:
    """CONFIG/SPLIT-00000-of-00001.parquet and README.md, whose yaml names the configs and their features."""
    files = {
        f"{config}/{split}-00000-of-00001.parquet": _parquet(rows)
        for config, splits in configs.items()
        for split, rows in splits.items()
    }
    infos = DatasetInfosDict({config: _info(config, splits) for config, splits in configs.items()})
    card = DatasetCardData()
    infos.to_dataset_card_data(card)
    card["configs"] = [
        {
            "config_name": config,
            "data_files": [{"split": split, "path": f"{config}/{split}-*"} for split in splits],
        }
        for config, splits in configs.items()
    ]
    return {**files, "README.md": str(DatasetCard(f"---\n{card}\n---\n\nA tiny stand-in.\n")).encode()}


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
