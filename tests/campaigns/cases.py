"""A malformed input with its expected outcome, and a process with limits that reads many of them."""

import os
import resource
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import TimeoutError as Silence
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from retrace.core.errors import InputError

SECONDS, BYTES = 10, 1 << 30  # of processor time and of memory for one input; more is a hang, or too much

PATIENCE = 60  # seconds until a silent process is ended, on a machine that is busy with other work

Read = Callable[[Path], tuple[int, list[str]]]  # of a file: how many rows were read, and what is said of them
Content = bytes | Callable[[], bytes] | None  # made when needed where it is large; None: there is no file
# Its kind, the file, and how many rows are accepted, or what follows the file's name in the refusal.
Fault = tuple[str, Content, int | str | tuple[str, ...]]


@dataclass(frozen=True)
class Case:
    """An input and its expected outcome, which follows from its fault."""

    reader: str
    fault: str
    name: str  # of the file that is given to the reader
    content: Content
    read: Read
    # How many rows are accepted, or how the line of the refusal begins: in one of several ways where two things are
    # wrong at once.
    expected: int | tuple[str, ...]
    said: str = ""  # a part of what is said of accepted rows
    beside: Mapping[str, bytes] = field(default_factory=dict)  # other files of the folder

    def lay_out(self, folder: Path) -> None:
        """Write its files into a folder."""
        for name, content in {**self.beside, self.name: self.content}.items():
            if content is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content if isinstance(content, bytes) else content())


def cases_of(
    reader: str, name: str, read: Read, faults: Iterable[Fault], beside: Mapping[str, bytes] | None = None
) -> Iterator[Case]:
    """Every fault of a file for its reader."""
    for fault, content, expected in faults:
        if not isinstance(expected, int):
            expected = tuple(name + said for said in ((expected,) if isinstance(expected, str) else expected))
        yield Case(reader, fault, name, content, read, expected, beside=beside or {})


class Outcome(NamedTuple):
    """The outcome of reading an input."""

    problem: str  # empty if it is as expected
    seconds: float = 0.0
    mib: int = 0  # memory at its highest, over what there was before


def run_case(case: Case) -> Outcome:
    """Read an input in this process, in an empty folder, limited to a gigabyte more than the process has now."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        case.lay_out(Path(folder))
        os.chdir(folder)
        held, began = reset_memory(), time.process_time()
        try:
            found = read_case(case)
        finally:
            os.chdir(before)
        seconds, mib = time.process_time() - began, max(0, memory("VmHWM") - held) >> 20
    late = f"took {seconds:.1f} s" if seconds > SECONDS else ""
    return Outcome(_problem(case, found) or late, seconds, mib)


def run_cases(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Read inputs one by one in a separate process, which is ended if it hangs."""
    pool = get_context("fork").Pool(1, _cases.extend, [cases])
    for number in range(len(cases)):
        try:
            yield pool.apply_async(_run, [number]).get(PATIENCE)
        except Silence:
            pool.terminate()
            pool = get_context("fork").Pool(1, _cases.extend, [cases])
            yield Outcome(f"silent for {PATIENCE} s")
    pool.terminate()


_cases: list[Case] = []  # of the process that reads them


def _run(number: int) -> Outcome:
    return run_case(_cases[number])


def read_case(case: Case) -> tuple[int, list[str]] | str:
    """What the reader does with it; text is the line with which it is refused, or a traceback after a line break."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (memory("VmSize") + BYTES, limits[1]))
    try:
        return case.read(Path(case.name))
    except InputError as error:
        return str(error)
    except FileNotFoundError as error:
        return f"{error.filename}: no such file or folder"  # as `exit_cleanly` says it
    except BaseException:  # a panic of a Rust library is no Exception
        return f"\n{traceback.format_exc(limit=-4)}"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _problem(case: Case, found: tuple[int, list[str]] | str) -> str:
    """What is not as expected, if anything."""
    if isinstance(found, str):
        fits = isinstance(case.expected, tuple) and found.startswith(case.expected) and "\n" not in found
        return "" if fits else f"expected {case.expected!r}, was refused: {found[:2000]}"
    fits = found[0] == case.expected and any(case.said in line for line in [*found[1], ""])
    return "" if fits else f"expected {case.expected!r} and {case.said!r}, was accepted: {found}"


def reset_memory() -> int:
    """Forget the highest memory so far; bytes in use now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(name: str) -> int:
    """Bytes of a line of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))
