"""Run records, reports/runs/**.json: the time and memory of training, kept apart from metrics as they vary by run."""

from retrace.core.files import Record


class RunRecord(Record):
    """One training run, over all processes where nothing else is said."""

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
