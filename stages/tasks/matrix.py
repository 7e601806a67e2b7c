"""The matrix of fine-tuning: which tasks by which methods from which seeds, `finetune` in params.yaml."""

from dataclasses import dataclass

from stages.harness.settings import require

SQUAD = "squad"
Names = tuple[str, ...]


@dataclass(frozen=True)
class Matrix:
    """Every method with every seed, on every task."""

    classification: Names  # tasks
    methods: Names  # labels under methods in params.yaml
    seeds: tuple[int, ...]
    squad: Names | None = None  # the methods for questions; those above where absent, and no questions where empty

    def __post_init__(self) -> None:
        for field in ("classification", "methods", "seeds"):
            listed = getattr(self, field)
            require(len(set(listed)) == len(listed), field, list(listed), "expected each once")

    @property
    def tasks(self) -> Names:
        """All tasks, that of questions last."""
        return (*self.classification, *([SQUAD] if self.methods_of(SQUAD) else []))

    @property
    def every_method(self) -> Names:
        """The methods of any task, each once."""
        return tuple(dict.fromkeys([*self.methods, *self.methods_of(SQUAD)]))

    def methods_of(self, task: str) -> Names:
        """The methods that a task is trained by."""
        return self.methods if task != SQUAD or self.squad is None else self.squad
