"""A further question-answering set: files in SQuAD's format that its entry in data/params.yaml names →
data/question_answering/<task>/{train,dev,test}.json, checked, with counts and findings in card.json.

    python -m stages.sources.question_answering --task newsqa
"""

import argparse
from pathlib import Path

from retrace.core.errors import exit_cleanly
from retrace.core.guard import guarded
from retrace.sources.settings import QuestionAnsweringParams
from retrace.sources.tasks import check_files, write_questions_source


def main() -> None:
    parser = argparse.ArgumentParser(description="Read and check a question-answering set.")
    parser.add_argument("--task", required=True, help="an entry under question_answering in data/params.yaml")
    task = parser.parse_args().task
    params = QuestionAnsweringParams.read(key=task)
    settings = params.task
    check_files(settings, f"question_answering.{task}")
    with guarded(f"question_answering-{task}", [Path(settings.folder)], params.settings):
        write_questions_source(task, settings)


if __name__ == "__main__":
    exit_cleanly(main)
