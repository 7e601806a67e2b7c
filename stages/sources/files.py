"""Your own files: the folders that data/params.yaml names → data/files, checked, under the names that stages read.

Running text as WikiText's `wiki.{train,valid,test}.tokens` or plain `{train,valid,test}.txt`, sentences as GLUE's
`train.tsv` and `dev.tsv`, questions as SQuAD json, version 1.1 or 2.0. Instead of a validation file, a share of the
training data may be held out. There may be test files too. Findings are in data/files/card.json.

    python -m stages.sources.files
"""

from pathlib import Path

from retrace.core.errors import InputError, exit_cleanly
from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import questions_path, sentences_path, source_folder
from retrace.core.records import SOURCES, timed
from retrace.datasets.card import make_card
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
    with (
        guarded("files", folders.values(), params.settings),
        timed("source", folder=SOURCES),
        atomic_folder(source_folder("files"), summed=True) as folder,
    ):
        with copied(settings.chosen(folder)):
            for task, path, split in (
                ("sst2", sentences_path, split_sentences), ("squad", questions_path, split_questions),
            ):  # fmt: skip
                train, dev, share = path(folder, "train"), path(folder, "dev"), settings.tasks[task].split
                if share is not None:
                    split(train, dev, share, settings.split_seed, settings.split_by)
            card = make_card(folder)
        write_json(folder / "card.json", card)
        print(*card["findings"], sep="\n")


if __name__ == "__main__":
    exit_cleanly(main)
