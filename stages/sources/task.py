"""A further task in files: its entry in data/params.yaml → data/classification/<task>, data/question_answering/<task>.

The examples of a classification task are checked and written as json lines with text, second text and class number; the
class names are in classes.json. Questions stay in SQuAD's format. Counts and findings are in card.json.

    python -m stages.sources.task classification --task ag_news
"""

import argparse
from pathlib import Path

from retrace.core.errors import exit_cleanly
from retrace.core.guard import guarded
from retrace.core.settings import entry_name
from retrace.files.settings import ClassificationParams, ClassificationSettings, QuestionAnsweringParams, check_files
from retrace.files.tasks import read_files, write_questions_source, write_task_source

KINDS = {"classification": ClassificationParams, "question_answering": QuestionAnsweringParams}


def main() -> None:
    parser = argparse.ArgumentParser(description="Read and check a further task.")
    parser.add_argument("kind", choices=KINDS, help="the section of data/params.yaml")
    parser.add_argument("--task", type=entry_name, required=True, help="an entry in it")
    asked = parser.parse_args()
    kind, task = asked.kind, asked.task
    params, key = KINDS[kind].read(key=task), f"{kind}.{task}"
    settings = params.task
    check_files(settings, key)
    with guarded(f"{kind}-{task}", [Path(settings.folder)], params.settings):
        if isinstance(settings, ClassificationSettings):
            write_task_source(task, read_files(settings, key))
        else:
            write_questions_source(task, settings)


if __name__ == "__main__":
    exit_cleanly(main)
