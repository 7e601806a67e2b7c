"""Processes that start at once, for tests: a server imports the libraries (six seconds) and forks for each command.

python -IS tests/warm.py [-m MODULE | -c CODE] [ARGUMENT …] does what `python` with these arguments does, in a process
of its own, with the working directory, environment, input and output of the caller, but for waiting until the disk has
what is written. RETRACE_WARM is the path of the server's socket; the first command starts the server, which ends with
the process that `address` was called in.

What the environment says to the hub's clients is read when they are imported: with a variable HF_…, commands that may
talk to the hub are forked from a second server, before these imports.
"""

import json
import os
import re
import select
import signal
import socket
import sys
import time
from pathlib import Path

VARIABLE = "RETRACE_WARM"
COMMAND = [sys.executable, "-IS", str(Path(__file__).resolve())]
PATIENCE = 120.0  # seconds for a server to start
LIBRARIES = (
    "dvc.cli.parser dvc.repo.reproduce dvc.repo.plots dvc.repo.index dvc.cachemgr dvc.scm dvc_data.index networkx "
    "numpy pandas pyarrow.parquet scipy.stats sklearn.metrics sklearn.feature_extraction.text jinja2 ruamel.yaml rich "
    "pydantic typer torch torch._dynamo torch.distributed.fsdp torch.distributed.checkpoint.state_dict "
    "torch.utils.flop_counter nltk.corpus sacrebleu.metrics rouge_score.rouge_scorer"
).split()
HUB_CLIENTS = (
    "huggingface_hub datasets accelerate peft transformers.models.auto.modeling_auto "
    "transformers.models.bert.modeling_bert transformers.models.roberta.modeling_roberta "
    "transformers.models.modernbert.modeling_modernbert transformers.models.llama.modeling_llama"
).split()


def address(folder: Path) -> str:
    """The value of RETRACE_WARM for a server that keeps its sockets in a folder."""
    return f"{folder / 'warm'}:{os.getpid()}"


def call(arguments: list[str]) -> int:
    """Have a command run; its exit code, less than 0 if a signal ended it."""
    alone = re.match(r"stages\.(?!sources\.)|dvc$", arguments[1])  # talks to no hub
    hub = not alone and any(name.startswith("HF_") for name in os.environ)
    with socket.socket(socket.AF_UNIX) as server:
        path, owner = os.environ[VARIABLE].split(":")
        _connect(server, path, owner, hub)
        asked = json.dumps([arguments, str(Path.cwd()), dict(os.environ)]).encode() + b"\n"
        sent = socket.send_fds(server, [asked], [0, 1, 2])
        server.sendall(asked[sent:])
        return int(server.makefile().readline())


def _connect(server: socket.socket, path: str, owner: str, hub: bool) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return server.connect(f"{path}.hub" if hub else path)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > end:
                raise
        try:
            Path(f"{path}.started").touch(exist_ok=False)
            _start(path, owner)
        except FileExistsError:  # another client was first
            time.sleep(0.05)


def _start(path: str, owner: str) -> None:
    import subprocess

    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and name != "PYTHONPATH"}
    with Path(f"{path}.log").open("wb") as log:
        subprocess.Popen(
            [sys.executable, __file__, "serve", path, owner], cwd="/", env={**kept, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def serve(path: str, owner: int) -> None:
    """Be both servers as long as the owner lives. Returns in a process that has run a command."""
    import gc
    import importlib

    del sys.path[0]  # tests/
    for module in LIBRARIES:
        importlib.import_module(module)
    if os.fork() == 0:
        path = f"{path}.hub"
    else:
        for module in HUB_CLIENTS:
            importlib.import_module(module)
    gc.freeze()
    os.fsync = lambda fd: None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that watch a command
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        while Path(f"/proc/{owner}").exists():
            if not select.select([listener], [], [], 1)[0]:
                continue
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _watch(client)
            client.close()


def _watch(client: socket.socket) -> None:
    """Fork for the command and tell the client how it ended; end it where the client has gone."""
    asked, files, *_ = socket.recv_fds(client, 1 << 20, 3)
    while not asked.endswith(b"\n"):
        asked += client.recv(1 << 20)
    command = os.fork()
    if command == 0:
        client.close()
        os.setsid()
        _end_as_python_does(_run(files, *json.loads(asked)))
    for file in (0, 1, 2, *files):  # whoever reads them is to see their end
        os.close(file)
    if client in select.select([client, os.pidfd_open(command)], [], [])[0]:
        os.killpg(command, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    try:
        client.sendall(f"{code}\n".encode())
    finally:
        os._exit(0)


def _run(files: list[int], arguments: list[str], folder: str, environment: dict[str, str]) -> int:
    """What `python` does with these arguments; warnings of the project's own modules are errors."""
    import importlib
    import runpy
    import traceback
    import warnings
    from contextlib import suppress

    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.modules.pop("sitecustomize", None)
    with suppress(ImportError):
        importlib.import_module("sitecustomize")
    warnings.filterwarnings("error", module=r"(retrace|stages|__main__)(\.|$)")
    warnings.filterwarnings("ignore", category=ResourceWarning)  # as by default
    kind, what, *rest = arguments
    sys.argv[:] = [kind, *rest]
    try:
        if kind == "-c":
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_module(what, run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end_as_python_does(code: int) -> None:
    """But for taking apart what was imported, which is a third of a second."""
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(call(sys.argv[1:]))
