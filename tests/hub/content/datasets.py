"""Data sets in parquet, as `datasets` writes it, in the published layout; some of the sample corpus at toy size."""

import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from datasets import ClassLabel, Dataset, Features, List, Value

from retrace.core.paths import questions_path
from retrace.datasets.examples import Example, read_examples
from retrace.datasets.source import Source
from retrace.datasets.squad import Question, read_questions
from retrace.datasets.text import PARTS, text_path
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

_STRING, _NUMBER = Value("string"), Value("int32")
_SENTENCES = Features(sentence=_STRING, label=ClassLabel(names=["negative", "positive"]), idx=_NUMBER)
_ANSWERS = {"text": List(_STRING), "answer_start": List(_NUMBER)}
_QUESTIONS = Features(id=_STRING, title=_STRING, context=_STRING, question=_STRING, answers=_ANSWERS)
# Some of GLUE's other tasks: the columns of their texts, their label, their splits.
_TASKS: dict[str, tuple[tuple[str, ...], ClassLabel, tuple[str, ...]]] = {
    "ax": (("premise", "hypothesis"), ClassLabel(names=["entailment", "neutral", "contradiction"]), ("test",)),
    "cola": (("sentence",), ClassLabel(names=["unacceptable", "acceptable"]), ("train", "validation", "test")),
}

Lines = dict[str, list[str]]  # of running text, by part
Splits = dict[str, Dataset]
Files = dict[str, bytes]


@cache
def published_datasets() -> dict[str, Files]:
    """The files of each data set, by name."""
    with tempfile.TemporaryDirectory() as made:
        source = Source.within(Path(made))
        write_sample(source, SampleSettings(**SAMPLE))
        text, sentences, questions = read_source(source)
        return {WIKITEXT: wikitext(text), GLUE: glue(sentences), SQUAD: squad(SQUAD, questions)}


def read_source(source: Source) -> tuple[Lines, dict[str, list[Example]], dict[str, list[Question]]]:
    """The lines of running text, sentences and questions of a data source, by part."""
    paths = {part: text_path(source.text, part) for part in PARTS}
    text = {part: io.StringIO(path.read_text(encoding="utf-8")).readlines() for part, path in paths.items()}
    sentences = {part: read_examples(source.sst2, part) for part in ("train", "dev")}
    questions = {part: read_questions(questions_path(source.squad, part)) for part in ("train", "dev")}
    return text, sentences, questions


def wikitext(parts: Lines) -> Files:
    """WikiText-2 in both of its configs, which have the same lines here.

    WikiText-103 comes first and has more to train on, in two files, and the same validation and test articles.
    """
    large = {**parts, "train": [" = Another = \n", " words that no smaller config has \n", *parts["train"]]}
    sizes = {"wikitext-103": _wikitext(large), "wikitext-2": _wikitext(parts)}
    configs = {f"{name}-{kind}": splits for name, splits in sizes.items() for kind in ("raw-v1", "v1")}
    return repository(configs, HEADS[WIKITEXT])


def _wikitext(parts: Lines) -> Splits:
    """A row a line, with its end; a line without text is a row without anything."""
    splits = {"test": "test", "train": "train", "validation": "valid"}
    lines = {split: [line if line.strip() else "" for line in parts[part]] for split, part in splits.items()}
    return {split: Dataset.from_dict({"text": text}, Features(text=_STRING)) for split, text in lines.items()}


def glue(parts: Mapping[str, Sequence[Example]]) -> Files:
    """SST-2 of `train` and `dev`: sentences end in a space, as published; the test split's labels are withheld.

    It is one of three configs; the others have two rows a split.
    """

    def rows(part: str, labelled: bool) -> Dataset:
        found = [
            {"sentence": f"{sentence.text} ", "label": sentence.label if labelled else -1, "idx": number}
            for number, sentence in enumerate(parts[part])
        ]
        return Dataset.from_list(found, _SENTENCES)

    sst2 = {"train": rows("train", True), "validation": rows("dev", True), "test": rows("dev", False)}
    configs = {**{name: _task(*of) for name, of in _TASKS.items()}, "sst2": sst2}
    configs = {name: configs[name] for name in sorted(configs)}
    return repository(configs, {**HEADS[GLUE], "config_names": list(configs)})


def _task(columns: tuple[str, ...], label: ClassLabel, splits: tuple[str, ...]) -> Splits:
    features = Features({**dict.fromkeys(columns, _STRING), "label": label, "idx": _NUMBER})
    labels, texts = {split: [-1, -1] if split == "test" else [0, 1] for split in splits}, ["text 0", "text 1"]
    rows = {split: {**dict.fromkeys(columns, texts), "label": labels[split], "idx": [0, 1]} for split in splits}
    return {split: Dataset.from_dict(found, features) for split, found in rows.items()}


def ag_news(parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> Files:
    """AG News of rows of `train` and `test` with text and label, a number; it has one config and lies in data."""
    features = Features(text=_STRING, label=ClassLabel(names=list(TOPICS)))
    splits = {part: Dataset.from_list([dict(row) for row in parts[part]], features) for part in ("train", "test")}
    return repository({"default": splits}, HEADS[AG_NEWS])


def squad(name: str, parts: Mapping[str, Sequence[Question]]) -> Files:
    """SQUAD or SQUAD_V1 of `train` and `dev`, a row a question; without an answer both lists are empty.

    Titles are not read, so that of an article is the beginning of its passage here.
    """

    def row(question: Question) -> dict[str, Any]:
        answers = {"text": [of.text for of in question.answers], "answer_start": [of.start for of in question.answers]}
        row = {"id": question.id, "title": question.context[:20], "context": question.context}
        return {**row, "question": question.text, "answers": answers}

    splits = {split: parts[part] for split, part in (("train", "train"), ("validation", "dev"))}
    made = {split: Dataset.from_list(list(map(row, of)), _QUESTIONS) for split, of in splits.items()}
    return repository({CONFIGS[name]: made}, HEADS[name])


def repository(configs: Mapping[str, Splits], head: Mapping[str, Any]) -> Files:
    """CONFIG/SPLIT-00000-of-00001.parquet and README.md, whose yaml names the configs and their features after a head.

    The folder of a config that is called default is data; TWO_FILES says which splits are in more than one.
    """
    files, infos, listed = dict[str, bytes](), list[dict[str, Any]](), list[dict[str, Any]]()
    for config, splits in configs.items():
        folder, there = "data" if config == "default" else config, len(files)
        for split, rows in splits.items():
            count = 2 if (config, split) in TWO_FILES else 1
            for number in range(count):
                files[f"{folder}/{split}-{number:05}-of-{count:05}.parquet"] = _parquet(rows.shard(count, number))
        sizes = [
            {"name": split, "num_bytes": rows.data.nbytes, "num_examples": len(rows)} for split, rows in splits.items()
        ]
        features = _in_words_of_then(next(iter(splits.values())).features._to_yaml_list())
        total = sum(size["num_bytes"] for size in sizes)
        info = {"config_name": config, "features": features, "splits": sizes, "dataset_size": total}
        infos.append({**info, "download_size": sum(map(len, [*files.values()][there:]))})
        data = [{"split": split, "path": f"{folder}/{split}-*"} for split in splits]
        listed.append({"config_name": config, "data_files": data})
    said = {**head, "dataset_info": infos if len(infos) > 1 else infos[0], "configs": listed}
    readme = f"---\n{yaml.safe_dump(said, sort_keys=False, allow_unicode=True)}---\n\nA tiny stand-in.\n"
    return {**files, "README.md": readme.encode()}


def _in_words_of_then(features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Features as the published cards have them: lists in a struct were a sequence of structs before datasets 4."""
    for feature in features:
        if "struct" in feature:
            columns = feature.pop("struct")
            feature["sequence"] = [{"name": column["name"], "dtype": column["list"]} for column in columns]
    return features


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
