"""Files of json that one stage writes and others read, as typed records; and where and when a result was made."""

import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from retrace.core.errors import InputError
from retrace.core.files import read_object, write_json
from retrace.core.paths import PROJECT

STAGES = Path("reports/runs/stages")
SOURCES = Path("reports/sources")  # apart from these: studies depend on them, and some need no text
LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
WRITTEN = (":!*dvc.lock", ":!*reports/*")  # by the pipeline itself while it runs


class Record(BaseModel):
    """A json object with typed keys, in the order of the fields; a field is left out where it has its default.

    `SPREAD` may name a field that is a mapping: its entries stand in the file beside the other keys.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    SPREAD: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        """The object as the file has it."""
        return self.model_dump(exclude_defaults=True)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The record of such an object."""
        return cls.model_validate(values, context=Path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The record in a file.

        Raises FileNotFoundError where there is none, InputError naming the first key that is not as expected.
        """
        try:
            return cls.from_json(read_object(path))
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, values: Any, info: ValidationInfo) -> Any:
        if not cls.SPREAD or info.context is not Path or not isinstance(values, dict):
            return values  # made by code and not read
        gathered = {name: value for name, value in values.items() if name not in cls.model_fields}
        return {name: value for name, value in values.items() if name in cls.model_fields} | {cls.SPREAD: gathered}

    @model_serializer(mode="wrap")
    def _spread(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in handler(self).items():
            found |= value if name == self.SPREAD else {name: value}
        return found


class Origin(Record):
    """Where and when a result was made."""

    commit: str | None  # None outside of a git repository
    clean: bool  # whether code and settings were those of the commit
    date: str  # the day, UTC
    machine: str  # its processor or GPU
    versions: dict[str, str]  # of Python and of the libraries that compute


class StageRecord(Record):
    """Time of a stage that trains nothing: reports/runs/stages/*.json and reports/sources/*.json."""

    seconds: float
    origin: Origin


class RunRecord(Record):
    """Time and memory of one training run, over all processes where nothing else is said: reports/runs/**.json.

    They vary from run to run, so they are kept apart from metrics.
    """

    updates: int
    seconds: float  # of training, without evaluation
    tokens_per_second: int
    waiting_percent: float  # of the seconds, waiting for data
    teraflops_per_second: float
    utilisation_percent: float | None  # of the devices' peak; None where that is not known
    peak_memory_mib: int  # of this process
    gpu_memory_mib: int | None  # of this process; None without a GPU
    parameters: int
    trained_parameters: int
    processes: int
    device: str  # cpu or cuda
    precision: str  # bf16 or fp32
    tokens: int = 0  # without padding
    origin: Origin | None = None


def find_origin(device: str | None = None) -> Origin:
    """The origin of what is made now; `device` is the name of a GPU."""
    changes = try_git("status", "--porcelain", "--untracked-files=no", "--", ".", *WRITTEN, folder=PROJECT)
    return Origin(
        commit=try_git("rev-parse", "HEAD", folder=PROJECT),
        clean=changes == "",
        date=datetime.now(UTC).date().isoformat(),
        machine=device or f"{_processor()}, {os.cpu_count()} cores",
        versions={"python": platform.python_version(), **{name: installed(name) for name in LIBRARIES}},
    )


@contextmanager
def timed(stage: str, is_main: bool = True, folder: Path = STAGES) -> Iterator[None]:
    """Write the time of a stage to `folder` when it is done; of several processes one writes."""
    start = time.perf_counter()
    yield
    if is_main:
        record = StageRecord(seconds=round(time.perf_counter() - start, 1), origin=find_origin())
        write_json(folder / f"{stage}.json", record.to_json())


def installed(library: str) -> str:
    """The version of a library that is installed, or "missing"."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "missing"


def git(*arguments: str, folder: Path = Path()) -> str:
    """What git prints in a folder, without the last line break.

    Raises InputError where there is no git, or it fails.
    """
    try:
        done = subprocess.run(("git", *arguments), cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"git: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0] or "it failed"
        raise InputError(f"{folder.absolute()}: git {arguments[0]}: {said}")
    return done.stdout.removesuffix("\n")


def try_git(*arguments: str, folder: Path = Path()) -> str | None:
    """The same; None where there is no git, or it fails."""
    try:
        return git(*arguments, folder=folder)
    except InputError:
        return None


def _processor() -> str:
    """The processor's name; Linux has it in a file."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
