"""`retrace check`, and which settings each stage reads."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from retrace.cli.dvc_files import LOCK, lock_fault, mend_cache
from retrace.core.errors import InputError, printable
from retrace.core.files import read_text
from retrace.core.paths import PROJECT, require_checkout
from retrace.core.settings import (
    DATA_PARAMS,
    PARAMS,
    Params,
    build,
    file_of,
    plugin_file,
    plugin_names,
    read_yaml,
    require_one_of,
    values_of,
    with_data,
)
from retrace.evaluation.settings import EvaluateParams
from retrace.files.settings import ClassificationParams, FilesParams, QuestionAnsweringParams, check_files
from retrace.finetuning.settings import INPUT_LENGTHS, METHODS, PER_TASK, FineTuneParams, check_room, method_settings
from retrace.hub.pins import CheckpointParams, ModelParams, read_initial_checkpoint
from retrace.hub.settings import HubClassificationParams, HubParams
from retrace.models.settings import FAMILIES, check_family, check_pairs, constants_of
from retrace.perplexity.settings import PerplexityParams
from retrace.pretraining.settings import PretrainParams
from retrace.report.runs import ReportParams
from retrace.results.grid import Cell, Grid
from retrace.review.settings import ReviewParams
from retrace.sample.corpus import SampleParams
from retrace.tasks.question_answering.settings import FineTuneAnswerParams, check_generative
from retrace.tokens.settings import TokenizeParams

ROOM_OF_PAIR = 5  # the fewest tokens of an input of two texts: three special ones and one of each text
STAGES: Mapping[str, type[Params]] = {
    "sample": SampleParams,
    "tokenize": TokenizeParams,
    "pretrain": PretrainParams,
    "perplexity-eval": PerplexityParams,
    "finetune-sst2": FineTuneParams,
    "finetune-squad": FineTuneAnswerParams,
    "evaluate": EvaluateParams,
    "report": ReportParams,
    "files": FilesParams,
    "hub": HubParams,
    "model": ModelParams,
    "classification": ClassificationParams,
    "question-answering": QuestionAnsweringParams,
    "hub-classification": HubClassificationParams,
    "checkpoints": CheckpointParams,
    "review": ReviewParams,
}
NAMED_BY_DVC = ("finetune.questions", "hub.classification")  # in dvc.yaml and data/dvc.yaml, which have no defaults
FURTHER_TASKS = ("classification", "hub-classification", "question-answering")  # stages that run once for each task


def check(
    cache: Annotated[bool, typer.Option("--cache", help="also remove damaged files from DVC's cache")] = False,
) -> None:
    """Check every setting and every key as the stages would, and report the first mistake.

    DVC cannot start if its lock file is damaged or names a process that is not DVC; such a file is removed first.
    """
    require_checkout(PARAMS, DATA_PARAMS)
    if fault := lock_fault():
        LOCK.unlink()
        print(printable(f"{fault}; it was removed"))
    if cache:
        mend_cache()
    check_project()
    print(f"{PARAMS}, {DATA_PARAMS}: ok")


def check_project() -> dict[str, Any]:
    """The settings here; raises InputError unless the stages accept them and the files that dvc.yaml names exist."""
    require_checkout(PARAMS, DATA_PARAMS)
    params, data = read_yaml(PARAMS), read_yaml(DATA_PARAMS)
    check_settings(params, data)
    needs_files = str(plugin_file(METHODS, "${item.method}")) in read_text(PROJECT / "dvc.yaml")
    for label in Grid.read(params).every_method:
        if needs_files and label not in plugin_names(METHODS):  # a study's own dvc.yaml may list other files
            raise InputError(
                f"{PARAMS}: methods.{label}: dvc.yaml makes its stages depend on {plugin_file(METHODS, label)}, which "
                f"is not there; copy the file of the method that it is based on, and remove methods.{label}.method"
            )
    return params | data


def require_ready() -> None:
    """Raise InputError as `check_ready` does; nothing is checked where there is no params.yaml."""
    if PARAMS.is_file():
        check_ready()


def check_ready() -> dict[str, Any]:
    """The settings here; raises InputError as `check_project` does, or if a further task lacks its files.

    DVC would run other stages first, or only say that a dependency is missing. A folder that `dvc add` tracks is
    not checked, as its files may still be in the remote.
    """
    settings = check_project()
    for params_class in (ClassificationParams, QuestionAnsweringParams):
        section = _fixed(params_class.dvc_keys()[0])
        for name in build(dict[str, dict], settings, section):
            task = params_class.read(settings, key=name).task
            folder = Path(task.folder)
            if not any(Path(f"{above}.dvc").is_file() for above in (folder, *folder.parents)):
                check_files(task, f"{section}.{name}")
    return settings


def check_settings(params: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise InputError unless the stages accept the settings of params.yaml and data/params.yaml."""
    settings = with_data(params, data)
    values_of(settings, NAMED_BY_DVC)
    for stage, params_class in STAGES.items():
        if not any("{" in key for key in params_class.dvc_keys()) or stage == "report":
            params_class.read(settings)
    tasks = tasks_of(settings)
    read = {*tasks, *(_fixed(key) for params_class in STAGES.values() for key in params_class.dvc_keys())} - {""}
    for file, values in ((PARAMS, params), (DATA_PARAMS, data)):
        _require_read(values, {key for key in read if file_of(key) == file}, file)
    require_one_of(plugin_names(FAMILIES), settings["family"], "family")
    pretraining = PretrainParams.read(settings)
    if pretraining.pretrain.text_epochs and "text" not in TokenizeParams.read(settings).tokenizer.train_on:
        raise InputError(
            f"{PARAMS}: pretrain.text_epochs: expected 0, as tokenizer.train_on leaves out the running text"
        )
    if read_initial_checkpoint(settings).origin is None:
        check_family(pretraining.family, pretraining.model)
    if pretraining.pretrain.next_sentence:
        check_pairs(pretraining.family)
    for name in build(dict[str, dict], settings, "checkpoints"):
        family = read_initial_checkpoint(settings, name).family
        require_one_of(plugin_names(FAMILIES), family, f"checkpoints.{name}.family")
    _check_methods(settings, tasks)
    _check_fine_tuning(settings, tasks)


def tasks_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """All tasks, each with the section of data/params.yaml that defines its kind."""
    tasks = {"sst2": "classification", "squad": "question_answering"}
    for params_class in (STAGES[stage] for stage in FURTHER_TASKS):
        section = _fixed(params_class.dvc_keys()[0])
        for name in build(dict[str, dict], settings, section):
            params_class.read(settings, key=name)
            if name in tasks:
                raise InputError(f"{DATA_PARAMS}: {section}.{name}: {tasks[name]} has a task of that name too")
            tasks[name] = section
    return tasks


def _fixed(key: str) -> str:
    """A stage's key without the file name and the part that dvc.yaml fills in."""
    return key.rpartition(":")[2].partition("${")[0].rstrip(".")


def _require_read(values: Mapping[str, Any], read: Collection[str], file: Path, above: str = "") -> None:
    """Raise InputError for a key that no stage reads."""
    for name, value in values.items():
        key = f"{above}{name}"
        if key in read:
            continue
        if not any(each.startswith(f"{key}.") for each in read) or not isinstance(value, Mapping):
            known = {each.removeprefix(above).partition(".")[0] for each in read if each.startswith(above)}
            raise InputError(f"{file}: {key}: unknown key; allowed: {', '.join(sorted(known))}")
        _require_read(value, read, file, f"{key}.")


def _check_methods(settings: Mapping[str, Any], tasks: Collection[str]) -> None:
    """Check each entry under `methods`: its settings, and the names that it refers to."""
    grid = Grid.read(settings)
    entries = build(dict[str, dict[str, Any]], settings, "methods")
    for key in ("methods", "squad_methods"):
        for label in getattr(grid, key):
            if label not in entries and label in plugin_names(METHODS):
                file = plugin_file(METHODS, label)
                raise InputError(f"{PARAMS}: methods.{label}: missing; {file} needs an entry, which may be {{}}")
            require_one_of(entries, label, f"finetune.{key}")
    for label, entry in entries.items():
        key = f"methods.{label}"
        _, found = method_settings(settings, label)
        if found.checkpoint is not None:
            require_one_of(settings["checkpoints"], found.checkpoint, f"{key}.checkpoint")
        for task in entry.get(PER_TASK, {}):
            require_one_of(tasks, task, f"{key}.{PER_TASK}")


def _check_fine_tuning(settings: Mapping[str, Any], tasks: Mapping[str, str]) -> None:
    """Check the names of the listed tasks, and the section of each task that has one or needs one."""
    grid = Grid.read(settings)
    questions = [task for task, section in tasks.items() if section == "question_answering"]
    classified = [task for task in tasks if task not in questions]
    for key, allowed in (("tasks", classified), ("questions", questions)):
        for task in getattr(grid, key):
            require_one_of(allowed, task, f"finetune.{key}")
    for task in tasks:
        if task not in settings and task not in (*grid.tasks, *grid.questions):
            continue
        if task in questions:
            found = FineTuneAnswerParams.read(settings, task=task, method=grid.methods[0]).task
            if found.answers == "generative":
                for checkpoint in _bases(settings, grid.squad_methods):
                    check_generative(_family_of(settings, checkpoint), task)
            continue
        found = FineTuneParams.read(settings, task=task, method=grid.methods[0]).task
        if task != "sst2" and build(dict, settings, f"{tasks[task]}.{task}").get("pair") is not None:
            check_room(f"{task}.max_length", found.max_length, ROOM_OF_PAIR, "a token of each text")
    _check_stage_names(grid)
    for task in grid.all_tasks:
        _check_models(settings, task, _bases(settings, grid.methods_of(task)))


def _check_stage_names(grid: Grid) -> None:
    """Raise InputError if DVC would give two cells the same stage: it silently keeps only the last."""
    for key, listed in (("tasks", grid.tasks), ("questions", grid.questions if grid.squad_methods else ())):
        cells: dict[str, Cell] = {}
        for cell in (cell for task in listed for cell in grid.cells_of(task)):
            other = cells.setdefault(cell.stage, cell)
            if other != cell:
                both = f"{other.method} on {other.task} and {cell.method} on {cell.task}"
                raise InputError(f"{PARAMS}: finetune.{key}: {cell.task!r} is not allowed; {both} would be one stage")


def _check_models(settings: Mapping[str, Any], task: str, bases: Collection[str | None]) -> None:
    """Check a task's dropout and input lengths against the models that its methods start from.

    A checkpoint's longest input is only known once it has been fetched.
    """
    rate, longest = settings[task].get("dropout"), settings["model"]["max_positions"]
    families = [] if rate is None else [_family_of(settings, checkpoint) for checkpoint in bases]
    for family in families:
        if not constants_of(family).get("DROPOUT_LAYERS", True):
            reason = f"{rate} is not allowed with family: {family}, which has no dropout layer"
            raise InputError(f"{PARAMS}: {task}.dropout: {reason}")
    if settings["model"]["checkpoint"] is not None or None not in bases:
        return
    for key in INPUT_LENGTHS:
        given = settings[task].get(key)
        if given is not None and given > longest:
            allowed = f"expected at most model.max_positions ({longest})"
            raise InputError(f"{PARAMS}: {task}.{key}: {given} is not allowed; {allowed}")


def _bases(settings: Mapping[str, Any], labels: Collection[str]) -> list[str | None]:
    """The checkpoint that each method starts from; None for the model pretrained here."""
    return [method_settings(settings, label)[1].checkpoint for label in labels]


def _family_of(settings: Mapping[str, Any], checkpoint: str | None) -> str:
    return build(str, settings, "family" if checkpoint is None else f"checkpoints.{checkpoint}.family")
