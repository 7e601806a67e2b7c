"""The matrix of fine-tuning: which tasks by which methods from which seeds, `finetune` in params.yaml."""

import re
from dataclasses import dataclass
from typing import Literal

from retrace.core.settings import LARGEST_SEED, require

SQUAD = "squad"
Kind = Literal["classification", "question_answering"]  # of a task
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")  # of a method: of folders, keys and DVC's stages too
TAKEN = ("baselines", "data", "health", "interval", "mean", "sd")  # stand beside methods among the figures
Names = tuple[str, ...]


@dataclass(frozen=True)
class Matrix:
    """Every method with every seed, on every task."""

    classification: Names  # tasks
    methods: Names  # labels under methods in params.yaml
    seeds: tuple[int, ...]
    squad: Names | None = None  # the methods for questions; those above where absent, and no questions where empty

    def __post_init__(self) -> None:
        for field in ("classification", "methods", "seeds", "squad"):
            listed = getattr(self, field) or ()
            require(len(set(listed)) == len(listed), field, list(listed), "expected each once")
        for field in ("methods", "seeds"):
            require(bool(getattr(self, field)), field, [], "expected at least one")
        require(bool(self.tasks), "classification", [], "expected at least one task where there are no questions")
        for field in ("methods", "squad"):
            for name in getattr(self, field) or ():
                fits = NAME.fullmatch(name) is not None and name not in TAKEN
                require(fits, field, name, f"expected letters, digits, _ and -, and none of {', '.join(TAKEN)}")
        for seed in self.seeds:
            require(0 <= seed <= LARGEST_SEED, "seeds", seed, f"expected 0 to {LARGEST_SEED}")

    @property
    def tasks(self) -> Names:
        """All tasks, that of questions last."""
        return (*self.classification, *([SQUAD] if self.methods_of(SQUAD) else []))

    @property
    def cells(self) -> set[str]:
        """task/method/seed, as each cell's folders are called."""
        return {
            f"{task}/{method}/{seed}" for task in self.tasks for method in self.methods_of(task) for seed in self.seeds
        }

    @property
    def every_method(self) -> Names:
        """The methods of any task, each once."""
        return tuple(dict.fromkeys([*self.methods, *self.methods_of(SQUAD)]))

    def kind_of(self, task: str) -> Kind:
        """The kind of a task."""
        return "question_answering" if task == SQUAD else "classification"

    def methods_of(self, task: str) -> Names:
        """The methods that a task is trained by."""
        return self.methods if task != SQUAD or self.squad is None else self.squad
