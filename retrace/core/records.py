"""Typed records of the json files that stages hand to each other; and where and when a result was made."""

import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_serializer, model_validator

from retrace.core.environment import cores
from retrace.core.errors import InputError, first_line
from retrace.core.files import read_object, write_json
from retrace.core.paths import PROJECT, WORKSPACES

STAGES = Path("reports/runs/stages")
SOURCES = Path("reports/sources")  # a folder of its own, as studies depend on STAGES
LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
WRITTEN = (":!*dvc.lock", ":!*reports/*")  # by the pipeline itself while it runs


class Record(BaseModel):
    """A json object with typed keys, in the order of the fields; fields with default values are left out.

    `SPREAD` may name a field that is a mapping: in the file its entries stand beside the other keys.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    SPREAD: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        """The object as it is in the file."""
        return self.model_dump(exclude_defaults=True)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The record in an object read from a file."""
        return cls.model_validate(values, context={"from_file": True})

    @classmethod
    def read(cls, path: Path) -> Self:
        """The record in a file.

        Raises FileNotFoundError if it is absent, InputError naming the first key that is not as expected.
        """
        try:
            return cls.from_json(read_object(path))
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, values: Any, info: ValidationInfo) -> Any:
        if not (cls.SPREAD and info.context and isinstance(values, dict)):
            return values  # made by code, not read from a file
        gathered = {name: value for name, value in values.items() if name not in cls.model_fields}
        return {name: value for name, value in values.items() if name in cls.model_fields} | {cls.SPREAD: gathered}

    @model_serializer(mode="wrap")
    def _spread(self, as_fields: Callable[[Self], dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in as_fields(self).items():
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
    """Time of a stage without training: reports/runs/stages/*.json and reports/sources/*.json."""

    seconds: float
    origin: Origin


class RunRecord(Record):
    """Time and memory of one training run, over all processes unless noted: reports/runs/**.json.

    They vary from run to run, so they are kept apart from metrics.
    """

    updates: int
    seconds: float  # of training, without evaluation
    evaluation_seconds: float | None = None  # of evaluation during training; None: not recorded
    tokens_per_second: int
    waiting_percent: float  # share of `seconds` spent waiting for data
    teraflops_per_second: float
    utilisation_percent: float | None  # of the devices' peak; None if the peak is unknown
    peak_memory_mib: int  # of this process
    gpu_memory_mib: int | None  # of this process; None without a GPU
    parameters: int
    trained_parameters: int
    processes: int
    device: str  # cpu or cuda
    precision: str  # bf16 or fp32
    tokens: int = 0  # without padding
    origin: Origin


def find_origin(device: str | None = None) -> Origin:
    """The origin of a result made now; `device` is the name of the GPU, if one computes."""
    # git ignores the folder of a study's run, which is a copy of the project around it.
    folder = PROJECT.parents[2] if PROJECT.parent.parts[-2:] == WORKSPACES.parts else PROJECT
    changes = try_git("status", "--porcelain", "--untracked-files=no", "--", ".", *WRITTEN, folder=folder)
    return Origin(
        commit=try_git("rev-parse", "HEAD", folder=folder),
        clean=changes == "",
        date=datetime.now(UTC).date().isoformat(),
        machine=device or f"{_processor()}, {cores()} cores",
        versions={"python": platform.python_version(), **{name: installed(name) for name in LIBRARIES}},
    )


@contextmanager
def timed(stage: str, is_main: bool = True, folder: Path = STAGES) -> Iterator[None]:
    """Write the time of a stage to `folder` when it is done, from the main process."""
    start = time.perf_counter()
    yield
    if is_main:
        record = StageRecord(seconds=round(time.perf_counter() - start, 1), origin=find_origin())
        write_json(folder / f"{stage}.json", record.to_json())


def installed(library: str) -> str:
    """The version of an installed library, or "missing"."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "missing"


def git(*arguments: str, folder: Path = Path()) -> str:
    """The output of git in a folder, without the last line break.

    Raises InputError if git is absent or fails.
    """
    try:
        done = subprocess.run(
            ("git", "-c", "core.quotePath=false", *arguments), cwd=folder, capture_output=True,
            encoding="utf-8", errors="surrogateescape",  # file names in its output may not be UTF-8
            env=os.environ | {"LC_ALL": "C"},  # messages in English, which `retrace doctor` reads
        )  # fmt: skip
    except OSError as error:
        raise InputError(f"git: {error.strerror}") from None
    if done.returncode:
        raise InputError(f"{folder.absolute()}: git {arguments[0]}: {first_line(done.stderr) or 'it failed'}")
    return done.stdout.removesuffix("\n")


def try_git(*arguments: str, folder: Path = Path()) -> str | None:
    """The same; None if git is absent or fails."""
    try:
        return git(*arguments, folder=folder)
    except InputError:
        return None


def uncommitted(*places: str, folder: Path = Path()) -> list[str]:
    """The files that differ from git's last commit, new ones among them; ignored files are left out.

    `places` are git's pathspecs. Bytes of a name that are not UTF-8 are escaped. Raises InputError as `git` does.
    """
    listed = git("status", "--porcelain", "--untracked-files=normal", "--", *places, folder=folder)
    names = [line[3:] for line in listed.splitlines()]
    return [name.encode(errors="surrogateescape").decode(errors="backslashreplace") for name in names]


def _processor() -> str:
    """The processor's name."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
