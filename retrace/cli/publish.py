"""`retrace publish`: send a model of this project to the Hugging Face Hub, with its card and its figures."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from huggingface_hub import ModelCard

from retrace.cli.main import print_table, some_of
from retrace.cli.predict import Of, chosen_cell
from retrace.core.errors import InputError, one_line, printable
from retrace.core.files import SUMS, atomic_folder, file_digest, write_json, write_text
from retrace.core.guard import guarded, lock
from retrace.core.paths import FACTS, PRETRAINED
from retrace.core.records import git, uncommitted
from retrace.core.settings import read_params
from retrace.core.weights import FILE as BASE_WEIGHTS
from retrace.core.weights import INDEX, weight_files
from retrace.finetuning.method import FILE as TRAINED
from retrace.hub.pins import REPOSITORY, Pin
from retrace.hub.repository import require_token, stored_digest, upload
from retrace.publishing.bundle import SHARES, Address, write_pretrained, write_shares, write_tuned
from retrace.publishing.card import Trained, model_card
from retrace.publishing.load import BASE, DESCRIPTION, read_tuning, require_weights
from retrace.results.grid import WEIGHTS, Cell, Grid
from retrace.tasks.question_answering.extractive import FILE as MATCH
from retrace.tokens.tokenizer import TOKENIZER_FILES

PREPARED = Path(".retrace/publish")
# What an earlier publication may have left in the repository; other files there are not deleted.
OURS = (
    "config.json", "generation_config.json", FACTS, BASE_WEIGHTS, "model-*-of-*.safetensors", INDEX, *TOKENIZER_FILES,
    "adapter_config.json", "adapter_model.safetensors", DESCRIPTION, TRAINED, MATCH, SHARES, f"{BASE}/*", SUMS,
    ".eval_results/*",
)  # fmt: skip

Reason = StrEnum("Reason", ["dirty", "stale", "unlearned"])
Task = typer.Option(help="sst2, squad or a further task; by default the pretrained model")
Base = typer.Option(metavar="ORG/NAME@COMMIT", help="the published pretrained model; only the adapter for it is sent")
EvenIf = typer.Option(
    metavar="REASON", help="allow uncommitted files (dirty), old outputs (stale), or a flag of the model (unlearned)"
)


def publish(
    repository: Annotated[str, typer.Argument(metavar="ORG/NAME", help="the repository; created if missing")],
    task: Annotated[str, Task] = PRETRAINED.name,
    method: Annotated[str | None, Of] = None,
    seed: Annotated[int | None, Of] = None,
    base: Annotated[str | None, Base] = None,
    revision: Annotated[str | None, typer.Option(metavar="BRANCH", help="created if missing")] = None,
    private: Annotated[bool, typer.Option("--private", help="create a private repository")] = False,
    push: Annotated[bool, typer.Option("--push", help="send it; without it nothing is sent")] = False,
    even_if: Annotated[list[Reason], EvenIf] = [],  # noqa: B006
) -> None:
    """Send a model of this project to the Hugging Face Hub, with its card and its figures.

    Without --push nothing is sent: it lists the files, the model's flags, and what would block publishing.
    The token is the environment's HF_TOKEN; HF_ENDPOINT names another hub. All files are sent in one commit; if the
    repository already has them, no commit is made.
    """
    if "/" not in repository or not REPOSITORY.fullmatch(repository):
        raise InputError(f"{repository!r} is not a repository; expected ORG/NAME")
    address = Address(repository, revision, Pin.parse(base, "--base") if base is not None else None)
    params = read_params()
    cell = _cell(task, method, seed, params)
    weights = WEIGHTS / cell.path if cell else PRETRAINED
    require_weights(weights)
    tuning = read_tuning(cell, params) if cell else None
    trained = Trained(cell, params)
    commit, doubts = git("rev-parse", "HEAD"), _doubts(trained)
    refusals = [f"{why}; --even-if {name} publishes it anyway" for name, why in doubts.items() if name not in even_if]
    if push:
        if refusals:
            raise InputError(refusals[0])
        require_token()
    folder = PREPARED / (cell.path if cell else PRETRAINED.name)
    with lock("publish", PREPARED):  # held until it is sent, as another would be prepared in the same folder
        with guarded("publish", [weights, trained.base], {}), atomic_folder(folder) as aside:
            if cell and tuning:
                longest = trained.task_settings and trained.task_settings.max_length
                published = write_tuned(tuning, weights, trained.base, address, aside, longest)
                if tuning.question_match:
                    write_shares(Grid.read(params).data_of(cell.task), aside)
            else:
                published = write_pretrained(weights, address, aside)
            _write_card(aside, trained, model_card(trained, published, address, commit), commit)
        _list(folder, trained)
        if push:
            print(_send(folder, trained, address, private, commit))
            return
    for refusal in refusals:
        print(f"would be refused: {refusal}")
    print(f"nothing was sent; --push sends this to {address.repository}, and {folder / 'README.md'} is the card")


def _send(folder: Path, trained: Trained, address: Address, private: bool, commit: str) -> str:
    """Upload what was prepared; returns what was done, in words.

    Raises InputError if the published base has other weights than the model was trained on.
    """
    if base := address.base:
        files = weight_files(trained.base)
        if any(stored_digest(base, file) != file_digest(trained.base / file) for file in files):
            raise InputError(f"--base: {base} has other weights than {trained.base}; publish these first")
    message = f"{trained.name} of Retrace at {commit}"
    pin, is_new = upload(folder, address.repository, address.branch, private, message, OURS)
    return f"published as {pin}" if is_new else f"nothing new: {pin} has all of this already"


def _cell(task: str, method: str | None, seed: int | None, params: Mapping[str, Any]) -> Cell | None:
    """The fine-tuned model that the options name; None stands for the pretrained one."""
    if task != PRETRAINED.name:
        return chosen_cell(Grid.read(params), task, method, seed)
    if method is not None or seed is not None:
        raise InputError("--method and --seed are for fine-tuned models; name one with --task")
    return None


def _doubts(trained: Trained) -> dict[str, str]:
    """Why the model should not be published, by reason."""
    found = {}
    if files := uncommitted("."):
        found["dirty"] = f"not committed: {some_of(files)}; so no commit describes this model"
    if stale := _stale_stages(trained):
        found["stale"] = f"{some_of(stale)}: out of date according to dvc.lock; run dvc repro and commit dvc.lock"
    if trained.learned_nothing:
        found["unlearned"] = f"{trained.name} is flagged: {trained.flag_lines[0]}"  # its own flags come first
    return found


def _stale_stages(trained: Trained) -> list[str]:
    """The stages behind the model and its card's figures whose inputs or outputs differ from dvc.lock.

    Raises InputError if DVC has no such stage, or is running one of them.
    """
    from dvc.exceptions import DvcException  # here, as DVC takes a second to import
    from dvc.repo import Repo

    last = [] if trained.perplexity is None else ["perplexity-eval"]  # which the card of any model quotes
    last += [] if trained.details is None else ["evaluate"]  # with all cells, which the card's verdict depends on
    try:
        with Repo() as repo:
            return sorted(repo.status(targets=last, with_deps=True))
    except DvcException as error:
        raise InputError(f"dvc status: {one_line(error)}") from None


def _write_card(folder: Path, trained: Trained, card: ModelCard, commit: str) -> None:
    """Write the card and the figures."""
    write_text(folder / "README.md", str(card))
    figures = {"perplexity": trained.perplexity.to_json()} if trained.perplexity else {}
    if trained.scored:
        task, _, trial = trained.scored[0]
        beside = {name: task.to_json()[name] for name in ("baselines", "legend", "headlines")}
        figures = trial.to_json() | beside | {"split": "test" if trained.is_tested else "validation"}
    about = {"model": trained.name, "commit": commit}
    flags = {name: str(evidence) for name, evidence in trained.flags.items()}
    write_json(folder / "metrics.json", about | figures | {"flags": flags})


def _list(folder: Path, trained: Trained) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    rows = [(name, f"{size:,}") for name, size in sizes.items()]
    print_table(("file", "bytes"), [*rows, (f"{len(files)} files", f"{sum(sizes.values()):,}")])
    print(printable("flags: " + ("; ".join(trained.flag_lines) or "none")))
