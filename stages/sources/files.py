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
from retrace.files.settings import FilesParams, check_files


def main() -> None:
    params = FilesParams.read()
    settings = params.files
    text, sentences, questions = Path(settings.text), settings.sst2, settings.squad
    if not text.is_dir():
        raise InputError(f"data/params.yaml: files.text: {settings.text!r} is not a folder")
    check_files(sentences, "files.sst2")
    check_files(questions, "files.squad")
    read = (text, Path(sentences.folder), Path(questions.folder))
    with new_source("files", read, params.settings) as folder, copied(settings.chosen(folder)):
        split_sentences(sentences_path(folder, "train"), sentences_path(folder, "dev"), sentences)
        split_questions(questions_path(folder, "train"), questions_path(folder, "dev"), questions)
        write_card(folder, make_card(folder))


if __name__ == "__main__":
    exit_cleanly(main)
