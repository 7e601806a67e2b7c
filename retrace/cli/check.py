"""`retrace check`: is every setting one that the stages accept, and is every key read by a stage?"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from retrace.core.errors import InputError
from retrace.core.registry import plugin_names
from retrace.core.settings import DATA_PARAMS, PARAMS, Params, build, file_of, read_yaml
from retrace.evaluation.settings import EvaluateParams
from retrace.files.settings import FilesParams
from retrace.finetuning.settings import METHODS, PER_TASK, FineTuneParams, method_settings
from retrace.hub.checkpoint import CheckpointParams, ModelParams, read_initial_checkpoint
from retrace.hub.settings import HubParams
from retrace.perplexity.settings import PerplexityParams
from retrace.pretraining.settings import PretrainParams
from retrace.report.settings import ReportParams
from retrace.results.grid import Grid
from retrace.sample.settings import SampleParams
from retrace.sources.hub_settings import HubClassificationParams
from retrace.sources.settings import ClassificationParams, QuestionAnsweringParams
from retrace.tasks.question_answering.settings import FineTuneAnswerParams
from retrace.tokens.settings import TokenizeParams

FAMILIES = "retrace.families"
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
}


def main() -> None:
    """Read what every stage reads; the first that is wrong raises InputError."""
    check_settings(read_yaml(PARAMS), read_yaml(DATA_PARAMS))
    print(f"{PARAMS}, {DATA_PARAMS}: ok")


def check_settings(params: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise InputError unless the stages accept the settings of params.yaml and data/params.yaml."""
    settings = {**params, **data}
    for stage, of in STAGES.items():
        if not any("{" in key for key in of.dvc_keys()) or stage == "report":
            of.read(settings)
    tasks, questions = _tasks(settings), _questions(settings)
    read = {_fixed(key) for of in STAGES.values() for key in of.dvc_keys()} | {*tasks, *questions}
    _require_read(params, {key for key in read if file_of(key) == PARAMS}, PARAMS)
    _require_read(data, {key for key in read if file_of(key) == DATA_PARAMS}, DATA_PARAMS)
    one_of("family", settings["family"], plugin_names(FAMILIES))
    for name in build(dict[str, dict], settings, "checkpoints"):
        one_of(f"checkpoints.{name}.family", read_initial_checkpoint(settings, name).family, plugin_names(FAMILIES))
    read_initial_checkpoint(settings)
    _check_methods(settings, [*tasks, *questions])
    _check_fine_tuning(settings, tasks, questions)


def one_of(key: str, name: str, allowed: Collection[str]) -> None:
    """Raise InputError unless the name that stands under a key is allowed."""
    if name not in allowed:
        expected = f"one of {', '.join(allowed)}" if allowed else "none, as there are none"
        raise InputError(f"{file_of(key)}: {key}: {name!r} is not allowed; expected {expected}")


def _tasks(settings: Mapping[str, Any]) -> dict[str, bool]:
    """The classification tasks that there are, and whether they are on pairs of texts."""
    tasks = {"sst2": False}
    for section, stage in (("classification", "classification"), ("hub.classification", "hub-classification")):
        for name, entry in build(dict[str, dict], settings, section).items():
            STAGES[stage].read(settings, key=name)
            if name in tasks:
                raise InputError(f"{DATA_PARAMS}: {section}.{name}: classification has a task of that name too")
            tasks[name] = entry.get("pair") is not None
    return tasks


def _questions(settings: Mapping[str, Any]) -> list[str]:
    """The question-answering tasks that there are."""
    others = build(dict[str, dict], settings, "question_answering")
    for name in others:
        QuestionAnsweringParams.read(settings, key=name)
        for section in ("classification", "hub.classification"):
            if name in build(dict[str, dict], settings, section):
                raise InputError(f"{DATA_PARAMS}: question_answering.{name}: {section} has a task of that name too")
    return ["squad", *others]


def _fixed(key: str) -> str:
    """A stage's key without the part that dvc.yaml fills in."""
    return key.removeprefix(f"{DATA_PARAMS}:").partition("${")[0].rstrip(".")


def _require_read(values: Mapping[str, Any], read: Collection[str], file: Any, above: str = "") -> None:
    """Raise InputError for a key that no stage reads."""
    for name, value in values.items():
        key = f"{above}{name}"
        if key in read:
            continue
        if not any(each.startswith(f"{key}.") for each in read) or not isinstance(value, Mapping):
            allowed = dict.fromkeys(
                each.removeprefix(above).partition(".")[0] for each in sorted(read) if each.startswith(above)
            )
            raise InputError(f"{file}: {key}: unknown key; allowed: {', '.join(filter(None, allowed))}")
        _require_read(value, read, file, f"{key}.")


def _check_methods(settings: Mapping[str, Any], tasks: Collection[str]) -> None:
    """Each entry under `methods`: its settings, and the names in it."""
    grid = build(Grid, settings, "finetune")
    for label in dict.fromkeys([*build(dict[str, dict], settings, "methods"), *grid.methods, *grid.squad_methods]):
        entry = build(dict[str, Any], settings, f"methods.{label}")
        _, found = method_settings(settings, label)
        if found.method not in (None, label) and label in plugin_names(METHODS):
            raise InputError(
                f"{PARAMS}: methods.{label}.method: {found.method!r} is not allowed; {label} is a method itself"
            )
        if found.checkpoint is not None:
            one_of(f"methods.{label}.checkpoint", found.checkpoint, settings["checkpoints"])
        for task in entry.get(PER_TASK) or {}:
            one_of(f"methods.{label}.{PER_TASK}", task, tasks)


def _check_fine_tuning(settings: Mapping[str, Any], tasks: Mapping[str, bool], questions: Sequence[str]) -> None:
    """The tasks that are listed, or have a section, and their sections."""
    grid = build(Grid, settings, "finetune")
    for task in grid.tasks:
        one_of("finetune.tasks", task, tasks)
    for task, is_on_pairs in tasks.items():
        if task in settings or task in grid.tasks:
            length = FineTuneParams.read(settings, task=task, method=grid.methods[0]).task.max_length
            if is_on_pairs and length < SHORTEST_PAIR:
                raise InputError(
                    f"{PARAMS}: {task}.max_length: {length} is not allowed; expected at least {SHORTEST_PAIR}, "
                    "which hold a token of each text"
                )
    for task in grid.questions:
        one_of("finetune.questions", task, questions)
    listed = [task for task in questions if task in settings or task in grid.questions]
    read = {task: FineTuneAnswerParams.read(settings, task=task, method=grid.methods[0]).task for task in listed}
    generative = [task for task in read if read[task].answers == "generative"]
    for label in grid.squad_methods if generative else ():
        from retrace.tasks.question_answering.generative import check_family  # here, as it takes seconds to import

        checkpoint = method_settings(settings, label)[1].checkpoint
        family = build(str, settings, "family" if checkpoint is None else f"checkpoints.{checkpoint}.family")
        check_family(family, generative[0])
