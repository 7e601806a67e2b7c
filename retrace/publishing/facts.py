"""What is known of a trained model: what params.yaml, data cards, runs and reports say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from retrace.core.errors import InputError
from retrace.core.files import read_json
from retrace.core.paths import CHECKPOINT, card_path, checkpoint_facts, on_test, source_folder
from retrace.core.settings import build, section
from retrace.datasets.examples import read_classes
from retrace.evaluation.assessment import SCRATCH
from retrace.evaluation.records import DETAILS, METRICS, Details, Metrics
from retrace.finetuning.method import PRETRAINED, read_method
from retrace.finetuning.run import RUNS, Cell
from retrace.finetuning.settings import FineTuneSettings, entry_in_force
from retrace.hub.checkpoint import Pin
from retrace.models.heads import Head, read_config
from retrace.perplexity.measures import PERPLEXITY, PerplexityReport
from retrace.publishing.bundle import Address, Published
from retrace.publishing.card import ModelFacts, Origin, Scores, files_origin, hub_origin, sample_origin
from retrace.publishing.load import Tuning
from retrace.report.blocks import Table
from retrace.report.data import counts_table
from retrace.report.settings import settings_table
from retrace.results.grid import Grid
from retrace.statistics.scales import Flags
from retrace.tasks.question_answering.settings import SquadSettings
from retrace.training.records import RunRecord

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
    family = _family(cell, params)
    started = _started(cell, params)
    base = address.base.repository if address.base else started.get("repository")
    tags = ["retrace", family, *([cell.method] if cell else [])]
    return ModelFacts(
        address.repository, _summary(cell, family, params), published.use, published.library, published.lines,
        base, _said(started), tags, read_origins(cell, params),
        read_counts(cell, params), read_training(cell, params, commit), read_scores(cell) if cell else None,
        None if cell else PerplexityReport.read(PERPLEXITY),
        flag_lines(cell),
        _limits(cell, params, published),
    )  # fmt: skip


def read_tuning(cell: Cell, params: Mapping[str, Any]) -> Tuning:
    """How a cell of the matrix was tuned.

    Raises InputError where params.yaml does not list it.
    """
    matrix = build(Grid, params, "finetune")
    _require_listed("--task", cell.task, matrix.all_tasks)
    _require_listed("--method", cell.method, matrix.methods_of(cell.task))
    _require_listed("--seed", cell.seed, matrix.seeds)
    method = read_method(params, cell.method, cell.task)
    settings = method.settings.model_copy(
        update={"method": None, "checkpoint": None}
    )  # labels of this project, which mean nothing elsewhere
    if matrix.kind_of(cell.task) == "classification":
        classes = read_classes(source_folder(build(str, params, "data")), cell.task)
        return Tuning(method.file, settings, "classifier", tuple(classes))
    reading = build(SquadSettings, params, cell.task)
    head: Head = "language_model" if reading.answers == "generative" else "spans"
    return Tuning(method.file, settings, head, question_match=reading.question_match)


def read_scores(cell: Cell) -> Scores:
    """The figures of a cell: on the test set, where its task has one.

    Raises InputError where it was not scored.
    """
    is_test, seed = _is_tested(cell), str(cell.seed)
    task = on_test(cell.task) if is_test else cell.task
    metrics, details = Metrics.read(METRICS).tasks.get(task), Details.read(DETAILS).tasks.get(task)
    method = metrics and metrics.methods.get(cell.method)
    if metrics is None or details is None or method is None or seed not in method.seeds:
        raise InputError(f"{METRICS}: no figures of {name_of(cell)}; run dvc repro first")
    found = details.methods[cell.method].seeds[seed]
    return Scores(
        method.seeds[seed].to_json(), found.intervals, found.before, metrics.baselines, details.baselines,
        details.scales, details.headlines, split="test" if is_test else "validation",
    )  # fmt: skip


def learned_nothing(cell: Cell | None) -> dict[str, str]:
    """Signs that a model has learned nothing, name → evidence; of the pretrained one where None."""
    if cell is None:
        splits = PerplexityReport.read(PERPLEXITY).splits
        return {f"{name} on {part}": text for part, split in splits.items() for name, text in split.flags.items()}
    return _flags(cell, f"{cell.method} {cell.seed}")


def read_flags(cell: Cell | None) -> dict[str, str]:
    """The same, and the flags of the method over all seeds and of the data."""
    others = {} if cell is None else _flags(cell, cell.method) | _flags(cell, "data")
    return learned_nothing(cell) | others


def flag_lines(cell: Cell | None) -> list[str]:
    """These flags with their evidence, a line each."""
    return [f"{name.replace('_', ' ')}: {evidence}" for name, evidence in read_flags(cell).items()]


def read_origins(cell: Cell | None, params: Mapping[str, Any]) -> list[Origin]:
    """Where the data of pretraining is from, if that was done here, and, last, that of the task."""
    found = [_origin(name, params) for name in _data_of(cell, params)]
    if cell is None or not _is_tested(cell):
        return found
    return [*found[:-1], replace(found[-1], split=_test_split(cell.task, params))]


def read_counts(cell: Cell | None, params: Mapping[str, Any]) -> Table:
    """What every split of that data holds."""
    path = source_folder(build(str, params, "data")) / "card.json"
    names = _data_of(cell, params)
    card = read_json(path) if path.is_file() else {}  # further tasks need no source
    others = {name: read_json(card_path(name)) for name in names if name not in card}
    return counts_table(card, [name for name in names if name in card], others)


def read_training(cell: Cell | None, params: Mapping[str, Any], commit: str) -> Table:
    """Run, versions and settings in force, by name; settings by their keys in params.yaml."""
    run = RunRecord.read((RUNS / "pretrain" if cell is None else RUNS / cell.path).with_suffix(".json"))
    made: dict[str, Any] = {"git commit": commit} | {name: version(name) for name in LIBRARIES}
    made |= {name.replace("_", " "): getattr(run, name) for name in ("updates", "parameters", "trained_parameters")}
    made |= {"device": run.device, "precision in force": run.precision}
    keys = PRETRAINING if _is_own(cell, params) else ("precision",)
    tuned: dict[str, Any] = {}
    if cell is not None:
        made |= {"seed of tuning": cell.seed, "epoch": read_scores(cell).figures["epoch"]}
        tuned = {f"methods.{cell.method}": entry_in_force(params, cell.method, cell.task)}
        keys = (*keys, cell.task)
    return settings_table(made, {key: section(params, key) for key in keys} | tuned)


def _is_own(cell: Cell | None, params: Mapping[str, Any]) -> bool:
    """Whether it is, or starts from, the model that was pretrained here."""
    return cell is None or read_method(params, cell.method).base == PRETRAINED


def _data_of(cell: Cell | None, params: Mapping[str, Any]) -> list[str]:
    """The data that it was trained on here, by name."""
    return [*(["text"] if _is_own(cell, params) else []), *([cell.task] if cell else [])]


def _family(cell: Cell | None, params: Mapping[str, Any]) -> str:
    return read_config(read_method(params, cell.method).base if cell else PRETRAINED).model_type


def _origin(name: str, params: Mapping[str, Any]) -> Origin:
    data = build(str, params, "data")
    of_hub = params.get("hub", {})
    if name in {**params.get("classification", {}), **params.get("question_answering", {})}:
        return files_origin(name)
    if name in of_hub.get("classification", {}):
        entry = of_hub["classification"][name]
        return _from_hub(name, entry, entry.get("config", "default"), entry.get("dev"), None)
    if data == "hub":
        found = read_json(source_folder(data) / "card.json")["origin"][name]
        split = of_hub[name].get("valid" if name == "text" else "dev", "validation")
        return _from_hub(name, of_hub[name], found["config"], split, found["licence"])
    return sample_origin(name) if data == "sample" else files_origin(name)


def _is_tested(cell: Cell) -> bool:
    """Whether the figures of a cell are on a test set."""
    return METRICS.is_file() and on_test(cell.task) in Metrics.read(METRICS).tasks


def _test_split(task: str, params: Mapping[str, Any]) -> str:
    """What a task's test split is called where it is from."""
    of_hub = params.get("hub", {})
    entry = of_hub.get("classification", {}).get(task, {})
    if not entry and build(str, params, "data") == "hub":
        entry = of_hub.get(task, {})
    return entry.get("test") or "test"


def _from_hub(name: str, entry: Mapping[str, Any], config: str, split: str | None, licence: str | None) -> Origin:
    """The origin of a part that an entry under `hub` in params.yaml describes."""
    pin = Pin.parse(entry["repository"], f"hub.{name}.repository")
    held_out = f"{entry.get('train', 'train')}, of which a part was held out"
    return hub_origin(name, pin.repository, pin.commit, config, split or held_out, licence)


def _started(cell: Cell | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the weights that training started from; nothing where they were random."""
    method = read_method(params, cell.method) if cell else None
    if method and method.file == SCRATCH:
        return {}
    found = checkpoint_facts(CHECKPOINT if method is None or method.base == PRETRAINED else method.base)
    return found if found["from"] and not found.get("random") else {}


def _said(started: Mapping[str, Any]) -> str | None:
    if not started:
        return None
    licence = started.get("license_name") or started.get("license") or "not known to Retrace"
    return f"{started['from']}, whose licence is {licence}"


def _summary(cell: Cell | None, family: str, params: Mapping[str, Any]) -> str:
    if cell is None:
        return f"A language model of the family {family}, made with Retrace."
    how = (read_method(params, cell.method).tuning.__doc__ or "").partition("\n")[0]
    return f"A model of the family {family}, tuned on {cell.task} with Retrace: {cell.method}, seed {cell.seed}. {how}"


def _limits(cell: Cell | None, params: Mapping[str, Any], published: Published) -> list[str]:
    found = [LIMITS[published.use]]
    if cell is not None:
        is_read = build(Grid, params, "finetune").kind_of(cell.task) == "question_answering"
        settings = build(SquadSettings if is_read else FineTuneSettings, params, cell.task)
        found.append(f"It was trained on at most {settings.max_length} tokens at once.")
        found += [CHOSEN] if settings.checkpoint == "best" and read_scores(cell).split == "validation" else []
    elif section(params, "pretrain").get("intra_document_attention"):
        found.append(WITHIN_DOCUMENTS)
    if published.library == "retrace":
        found.append("Retrace has to be installed to load it: transformers alone cannot.")
    if build(str, params, "data") == "sample":
        found.append(SAMPLE)
    return found


def _flags(cell: Cell, name: str) -> Flags:
    """Flags of a model, a method or the data; those of the figures on the test set first, where there are such."""
    metrics = Metrics.read(METRICS)
    flags = metrics.flags.get(cell.task, {}).get(name, {})
    if on_test(cell.task) not in metrics.tasks:
        return flags
    tested = metrics.flags.get(on_test(cell.task), {}).get(name, {})
    return tested | {f"{flag} on validation": evidence for flag, evidence in flags.items()}


def name_of(cell: Cell | None) -> str:
    """What a cell, or where it is None the pretrained model, is called."""
    return cell.title if cell else PRETRAINED.name


def _require_listed(option: str, value: str | int, listed: Sequence[Any]) -> None:
    if value not in listed:
        raise InputError(
            f"{option}: {value!r} is not what params.yaml lists; expected one of {', '.join(map(str, listed))}"
        )
