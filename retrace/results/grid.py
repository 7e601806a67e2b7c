"""The grid of fine-tuning runs, `finetune` in params.yaml: tasks, methods and seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from retrace.core.paths import QUESTIONS, TASKS
from retrace.core.settings import NAME, Section, Seed, build, require, require_each_once

SQUAD = "squad"
Kind = Literal["classification", "question_answering"]  # of a task
TAKEN = ("baselines", "data", "flags", "intervals", "mean", "methods", "std", "tie")  # other keys, and a verdict
Names = tuple[str, ...]
WEIGHTS, PREDICTIONS, RUNS = (Path(p) for p in ("models", "predictions", "reports/runs"))


@dataclass(frozen=True)
class Cell:
    """A fine-tuning run: a task, a method and a seed."""

    task: str
    method: str
    seed: int

    @property
    def path(self) -> Path:
        """Its folder under each of the output folders."""
        return Path(self.task) / self.method / str(self.seed)

    @property
    def title(self) -> str:
        """Its name for readers: sst2 full 1."""
        return " ".join(self.path.parts)

    @property
    def stage(self) -> str:
        """Its name in DVC's matrix, after the @: sst2-full-1; names may contain hyphens, so two cells may share one."""
        return "-".join(self.path.parts)


class Grid(Section):
    """Every method with every seed, on every task."""

    tasks: Names = Field(description="classification tasks: sst2, and those that data/params.yaml defines")
    methods: Annotated[Names, Field(min_length=1)] = Field(description="entries under methods, for classification")
    questions: Names = Field(
        default=(SQUAD,), description="question-answering tasks: squad, and those that data/params.yaml defines"
    )
    squad_methods: Names = Field(description="entries under methods, for questions; []: none")
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = Field(
        description="seeds of fine-tuning, for the new head, the order of the data and dropout"
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for field, listed in self:
            require_each_once(field, listed)
        require(bool(self.all_tasks), "tasks", (), "expected at least one task where there are no questions")
        both = sorted(set(self.tasks).intersection(self.questions))
        require(not both, "questions", both, "finetune.tasks has it too; leave it out of one of the two")
        for field in ("methods", "squad_methods"):
            for name in getattr(self, field):
                fits = NAME.fullmatch(name) is not None and name not in TAKEN
                require(fits, field, name, f"expected letters, digits, _ and -, and none of {', '.join(TAKEN)}")
        return self

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Self:
        """The grid in the settings; raises InputError if something in it is wrong."""
        return build(cls, params, "finetune")

    @property
    def all_tasks(self) -> Names:
        """All tasks, question answering last."""
        return (*self.tasks, *(self.questions if self.squad_methods else ()))

    @property
    def cells(self) -> list[Cell]:
        """Every cell."""
        return [cell for task in self.all_tasks for cell in self.cells_of(task)]

    @property
    def every_method(self) -> Names:
        """The methods of all tasks, each once."""
        return tuple(dict.fromkeys([*(self.methods if self.tasks else ()), *self.squad_methods]))

    def kind_of(self, task: str) -> Kind:
        """The kind of a task."""
        return "question_answering" if task in self.questions else "classification"

    def data_of(self, task: str) -> Path:
        """The folder of a task's data."""
        return (QUESTIONS if self.kind_of(task) == "question_answering" else TASKS) / task

    def methods_of(self, task: str) -> Names:
        """The methods that a task is fine-tuned with."""
        return self.squad_methods if task in self.questions else self.methods

    def cells_of(self, task: str) -> list[Cell]:
        """The cells of a task, method by method."""
        return [cell for method in self.methods_of(task) for cell in self.runs_of(task, method)]

    def runs_of(self, task: str, method: str) -> list[Cell]:
        """The cells of a task and a method, one for each seed."""
        return [Cell(task, method, seed) for seed in self.seeds]
