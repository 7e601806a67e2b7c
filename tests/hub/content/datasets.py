"""Data sets in parquet, as `datasets` writes it, in the published layout; some of the embedded corpus at toy size."""

import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from datasets import ClassLabel, Dataset, DatasetInfo, Features, List, SplitDict, SplitInfo, Value
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCard, DatasetCardData

from retrace.core.paths import UNKNOWN, questions_path, running_text, sentences_path
from retrace.datasets.examples import Example, read_sentences
from retrace.datasets.squad import Question, read_questions
from retrace.datasets.text import text_path
from retrace.sample.corpus import SampleSettings, write_sample
from tests.toy import SAMPLE

WIKITEXT, GLUE = "Salesforce/wikitext", "nyu-mll/glue"
SQUAD, SQUAD_V1 = "rajpurkar/squad_v2", "rajpurkar/squad"
AG_NEWS, TOPICS = "fancyzhx/ag_news", ("World", "Sports", "Business", "Sci/Tech")
CONFIGS = {SQUAD: "squad_v2", SQUAD_V1: "plain_text"}
TWO_FILES = {("wikitext-103-raw-v1", "train"), ("wikitext-103-v1", "train")}
# What the heads of the published cards say beside configs and dataset_info.
HEADS: dict[str, dict[str, Any]] = {
    WIKITEXT: {"language": ["en"], "license": ["cc-by-sa-3.0", "gfdl"], "pretty_name": "WikiText"},
    GLUE: {"language": ["en"], "license": ["other"], "pretty_name": "GLUE"},
    SQUAD: {"language": ["en"], "license": "cc-by-sa-4.0", "pretty_name": "SQuAD2.0"},
    SQUAD_V1: {"language": ["en"], "license": "cc-by-sa-4.0", "pretty_name": "SQuAD"},
    AG_NEWS: {"language": ["en"], "license": ["unknown"], "pretty_name": "AG’s News Corpus"},
}

_TEXT = Features({"text": Value("string")})
_SENTENCES = Features(
    {"sentence": Value("string"), "label": ClassLabel(names=["negative", "positive"]), "idx": Value("int32")}
)
_ANSWERS = {"text": List(Value("string")), "answer_start": List(Value("int32"))}
_QUESTIONS = Features(
    {name: Value("string") for name in ("id", "title", "context", "question")} | {"answers": _ANSWERS}
)

_ENTAILMENT = ("entailment", "neutral", "contradiction")
_SPLITS = ("train", "validation", "test")
# Some of GLUE's other tasks: the columns of their texts, their classes, their splits. stsb has a number for a class.
_TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "ax": (("premise", "hypothesis"), _ENTAILMENT, ("test",)),
    "cola": (("sentence",), ("unacceptable", "acceptable"), _SPLITS),
    "stsb": (("sentence1", "sentence2"), (), _SPLITS),
}

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
    """WikiText-2 of the lines of `train`, `valid` and `test`; where a config's name has no raw, words are left out.

    WikiText-103 comes first and has more to train on, in two files, and the same validation and test articles.
    """
    marked = any(UNKNOWN in line for line in parts["train"])
    raw, other = (_without_marks, str) if marked else (str, _without_names)
    large = {**parts, "train": [" = Another = \n", " words that no smaller config has \n", *parts["train"]]}
    configs = {
        "wikitext-103-raw-v1": _wikitext(large, raw),
        "wikitext-103-v1": _wikitext(large, other),
        "wikitext-2-raw-v1": _wikitext(parts, raw),
        "wikitext-2-v1": _wikitext(parts, other),
    }
    return _headed(repository(configs), HEADS[WIKITEXT])


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


def glue(parts: Mapping[str, Sequence[Example]]) -> Files:
    """SST-2 of `train` and `dev`: sentences end in a space, as published; the test split's labels are withheld.

    It is one of four configs; the others have two rows a split.
    """

    def rows(part: str, labelled: bool) -> list[dict[str, Any]]:
        return [
            {"sentence": f"{sentence.text} ", "label": sentence.label if labelled else -1, "idx": number}
            for number, sentence in enumerate(parts[part])
        ]

    splits = {"train": rows("train", True), "validation": rows("dev", True), "test": rows("dev", False)}
    sst2 = {split: Dataset.from_list(found, _SENTENCES) for split, found in splits.items()}
    configs = {"sst2": sst2, **{name: _task(*of) for name, of in _TASKS.items()}}
    configs = {name: configs[name] for name in sorted(configs)}
    return _headed(repository(configs), {**HEADS[GLUE], "config_names": list(configs)})


def _task(columns: tuple[str, ...], classes: tuple[str, ...], splits: tuple[str, ...]) -> Splits:
    label = ClassLabel(names=list(classes)) if classes else Value("float32")
    features = Features({**{name: Value("string") for name in columns}, "label": label, "idx": Value("int32")})

    def rows(split: str) -> list[dict[str, Any]]:
        return [
            {**dict.fromkeys(columns, f"text {number}"), "label": -1 if "test" in split else number, "idx": number}
            for number in range(2)
        ]

    return {split: Dataset.from_list(rows(split), features) for split in splits}


def ag_news(parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> Files:
    """AG News of rows of `train` and `test` with text and label, a number; it has one config and lies in data."""
    features = Features({"text": Value("string"), "label": ClassLabel(names=list(TOPICS))})
    splits = {part: Dataset.from_list([dict(row) for row in parts[part]], features) for part in ("train", "test")}
    return _headed(repository({"default": splits}), HEADS[AG_NEWS])


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
    configs = {CONFIGS[name]: {split: Dataset.from_list(rows(part), _QUESTIONS) for split, part in splits.items()}}
    return _headed(repository(configs), HEADS[name])


def repository(configs: Mapping[str, Splits]) -> Files:
    """CONFIG/SPLIT-00000-of-00001.parquet and README.md, whose yaml names the configs and their features.

    The folder of a config that is called default is data; TWO_FILES says which splits are in more than one.
    """
    files: dict[str, dict[str, bytes]] = {config: {} for config in configs}
    for config, splits in configs.items():
        for split, rows in splits.items():
            count = 2 if (config, split) in TWO_FILES else 1
            for number in range(count):
                path = f"{_folder(config)}/{split}-{number:05}-of-{count:05}.parquet"
                files[config][path] = _parquet(rows.shard(count, number))
    infos = DatasetInfosDict(
        {config: _info(config, splits, sum(map(len, files[config].values()))) for config, splits in configs.items()}
    )
    card = DatasetCardData()
    infos.to_dataset_card_data(card)
    card["dataset_info"] = _in_words_of_then(card["dataset_info"])
    card["configs"] = [
        {
            "config_name": config,
            "data_files": [{"split": split, "path": f"{_folder(config)}/{split}-*"} for split in splits],
        }
        for config, splits in configs.items()
    ]
    readme = str(DatasetCard(f"---\n{card}\n---\n\nA tiny stand-in.\n")).encode()
    return {**{path: data for of in files.values() for path, data in of.items()}, "README.md": readme}


def _headed(files: Files, head: Mapping[str, Any]) -> Files:
    """With what else the yaml of a card has, before the rest."""
    said = yaml.safe_dump(dict(head), sort_keys=False, allow_unicode=True).encode()
    return {**files, "README.md": files["README.md"].replace(b"---\n", b"---\n" + said, 1)}


def _folder(config: str) -> str:
    return "data" if config == "default" else config


def _info(config: str, splits: Splits, download_size: int) -> DatasetInfo:
    listed = {split: SplitInfo(split, rows.data.nbytes, len(rows)) for split, rows in splits.items()}
    size = sum(info.num_bytes for info in listed.values())
    features = next(iter(splits.values())).features
    return DatasetInfo(
        config_name=config, features=features, splits=SplitDict(listed), dataset_size=size, download_size=download_size
    )


def _in_words_of_then(info: Any) -> Any:
    """Features as the published cards have them: lists in a struct were a sequence of structs before datasets 4."""
    if isinstance(info, list):
        return [_in_words_of_then(one) for one in info]
    for feature in info["features"]:
        if "struct" in feature:
            columns = feature.pop("struct")
            feature["sequence"] = [{"name": column["name"], "dtype": column["list"]} for column in columns]
    return info


def _parquet(rows: Dataset) -> bytes:
    """A file as the published ones are, with the features of that time in its metadata."""
    features: dict[str, Any] = dict(rows.features.to_dict())
    for name, feature in features.items():
        if "_type" not in feature:  # a struct of lists
            columns = {column: of["feature"] for column, of in feature.items()}
            features[name] = {"feature": columns, "_type": "Sequence"}
    said = json.dumps({"info": {"features": features}})
    buffer = io.BytesIO()
    pq.write_table(rows.data.table.replace_schema_metadata({"huggingface": said}), buffer)
    return buffer.getvalue()
