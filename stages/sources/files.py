"""Your own files: the folders that data/params.yaml names → data/files, checked, under the names that stages read.

Running text as WikiText's `wiki.{train,valid,test}.tokens` or plain `{train,valid,test}.txt`, sentences as GLUE's
`train.tsv` and `dev.tsv`, questions as SQuAD json, version 1.1 or 2.0. Instead of a validation file, a share of the
training data may be held out. There may be test files too. Findings are in data/files/card.json.

    python -m stages.sources.files
"""

from pathlib import Path

from retrace.core.errors import InputError, exit_cleanly
from retrace.core.paths import questions_path, sentences_path
from retrace.datasets.card import make_card, new_source, write_card
from retrace.datasets.splits import split_questions, split_sentences
from retrace.datasets.text import copied
from retrace.files.settings import FilesParams


def main() -> None:
    params = FilesParams.read()
    settings = params.files
    folders = {name: Path(getattr(settings, name)) for name in ("text", "sst2", "squad")}
    for name, folder in folders.items():
        if not folder.is_dir():
            raise InputError(f"data/params.yaml: files.{name}: {str(folder)!r} is not a folder")
    with new_source("files", folders.values(), params.settings) as folder, copied(settings.chosen(folder)):
        tasks = settings.tasks
        split_sentences(sentences_path(folder, "train"), sentences_path(folder, "dev"), tasks["sst2"])
        split_questions(questions_path(folder, "train"), questions_path(folder, "dev"), tasks["squad"])
        write_card(folder, make_card(folder))


if __name__ == "__main__":
    exit_cleanly(main)
