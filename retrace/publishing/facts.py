"""What is known of a trained model: what git, params.yaml, data cards, runs and reports say of it."""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from retrace.core.errors import InputError
from retrace.core.files import read_json
from retrace.core.paths import CHECKPOINT, card_path, checkpoint_facts, on_test, source_folder
from retrace.core.records import RunRecord
from retrace.core.settings import build, section
from retrace.evaluation.assessment import SCRATCH
from retrace.evaluation.records import DETAILS, Details, TaskDetails
from retrace.finetuning.method import PRETRAINED, read_method
from retrace.finetuning.settings import FineTuneSettings, entry_in_force
from retrace.hub.settings import HubSettings, HubText
from retrace.models.heads import read_config
from retrace.perplexity.measures import DETAILS as PERPLEXITY
from retrace.perplexity.measures import PerplexityReport
from retrace.publishing.bundle import Address, Published
from retrace.publishing.card import ModelFacts, Origin, RunResults, Scores, hub_origin
from retrace.report.blocks import Table
from retrace.report.results import judged, most_seeds, read_tasks
from retrace.report.runs import counts_table, read_runs, seconds_of, settings_table, shares_of
from retrace.report.summary import reading, summary_table
from retrace.report.verdict import verdict
from retrace.results.grid import RUNS, Cell, Grid
from retrace.sources.hub_settings import HubTaskSettings
from retrace.statistics.scales import Flags
from retrace.tasks.question_answering.settings import AnswerSettings

PRETRAINING = ("lr", "seed", "family", "precision", "tokenizer", "model", "pretrain")
LIMITS = {
    "classifier": "It answers with one of its classes, whatever it is given.",
    "spans": "How a long passage is cut and when there is no answer is for the caller to decide. Retrace takes the "
    "best span of overlapping windows, and none where the first token scores higher.",
    "masked": "It fills in masked tokens; for anything else it has to be tuned.",
    "causal": "It goes on with a text, and what it writes may be wrong.",
}
CHOSEN = "The epoch was chosen by the validation loss, so the figures are a little better than on data of another day."
WITHIN_DOCUMENTS = (
    "In training attention stayed within documents; transformers does not hold it there where several share an input."
)
SAMPLE = "The sample is a few thousand sentences on an invented country: the model knows nothing else."
LIBRARIES = ("torch", "transformers", "peft")


def read_facts(
    cell: Cell | None, params: Mapping[str, Any], address: Address, published: Published, commit: str
) -> ModelFacts:
    """All that the card of a model says; of the pretrained one where `cell` is None."""
    method = read_method(params, cell.method) if cell else None
    family = read_config(method.base if method else PRETRAINED).model_type
    summary = f"A language model of the family {family}, made with Retrace."
    if cell and method:
        how = (method.tuning.__doc__ or "").partition("\n")[0]
        tuned = f"tuned on {cell.task} with Retrace: {cell.method}, seed {cell.seed}"
        summary = f"A model of the family {family}, {tuned}. {how}"
    started = _started(cell, params)
    licence = started.get("license_name") or started.get("license") or "not known to Retrace"
    return ModelFacts(
        repository=address.repository, summary=summary, use=published.use, library=published.library,
        lines=published.lines, base=address.base.repository if address.base else started.get("repository"),
        started=f"{started['from']}, whose licence is {licence}" if started else None,
        tags=["retrace", family, *([cell.method] if cell else [])], origins=read_origins(cell, params),
        counts=read_counts(cell, params), training=read_training(cell, params, commit),
        scores=read_scores(cell) if cell else None, perplexity=None if cell else PerplexityReport.read(PERPLEXITY),
        flags=flag_lines(cell), limits=_limits(cell, params, published), results=read_results(cell, params),
    )  # fmt: skip


def read_scores(cell: Cell) -> Scores:
    """The figures of a cell: on the test set, where its task has one.

    Raises InputError where it was not scored.
    """
    is_test, seed, tasks = _is_tested(cell), str(cell.seed), Details.read(DETAILS).tasks
    details = tasks.get(on_test(cell.task) if is_test else cell.task)
    method = details and details.methods.get(cell.method)
    if details is None or method is None or seed not in method.seeds:
        raise InputError(f"{DETAILS}: no figures of {name_of(cell)}; run dvc repro first")
    return Scores(
        trial=method.seeds[seed], baselines=details.baselines, legend=details.legend, headlines=details.headlines,
        split="test" if is_test else "validation",
    )  # fmt: skip


def read_results(cell: Cell | None, params: Mapping[str, Any]) -> RunResults:
    """The verdict and the table of the report, on every method and task that was scored."""
    tasks = read_tasks(Details.read(DETAILS), params, with_curves=False) if DETAILS.is_file() else []
    perplexity = PerplexityReport.read(PERPLEXITY) if PERPLEXITY.is_file() else None
    runs, scored = read_runs(params), [task for task in tasks if task.methods]
    said = verdict(judged(tasks), perplexity, shares_of(runs))
    if not scored:
        return RunResults(said, "", None)
    table, seeds = summary_table(scored, shares_of(runs), seconds_of(runs)), most_seeds(scored)
    own = f"; this model is of seed {cell.seed}" if cell else ""
    means = f"Means over {seeds} seeds{own}. " if seeds > 1 else ""
    scores = "; ".join(text for text, _ in table.groups if ": " in text)
    note = f"{scores}. {means}{reading(scored)} Last come baselines, which need no language model."
    return RunResults(said, note, table)


def learned_nothing(cell: Cell | None) -> Flags:
    """Signs that a model has learned nothing, name → evidence; of the pretrained one where None."""
    if cell is None:
        splits = PerplexityReport.read(PERPLEXITY).splits
        return {f"{name} on {part}": text for part, split in splits.items() for name, text in split.flags.items()}
    return _flags(cell, lambda task: task.methods[cell.method].seeds[str(cell.seed)].flags)


def read_flags(cell: Cell | None) -> Flags:
    """The same, and the flags of the method over all seeds and of the data."""
    others = {} if cell is None else _flags(cell, lambda task: task.methods[cell.method].flags | task.flags)
    return learned_nothing(cell) | others


def flag_lines(cell: Cell | None) -> list[str]:
    """These flags with their evidence, a line each."""
    return [f"{name.replace('_', ' ')}: {evidence}" for name, evidence in read_flags(cell).items()]


def read_origins(cell: Cell | None, params: Mapping[str, Any]) -> list[Origin]:
    """Where the data of pretraining is from, if that was done here, and, last, that of the task."""
    return [
        _origin(name, params, is_tested=cell is not None and name == cell.task and _is_tested(cell))
        for name in _data_of(cell, params)
    ]


def read_counts(cell: Cell | None, params: Mapping[str, Any]) -> Table:
    """What every split of that data holds."""
    path = source_folder(build(str, params, "data")) / "card.json"
    names = _data_of(cell, params)
    card = read_json(path) if path.is_file() else {}  # further tasks need no source
    return counts_table({name: card[name] if name in card else read_json(card_path(name))["parts"] for name in names})


def read_training(cell: Cell | None, params: Mapping[str, Any], commit: str) -> Table:
    """Run, versions and settings in force, by name; settings by their keys in params.yaml."""
    run = RunRecord.read((RUNS / "pretrain" if cell is None else RUNS / cell.path).with_suffix(".json"))
    made: dict[str, Any] = {"git commit": commit} | {name: version(name) for name in LIBRARIES}
    made |= {name.replace("_", " "): getattr(run, name) for name in ("updates", "parameters", "trained_parameters")}
    made |= {"device": run.device, "precision in force": run.precision}
    keys = PRETRAINING if _is_own(cell, params) else ("precision",)
    tuned: dict[str, Any] = {}
    if cell is not None:
        made |= {"seed of tuning": cell.seed, "epoch": read_scores(cell).trial.epoch}
        tuned = {f"methods.{cell.method}": entry_in_force(params, cell.method, cell.task)}
        keys = (*keys, cell.task)
    return settings_table(made, {key: section(params, key) for key in keys} | tuned)


def name_of(cell: Cell | None) -> str:
    """What a cell, or where it is None the pretrained model, is called."""
    return cell.title if cell else PRETRAINED.name


def _is_own(cell: Cell | None, params: Mapping[str, Any]) -> bool:
    """Whether it is, or starts from, the model that was pretrained here."""
    return cell is None or read_method(params, cell.method).base == PRETRAINED


def _data_of(cell: Cell | None, params: Mapping[str, Any]) -> list[str]:
    """The data that it was trained on here, by name."""
    return [*(["text"] if _is_own(cell, params) else []), *([cell.task] if cell else [])]


def _origin(name: str, params: Mapping[str, Any], is_tested: bool) -> Origin:
    """Where the data of pretraining (`text`) or of a task is from, and which of its splits the figures are of."""
    data, split = build(str, params, "data"), "test" if is_tested else "validation"
    if name in params.get("hub", {}).get("classification", {}):
        settings, licence = build(HubTaskSettings, params, f"hub.classification.{name}"), None
    elif data == "files" or name in {**params.get("classification", {}), **params.get("question_answering", {})}:
        return Origin(name, "files of the publisher's own", split=split)
    elif data == "sample":
        title = "the embedded sample of Retrace, on an invented country"
        return Origin(name, title, split=split, licence="Apache-2.0")
    else:
        hub = build(HubSettings, params, "hub")
        settings = {"text": hub.text, "sst2": hub.sst2, "squad": hub.squad}[name]
        licence = read_json(source_folder(data) / "card.json")["origin"][name]["licence"]
    if isinstance(settings, HubText):
        split = settings.valid
    elif is_tested:
        split = settings.test or split
    else:
        split = settings.dev or f"{settings.train}, of which a part was held out"
    return hub_origin(name, settings.pin, settings.config, split, licence)


def _is_tested(cell: Cell) -> bool:
    """Whether the figures of a cell are on a test set."""
    return DETAILS.is_file() and on_test(cell.task) in Details.read(DETAILS).tasks


def _started(cell: Cell | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the weights that training started from; nothing where they were random."""
    method = read_method(params, cell.method) if cell else None
    if method and method.file == SCRATCH:
        return {}
    found = checkpoint_facts(CHECKPOINT if method is None or method.base == PRETRAINED else method.base)
    return found if found["from"] and not found.get("random") else {}


def _limits(cell: Cell | None, params: Mapping[str, Any], published: Published) -> list[str]:
    found = [LIMITS[published.use]]
    if cell is not None:
        is_read = build(Grid, params, "finetune").kind_of(cell.task) == "question_answering"
        settings = build(AnswerSettings if is_read else FineTuneSettings, params, cell.task)
        found.append(f"It was trained on at most {settings.max_length} tokens at once.")
        found += [CHOSEN] if settings.checkpoint == "best" and read_scores(cell).split == "validation" else []
    elif section(params, "pretrain").get("intra_document_attention"):
        found.append(WITHIN_DOCUMENTS)
    if published.library == "retrace":
        found.append("Retrace has to be installed to load it: transformers alone cannot.")
    if build(str, params, "data") == "sample":
        found.append(SAMPLE)
    return found


def _flags(cell: Cell, of: Callable[[TaskDetails], Flags]) -> Flags:
    """Flags of a model, a method or the data; those of the figures on the test set first, where there are such."""
    tasks = Details.read(DETAILS).tasks
    flags = of(tasks[cell.task])
    if on_test(cell.task) not in tasks:
        return flags
    return of(tasks[on_test(cell.task)]) | {f"{flag} on validation": evidence for flag, evidence in flags.items()}


def stale_stages(stages: Sequence[str]) -> list[str]:
    """Those of the DVC stages whose inputs or outputs are not what dvc.lock says.

    Raises InputError where DVC has no such stage.
    """
    from dvc.exceptions import DvcException  # here, as DVC takes a second to import
    from dvc.repo import Repo

    try:
        with Repo() as repo:
            return sorted(repo.status(targets=list(stages)))
    except DvcException as error:
        raise InputError(f"dvc status: {error}") from None
