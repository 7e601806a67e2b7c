"""The user's own files: where they are, what they are called once copied, and dev split off train where it has none.

The official validation file is the test set then, where there is one: it is no part of what is trained on or chosen by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.corpus.glue import read_sentences
from stages.corpus.lines import numbered_lines
from stages.corpus.overlap import Key, keys_of, words_of
from stages.corpus.source import questions_path, running_text, sentences_path
from stages.corpus.split import SplitBy, groups_of, held_out_split
from stages.corpus.squad import Question, read_json_file, read_questions
from stages.corpus.text import PARTS, text_path
from stages.harness.records import write_json, write_text
from stages.harness.settings import require

SST2_TRAIN, SST2_DEV = "train.tsv", "dev.tsv"


@dataclass(frozen=True)
class FilesSettings:
    """Where the user's files are; folders relative to the project."""

    text: str
    sst2: str
    squad: str
    squad_train: str = "train-v2.0.json"  # file names within squad
    squad_dev: str = "dev-v2.0.json"
    sst2_test: str | None = None  # a further file within sst2, scored once at the end
    squad_test: str | None = None  # the same within squad
    sst2_split: float | None = None  # share of train.tsv that is trained on; the rest is dev, and dev.tsv, if any, test
    squad_split: float | None = None  # the same of questions
    split_seed: int = 1  # draws what is trained on
    split_by: SplitBy = "text"  # row: one by one, so that phrases of a sentence, or questions on a passage, are in both

    def __post_init__(self) -> None:
        for task, others in (("sst2", (SST2_TRAIN, SST2_DEV)), ("squad", (self.squad_train, self.squad_dev))):
            share, test = getattr(self, f"{task}_split"), getattr(self, f"{task}_test")
            require(share is None or 0 < share < 1, f"{task}_split", share, "expected between 0 and 1, or null")
            taken = others if share is None else others[:1]
            require(test not in taken, f"{task}_test", test, f"expected another file than {' and '.join(taken)}")

    @property
    def tests(self) -> dict[str, Path]:
        """The files of those tasks that have a test set."""
        found = {}
        for task, folder, dev in (("sst2", Path(self.sst2), SST2_DEV), ("squad", Path(self.squad), self.squad_dev)):
            test, share = getattr(self, f"{task}_test"), getattr(self, f"{task}_split")
            if test is None and share is not None and (folder / dev).is_file():
                test = dev
            if test is not None:
                found[task] = folder / test
        return found


def chosen_files(settings: FilesSettings, folder: Path) -> list[tuple[Path, Path]]:
    """The user's files and where each goes; a dev that is split off train is none of them."""
    text, sst2, squad = Path(settings.text), Path(settings.sst2), Path(settings.squad)
    pairs = []
    for part in PARTS:
        tokens, plain = text_path(text, part), text / f"{part}.txt"
        pairs.append(
            (plain if plain.is_file() and not tokens.is_file() else tokens, text_path(running_text(folder), part))
        )
    pairs.append((sst2 / SST2_TRAIN, sentences_path(folder, "train")))
    if settings.sst2_split is None:
        pairs.append((sst2 / SST2_DEV, sentences_path(folder, "dev")))
    pairs.append((squad / settings.squad_train, questions_path(folder, "train")))
    if settings.squad_split is None:
        pairs.append((squad / settings.squad_dev, questions_path(folder, "dev")))
    paths = {"sst2": sentences_path, "squad": questions_path}
    return pairs + [(source, paths[task](folder, "test")) for task, source in settings.tests.items()]


def split_sentences(train: Path, dev: Path, share: float, seed: int, by: SplitBy) -> None:
    """Move all but a share of the rows of `train` to `dev`; by text, the phrases of a sentence stay together.

    Raises InputError where a row is wrong or there are too few.
    """
    sentences = read_sentences(train)  # while the lines have the numbers that the user knows
    header, *rows = [line for _, line in numbered_lines(train) if line.strip()]
    groups = groups_of([words_of(sentence.text) for sentence in sentences]) if by == "text" else None
    for path, kept in zip((train, dev), held_out_split(rows, share, seed, str(train), groups), strict=True):
        write_text(path, "".join(f"{line}\n" for line in (header, *kept)))


def split_questions(train: Path, dev: Path, share: float, seed: int, by: SplitBy) -> None:
    """Move all but a share of the questions of `train` to `dev`; by text, those on a passage stay together.

    Raises InputError where a question is wrong or there are too few.
    """
    questions = read_questions(train)
    asked = [question.id for question in questions]
    groups = passages_of(questions) if by == "text" else None
    document = read_json_file(train)
    for path, kept in zip((train, dev), held_out_split(asked, share, seed, str(train), groups), strict=True):
        write_json(path, {**document, "data": _with_questions(document["data"], set(kept))})


def passages_of(questions: Sequence[Question]) -> list[int]:
    """The number of the passage that each question is on."""
    numbers: dict[Key, int] = {}
    return [
        numbers.setdefault(key, len(numbers)) for key in keys_of((question.context, None) for question in questions)
    ]


def _with_questions(articles: list[dict[str, Any]], kept: set[str]) -> list[dict[str, Any]]:
    found = []
    for article in articles:
        chosen = [
            {**paragraph, "qas": [qa for qa in paragraph["qas"] if qa["id"] in kept]}
            for paragraph in article["paragraphs"]
        ]
        paragraphs = [paragraph for paragraph in chosen if paragraph["qas"]]
        if paragraphs:
            found.append({**article, "paragraphs": paragraphs})
    return found
