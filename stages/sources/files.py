"""Your own files: the folders that data/params.yaml names → running text, sst2 and squad in data/, checked.

Running text is WikiText's `wiki.{train,valid,test}.tokens` or plain `{train,valid,test}.txt`; sentences are GLUE's
`train.tsv` and `dev.tsv`; questions are SQuAD json, version 1.1 or 2.0. Instead of a validation file, a share of the
training data may be held out. Sentences and questions may have a test file too. Each folder's card.json lists findings.

    python -m stages.sources.files
"""

from pathlib import Path

from retrace.core.errors import exit_cleanly
from retrace.datasets.examples import SENTIMENTS, TaskData, read_sentences, write_task
from retrace.datasets.source import new_source
from retrace.datasets.splits import split_questions, split_rows
from retrace.datasets.text import copied
from retrace.files.settings import FilesParams, check_files, check_text


def main() -> None:
    params = FilesParams.read()
    settings = params.files
    text, sentences, questions = Path(settings.text), settings.sst2, settings.squad
    check_text(settings)
    check_files(sentences, "files.sst2")
    check_files(questions, "files.squad")
    read = (text, Path(sentences.folder), Path(questions.folder))
    with new_source("files", params, read) as source, copied(settings.copies(source)):
        found = {part: read_sentences(path) for part, path in sentences.paths.items()}
        write_task(source.sst2, TaskData(SENTIMENTS, split_rows(found, sentences, str(sentences.paths["train"]))))
        split_questions(source.squad, questions)
        source.write_cards()


if __name__ == "__main__":
    exit_cleanly(main)
