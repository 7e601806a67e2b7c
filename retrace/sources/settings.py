"""Further tasks in the user's files: where they are, and of what kind."""

from pydantic import Field

from retrace.datasets.settings import SplitSettings, TaskParams, TaskSettings

FOLDER = Field(description="relative to the project")
PUBLISHED = Field(default=None, description="where the files are given out; named where they are missing")


class QuestionsSettings(SplitSettings):
    """A further question-answering set in SQuAD's format, version 1.1 or 2.0; train, dev and test are files."""

    folder: str = FOLDER
    published: str | None = PUBLISHED


class ClassificationSettings(TaskSettings):
    """A task in files; train, dev and test are their names."""

    folder: str = FOLDER
    published: str | None = PUBLISHED
    format: str | None = Field(default=None, description="tsv, csv, jsonl, parquet or xml; null: as the files end")


class ClassificationParams(TaskParams):
    """What stages/sources/task.py reads of a classification task."""

    task: ClassificationSettings = Field(alias="data/params.yaml:classification.${key}")


class QuestionAnsweringParams(TaskParams):
    """What stages/sources/task.py reads of a question-answering set."""

    task: QuestionsSettings = Field(alias="data/params.yaml:question_answering.${key}")
