"""Your own files: the folders that data/params.yaml names → data/files, checked, under the names that stages read.

Running text as WikiText's `wiki.{train,valid,test}.tokens` or plain `{train,valid,test}.txt`, sentences
as GLUE's `train.tsv` and `dev.tsv`, questions as SQuAD json, version 1.1 or 2.0. Where there is to be no
file for validation, a share of the training data is held out. There may be files for a test, too. What was found is
in data/files/card.json.

    python -m stages.sources.files
"""

import shutil
from pathlib import Path

from retrace.core.errors import InputError, exit_cleanly
from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import questions_path, sentences_path, source_folder
from retrace.datasets.card import make_card
from retrace.datasets.split import split_questions, split_sentences
from retrace.files.chosen import chosen_files
from retrace.files.settings import FilesParams, FilesSettings


def main() -> None:
    params = FilesParams.read()
    settings = params.files
    folders = [Path(settings.text), Path(settings.sst2), Path(settings.squad)]
    for name, folder in zip(("text", "sst2", "squad"), folders, strict=True):
        if not folder.is_dir():
            raise InputError(f"data/params.yaml: files.{name}: {str(folder)!r} is not a folder")
    with guarded("files", folders, params.settings), atomic_folder(source_folder("files")) as folder:
        for source, target in chosen_files(settings, folder):
            if not source.is_file():
                raise InputError(f"{source}: no such file")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        card = checked(settings, folder)
        write_json(folder / "card.json", card)
        print(*card["findings"], sep="\n")


def checked(settings: FilesSettings, folder: Path) -> dict:
    """The card of the copies, split where they are to be; what is wrong is said of the user's own file."""
    try:
        for paths, split, share in (
            (sentences_path, split_sentences, settings.sst2_split),
            (questions_path, split_questions, settings.squad_split),
        ):
            if share is not None:
                split(paths(folder, "train"), paths(folder, "dev"), share, settings.split_seed, settings.split_by)
        return make_card(folder)
    except InputError as error:
        message = str(error)
        for source, target in chosen_files(settings, folder):
            message = message.replace(str(target), str(source))
        raise InputError(message) from None


if __name__ == "__main__":
    exit_cleanly(main)
