"""The rounds of a soak: what is edited, reverted, killed and cleared away in each, all drawn from a seed beforehand.

An edit changes a setting or code. The values in place after a round follow from the draws alone, so any round can be
repeated on its own.
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from tests.toy import Project

State = dict[str, Any]  # what differs from the start, by name


class Edit(NamedTuple):
    """Something with a few possible values; it has the first at the start."""

    weight: int  # how often it is edited
    seconds: float  # of the stages that it reruns
    values: tuple[Any, ...]


class Kill(NamedTuple):
    """What is killed in a round, or asked to stop, and when."""

    victim: str  # stage, dvc, all, or stop for `retrace stop`
    moment: float  # seconds after `dvc repro` was started
    abandoned: bool  # the next round comes without the repro that would end this one


class Round(NamedTuple):
    """One of them."""

    number: int
    state: State
    kill: Kill | None
    chores: tuple[str, ...]  # after it


EDITS: Mapping[str, Edit] = {
    "review.tolerance.points": Edit(13, 2, (5, 4)),
    "metrics.bootstrap_samples": Edit(4, 5, (1000, 500)),
    "metrics.classification": Edit(
        6, 4, (["accuracy", "f1", "roc_auc"], ["accuracy", "f1", "matthews"], ["f1", "accuracy"])
    ),
    "metrics.every_epoch": Edit(4, 4, (["accuracy", "squad_v2"], ["accuracy", "f1", "squad_v2"])),
    "perplexity.seed": Edit(4, 5, (0, 1)),
    "perplexity.mask_rate": Edit(4, 5, (0.15, 0.3)),
    "sst2.lr": Edit(6, 5, (0.0005, 0.001)),
    "sst2.epochs": Edit(4, 6, (3, 2)),
    "sst2.max_length": Edit(3, 5, (48, 40)),
    "squad.lr": Edit(6, 6, (0.00035, 0.001)),
    "squad.epochs": Edit(3, 6, (2, 1)),
    "squad.max_answer_length": Edit(4, 6, (30, 10)),
    "methods.frozen.lr_factor": Edit(3, 5, (5, 3)),
    "finetune.methods": Edit(8, 6, (["full"], ["full", "frozen"], ["frozen"], ["full", "scratch"])),
    "finetune.squad_methods": Edit(6, 7, (["full"], ["full", "frozen"], [])),
    "finetune.seeds": Edit(3, 12, ([1], [1, 2], [2])),
    "lr": Edit(2, 14, (0.001, 0.002)),
    "pretrain.epochs": Edit(2, 14, (4, 3)),
    "pretrain.mask_rate": Edit(2, 14, (0.3, 0.2)),
    "model.layers": Edit(1, 14, (2, 1)),
    "family": Edit(1, 14, ("modernbert", "bert")),
    "tokenizer.vocab_size": Edit(1, 18, (400, 390)),
    "sample.reviews": Edit(1, 22, (60, 56)),
    "code of a metric": Edit(6, 4, (False, True)),
    "code of the page": Edit(8, 2, (False, True)),
    "code of tasks": Edit(3, 6, (False, True)),
    "code of a method": Edit(2, 6, (False, True)),
}
CODE: Mapping[str, tuple[str, str, str]] = {  # the file, and text in it before and after
    "code of a metric": ("retrace/evaluation/metrics/accuracy.py", "np.equal(outcome", "np.not_equal(outcome"),
    "code of the page": ("retrace/report/page.html.j2", ">To the report<", ">To the figures<"),
    "code of tasks": ("retrace/tasks/classification.py", '"""Logits', '"""The logits'),  # the same bytes
    "code of a method": ("retrace/methods/full.py", '"""', '"""Edited. '),
}
KINDS = {"edit": 60, "two edits": 8, "revert": 20, "start": 7, "nothing": 5}
BACK = 10  # rounds that a revert may go back
VICTIMS = {"stage": 10, "all": 8, "stop": 5, "dvc": 3}  # the last is slow: DVC is not started from the warm server
STARTING = 6.0  # seconds longer that it takes with it
KILLED, ABANDONED = 0.4, 0.3  # share of rounds in which something is killed, and share of those that are given up
CHORES = {"gc": 0.12, "gc of branches": 0.05, "killed gc": 0.05, "doctor": 0.25, "check": 0.06}  # how often


def drawn(count: int, draw: Random) -> Iterator[Round]:
    """This many rounds."""
    states = list[State]([{}])
    for number in range(1, count + 1):
        states.append(_after(states, draw))
        before, state = states[-2:]
        seconds = max((EDITS[name].seconds for name in _differing(before, state)), default=2.0)
        kill = None
        if draw.random() < KILLED:
            victim = _one(VICTIMS, draw)
            moment = draw.uniform(0.2, seconds + STARTING * (victim == "dvc"))
            kill = Kill(victim, round(moment, 2), draw.random() < ABANDONED)
        chores = tuple(name for name, share in CHORES.items() if draw.random() < share)
        yield Round(number, state, kill, () if kill and kill.abandoned else chores)


def set_state(project: Project, before: State, after: State) -> list[str]:
    """Edit what differs between two states; returns its names."""
    names = _differing(before, after)
    values = {name: after.get(name, EDITS[name].values[0]) for name in names}
    project.set_all({name: value for name, value in values.items() if name not in CODE})
    for name in set(names) & set(CODE):
        file, *texts = CODE[name]
        old, new = texts if values[name] else reversed(texts)
        path = project.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
    return names


def _after(states: list[State], draw: Random) -> State:
    """The state after the next round."""
    kind = _one(KINDS, draw)
    if kind == "start":
        return {}
    if kind == "revert":
        return draw.choice(states[-BACK:])
    state = dict(states[-1])
    for _ in range({"edit": 1, "two edits": 2, "nothing": 0}[kind]):
        name = _one({name: edit.weight for name, edit in EDITS.items()}, draw)
        first, *_ = EDITS[name].values
        old = state.pop(name, first)
        value = draw.choice([value for value in EDITS[name].values if value != old])
        state |= {} if value == first else {name: value}
    return state


def _differing(before: State, after: State) -> list[str]:
    return [name for name in EDITS if before.get(name) != after.get(name)]


def _one(weights: Mapping[str, int], draw: Random) -> str:
    return draw.choices([*weights], [*weights.values()])[0]
