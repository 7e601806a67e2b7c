"""Files of json that one stage writes and others read, as typed records."""

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
from retrace.core.files import read_object


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
