"""What every data source writes: running text, the sentences of sst2 and the questions of squad, each with a card.

Each has a folder and a list of digests of its own, so that a changed label reruns nothing that reads questions.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self

from retrace.core.errors import InputError
from retrace.core.files import atomic_folder
from retrace.core.guard import guarded
from retrace.core.paths import DATA, QUESTIONS, TASKS, TEXT
from retrace.core.records import SOURCES, timed
from retrace.datasets.card import examples_card, questions_card, text_card, write_card
from retrace.datasets.examples import read_task
from retrace.datasets.settings import SourceParams


@dataclass(frozen=True)
class Source:
    """The three folders of a data source."""

    text: Path
    sst2: Path
    squad: Path

    @classmethod
    def within(cls, data: Path) -> Self:
        """Those of the source in the folder `data`."""
        return cls(data / TEXT.name, data / TASKS.name / "sst2", data / QUESTIONS.name / "squad")

    def write_cards(self, origins: Mapping[str, Any] | None = None) -> None:
        """Check and count what the folders hold; `origins` says by name where each is from, if that is known.

        Raises InputError naming the file and the place in it where running text or a question is malformed.
        """
        cards = {"text": text_card(self.text), "sst2": examples_card(read_task(self.sst2)),
                 "squad": questions_card(self.squad)}  # fmt: skip
        for name, card in cards.items():
            write_card(getattr(self, name), name, card | ({"origin": origins[name]} if origins else {}))


@contextmanager
def new_source(name: str, params: SourceParams, inputs: Collection[Path] = ()) -> Iterator[Source]:
    """Yield the folders of a data source to fill, while guarding its inputs and settings; record the time taken.

    They replace what was there one after another, and only once all are filled. If the stage is killed in between, DVC
    runs it again. Raises InputError if `data` chooses another source, whose folders these are.
    """
    if params.data != name:
        raise InputError(f"params.yaml: data: {params.data} is not allowed here; expected {name}")
    with guarded(name, inputs, params.settings), timed("source", folder=SOURCES), ExitStack() as stack:
        folders = astuple(Source.within(DATA))
        yield Source(*(stack.enter_context(atomic_folder(folder, summed=True)) for folder in folders))
