"""`retrace check`, and which settings each stage reads."""

import time
from collections.abc import Collection, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from retrace.core.errors import InputError
from retrace.core.files import file_digest, read_object, read_text
from retrace.core.paths import PROJECT
from retrace.core.settings import (
    DATA_PARAMS,
    PARAMS,
    Params,
    build,
    constants_of,
    file_of,
    plugin_names,
    read_yaml,
    require_one_of,
    values_of,
)
from retrace.evaluation.settings import EvaluateParams
from retrace.files.settings import ClassificationParams, FilesParams, QuestionAnsweringParams
from retrace.finetuning.settings import INPUT_LENGTHS, METHODS, PER_TASK, FineTuneParams, check_length, method_settings
from retrace.hub.pins import CheckpointParams, ModelParams, read_initial_checkpoint
from retrace.hub.settings import HubClassificationParams, HubParams
from retrace.models.settings import FAMILIES, check_family, check_pairs
from retrace.perplexity.settings import PerplexityParams
from retrace.pretraining.settings import PretrainParams
from retrace.report.runs import ReportParams
from retrace.results.grid import NAME, Grid
from retrace.review.settings import ReviewParams
from retrace.sample.corpus import SampleParams
from retrace.tasks.question_answering.settings import FineTuneAnswerParams, check_generative
from retrace.tokens.settings import TokenizeParams

LOCK = Path(".dvc/tmp/rwlock")  # what the DVC processes of a project read and write, as json
WRITTEN = 1.0  # seconds in which DVC has written it
SHORTEST_PAIR = 5  # tokens of two texts: three special ones, one of each text
STAGES: Mapping[str, type[Params]] = {
    "tokenize": TokenizeParams,
    "pretrain": PretrainParams,
    "perplexity-eval": PerplexityParams,
    "finetune-sst2": FineTuneParams,
    "finetune-squad": FineTuneAnswerParams,
    "evaluate": EvaluateParams,
    "report": ReportParams,
    "sample": SampleParams,
    "files": FilesParams,
    "hub": HubParams,
    "model": ModelParams,
    "classification": ClassificationParams,
    "question-answering": QuestionAnsweringParams,
    "hub-classification": HubClassificationParams,
    "checkpoints": CheckpointParams,
    "review": ReviewParams,
}
NAMED_BY_DVC = ("finetune.questions", "hub.classification")  # by dvc.yaml and data/dvc.yaml, which know no defaults
FURTHER_TASKS: Mapping[str, type[Params]] = {  # by the section of data/params.yaml that defines them
    "classification": ClassificationParams,
    "hub.classification": HubClassificationParams,
    "question_answering": QuestionAnsweringParams,
}


def check(cache: Annotated[bool, typer.Option(help="also remove damaged files from DVC's cache")] = False) -> None:
    """Say whether the stages accept every setting, and some stage reads every key; the first that is wrong is named."""
    if fault := lock_fault():
        LOCK.unlink()
        print(f"{fault}; it was removed")
    if cache:
        mend_cache()
    check_project()
    print(f"{PARAMS}, {DATA_PARAMS}: ok")


def check_project() -> None:
    """Raise InputError unless the stages accept the settings here, and dvc.yaml finds the files of the methods."""
    params = read_yaml(PARAMS)
    check_settings(params, read_yaml(DATA_PARAMS))
    _check_method_files(params)


def lock_fault() -> str | None:
    """Why DVC would not start here, in a line; None where it would.

    A killed DVC leaves half of its record of who uses which file, or its number there, which another program gets.
    """
    for pause in (WRITTEN, 0):
        try:
            lock = read_object(LOCK)
            users = [*lock.get("write", {}).values(), *chain.from_iterable(lock.get("read", {}).values())]
            commands = {int(user["pid"]): user["cmd"] for user in users}
        except FileNotFoundError:
            return None
        except (InputError, AttributeError, KeyError, TypeError, ValueError):
            time.sleep(pause)
            continue
        alive = list(filter(psutil.pid_exists, commands))  # DVC itself removes those that are gone
        if not alive or any(map(_is_dvc, alive)):
            return None
        return f"{LOCK} names process {alive[0]} ({commands[alive[0]]}), which is another program by now"
    return f"{LOCK} is damaged"


def _is_dvc(process: int) -> bool:
    """Whether a process is a DVC, or may be one."""
    try:
        return any(Path(part).name == "dvc" for part in psutil.Process(process).cmdline())
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def cache_folder() -> Path:
    """Where DVC keeps files; the path of each there is its MD5."""
    from dvc.config import Config  # here, as it takes half a second to import

    return Path(Config.from_cwd()["cache"].get("dir", ".dvc/cache"), "files/md5")


def mend_cache() -> None:
    """Remove damaged files from DVC's cache, which DVC would take for sound; `dvc repro` makes them anew."""
    files = sorted(cache_folder().glob("??/*"))
    damaged = [path for path in files if file_digest(path, "md5") != path.parent.name + path.name.removesuffix(".dir")]
    for path in damaged:
        path.unlink()
        print(f"{path}: damaged, and removed")
    print(f"DVC's cache: {len(files)} files, {len(damaged)} damaged")


def check_settings(params: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise InputError unless the stages accept the settings of params.yaml and data/params.yaml."""
    settings = {**params, **data}
    values_of(settings, NAMED_BY_DVC)
    for stage, of in STAGES.items():
        if not any("{" in key for key in of.dvc_keys()) or stage == "report":
            of.read(settings)
    tasks = _tasks(settings)
    read = {*tasks, *(_fixed(key) for of in STAGES.values() for key in of.dvc_keys())} - {""}
    for file, values in ((PARAMS, params), (DATA_PARAMS, data)):
        _require_read(values, {key for key in read if file_of(key) == file}, file)
    require_one_of(plugin_names(FAMILIES), settings["family"], "family")
    pretraining = PretrainParams.read(settings)
    if read_initial_checkpoint(settings).origin is None:
        check_family(pretraining.family, pretraining.model)
    if pretraining.pretrain.next_sentence:
        check_pairs(pretraining.family)
    for name in build(dict[str, dict], settings, "checkpoints"):
        if not NAME.fullmatch(name):  # of a folder, and DVC hands it to a shell
            raise InputError(
                f"{DATA_PARAMS}: checkpoints.{name}: the name is not allowed; expected letters, digits, _ and -"
            )
        family = read_initial_checkpoint(settings, name).family
        require_one_of(plugin_names(FAMILIES), family, f"checkpoints.{name}.family")
    _check_methods(settings, tasks)
    _check_fine_tuning(settings, tasks)
    _check_positions(settings)


def _tasks(settings: Mapping[str, Any]) -> dict[str, str]:
    """All tasks, each with the section that it would be or is defined in."""
    tasks = {"sst2": "classification", "squad": "question_answering"}
    for section, of in FURTHER_TASKS.items():
        for name in build(dict[str, dict], settings, section):
            of.read(settings, key=name)
            if name in tasks:
                raise InputError(f"{DATA_PARAMS}: {section}.{name}: {tasks[name]} has a task of that name too")
            tasks[name] = section
    return tasks


def _fixed(key: str) -> str:
    """A stage's key without the file and the part that dvc.yaml fills in."""
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
    """Each entry under `methods`: its settings, and the names in it."""
    grid = build(Grid, settings, "finetune")
    for label in dict.fromkeys([*build(dict[str, dict], settings, "methods"), *grid.methods, *grid.squad_methods]):
        key, entry = f"methods.{label}", build(dict[str, Any], settings, f"methods.{label}")
        _, found = method_settings(settings, label)
        if found.method not in (None, label) and label in plugin_names(METHODS):
            raise InputError(f"{PARAMS}: {key}.method: {found.method!r} is not allowed; {label} is a method itself")
        if found.checkpoint is not None:
            require_one_of(settings["checkpoints"], found.checkpoint, f"{key}.checkpoint")
        for task in entry.get(PER_TASK) or {}:
            require_one_of(tasks, task, f"{key}.{PER_TASK}")


def _check_method_files(params: Mapping[str, Any]) -> None:
    """There is the file on which dvc.yaml makes each method's stages depend, where it names the file by the method."""
    is_named = f"{METHODS.replace('.', '/')}/${{item.method}}.py" in read_text(PROJECT / "dvc.yaml")
    for label in build(Grid, params, "finetune").every_method if is_named else ():
        if label not in plugin_names(METHODS):
            raise InputError(
                f"{PARAMS}: methods.{label}: dvc.yaml makes its stages depend on retrace/methods/{label}.py, which is "
                f"not there; copy the file that it is to be like"
            )


def _check_fine_tuning(settings: Mapping[str, Any], tasks: Mapping[str, str]) -> None:
    """The tasks that are listed, or have a section, and their sections."""
    grid = build(Grid, settings, "finetune")
    questions = [task for task, section in tasks.items() if section == "question_answering"]
    classified = [task for task in tasks if task not in questions]
    for key, allowed in (("tasks", classified), ("questions", questions)):
        for task in getattr(grid, key):
            require_one_of(allowed, task, f"finetune.{key}")
    generative = []
    for task in tasks:
        if task not in settings and task not in (*grid.tasks, *grid.questions):
            continue
        if task in questions:
            found = FineTuneAnswerParams.read(settings, task=task, method=grid.methods[0]).task
            generative += [task] if found.answers == "generative" else []
            continue
        found = FineTuneParams.read(settings, task=task, method=grid.methods[0]).task
        if task != "sst2" and build(dict, settings, f"{tasks[task]}.{task}").get("pair") is not None:
            check_length(task, found.max_length, SHORTEST_PAIR, "a token of each text")
    for label in grid.squad_methods if generative else ():
        check_generative(_family_of(settings, label), generative[0])
    for task in grid.all_tasks:
        _check_dropout(settings, task, grid.methods_of(task))


def _check_dropout(settings: Mapping[str, Any], task: str, labels: Collection[str]) -> None:
    """A task's own dropout finds layers in the model of each of its methods."""
    rate = settings[task].get("dropout")
    for family in (_family_of(settings, label) for label in labels if rate is not None):
        if not constants_of(FAMILIES, family).get("DROPOUT_LAYERS", True):
            raise InputError(
                f"{PARAMS}: {task}.dropout: {rate} is not allowed with family: {family}, which has no dropout layer"
            )


def _family_of(settings: Mapping[str, Any], label: str) -> str:
    """The family of the model that a method starts from."""
    checkpoint = method_settings(settings, label)[1].checkpoint
    return build(str, settings, "family" if checkpoint is None else f"checkpoints.{checkpoint}.family")


def _check_positions(settings: Mapping[str, Any]) -> None:
    """Inputs are no longer than a model that is pretrained here reads; of a checkpoint the stage says it."""
    grid, longest = build(Grid, settings, "finetune"), settings["model"]["max_positions"]
    for task in grid.all_tasks if settings["model"]["checkpoint"] is None else ():
        own = any(method_settings(settings, label)[1].checkpoint is None for label in grid.methods_of(task))
        for key in INPUT_LENGTHS if own else ():
            given = settings[task].get(key)
            if given is not None and given > longest:
                allowed = f"expected at most model.max_positions ({longest})"
                raise InputError(f"{PARAMS}: {task}.{key}: {given} is not allowed; {allowed}")
