"""`retrace check`: is every setting in params.yaml one that the stages accept?"""

from typing import Any, Literal

from retrace.core.errors import InputError
from retrace.core.pipeline import CLASSES, QUESTIONS, check_method, check_models, check_questions
from retrace.core.registry import plugin_names
from retrace.core.settings import Precision, build, check_seed, check_value, profile_key, read_params, section
from retrace.evaluation.outcomes import Answered, Classified
from retrace.evaluation.scoring import SCORES, Scoring
from retrace.evaluation.settings import ScoreSettings
from retrace.finetuning.method import read_method
from retrace.finetuning.settings import FineTuneSettings, check_length
from retrace.hub.checkpoint import read_initial_checkpoint
from retrace.hub.settings import HubSettings, hub_task_settings
from retrace.models.settings import ModelSettings
from retrace.perplexity.measures import PerplexitySettings
from retrace.report.settings import ReportSettings
from retrace.results.grid import SQUAD, Matrix
from retrace.sample.generate import SampleSettings
from retrace.sources.files import FilesSettings
from retrace.sources.tasks import task_settings
from retrace.tasks.question_answering.generative import SHORTEST, check_family
from retrace.tasks.question_answering.settings import ReadingSettings
from retrace.tasks.question_answering.windows import shortest_window
from retrace.tokens.tokenizer import PairFormat, TokenizerSettings
from retrace.training.pretraining import PretrainSettings, check_block, check_pretraining

SECTIONS = {
    "sample": SampleSettings, "files": FilesSettings, "hub": HubSettings, "squad": ReadingSettings,
    "scores": ScoreSettings, "report": ReportSettings, "finetune": Matrix,
}  # fmt: skip
VALUES = {
    "lr": float,
    "seed": int,
    "family": str,
    "precision": Precision,
    "methods": dict[str, dict],
    "data": Literal["sample", "files", "hub"],
    "profile": str,
    "classification": dict[str, dict],
    "model": dict[str, str | int | None],
}
PROFILE = {
    "tokenizer": TokenizerSettings, "model": ModelSettings, "pretrain": PretrainSettings,
    "perplexity": PerplexitySettings, "sst2": FineTuneSettings, "squad": FineTuneSettings,
}  # fmt: skip

OWN_FORMAT = PairFormat(before=(0,), between=(0,), after=(0,))  # of tokenizers that are trained here


def main() -> None:
    """Build every settings class; the first that is wrong raises InputError."""
    params = read_params()
    _known(params, "", [*VALUES, *SECTIONS, "models", "profiles"])
    for key, expected in VALUES.items():
        check_value(params, key, expected)
    check_seed(params["seed"])
    for key, settings in SECTIONS.items():
        build(settings, params, key)
    of_files, of_hub = params["classification"], params["hub"]["classification"]
    for task in of_files:
        task_settings(params, task)
    for task in of_hub:
        hub_task_settings(params, task)
        if task in of_files:
            raise InputError(f"params.yaml: hub.classification.{task}: classification has a task of that name too")
    tasks = [*of_files, *of_hub]
    matrix = build(Matrix, params, "finetune")
    _wired(params, matrix)
    for task in matrix.classification:
        _one_of("finetune.classification", task, ["sst2", *tasks])
        build(FineTuneSettings, params, profile_key(params, task))
    _one_of("family", params["family"], plugin_names("retrace.families"))
    if build(ReadingSettings, params, "squad").answers == "generated":
        check_family(params["family"])
    models = params.get("models") or {}
    for name in models:
        _one_of(f"models.{name}.family", read_initial_checkpoint(params, name).family, plugin_names("retrace.families"))
    for label, entry in params["methods"].items():
        _one_of("methods", entry.get("tuning") or label, plugin_names("retrace.methods"))
    for label in dict.fromkeys([*params["methods"], *matrix.every_method]):
        model = read_method(params, label).settings.model
        if model is not None:
            _one_of(f"methods.{label}.model", model, list(models))
    _plugins(params, "scores.curves", SCORES)
    for task, kind in (("classification", Classified), ("squad", Answered)):
        Scoring(params["scores"][task], f"scores.{task}", kind)
    for profile in section(params, "profiles"):
        sections = PROFILE | {task: FineTuneSettings for task in tasks if task in params["profiles"][profile]}
        _known(params["profiles"][profile], f"profiles.{profile}.", list(sections))
        for name, settings in sections.items():
            build(settings, params, f"profiles.{profile}.{name}")
        _lengths(params, profile)
    model, recipe = (profile_key(params, name) for name in ("model", "pretrain"))
    settings, is_given = build(PretrainSettings, params, recipe), read_initial_checkpoint(params).origin is not None
    check_pretraining(params["lr"], settings, recipe, is_given)
    if not is_given:
        check_block(settings, recipe, build(ModelSettings, params, model).max_length, f"{model}.max_length")
    print("params.yaml: every setting is one that the stages accept")


def _wired(params: dict[str, Any], matrix: Matrix) -> None:
    """Settings that a folder's dvc.yaml may leave out."""
    check_questions(matrix.squad)
    for label in matrix.methods if matrix.classification else ():
        check_method(params, label, CLASSES)
    for label in matrix.methods_of(SQUAD):
        check_method(params, label, QUESTIONS)
    check_models(list(params.get("models") or {}))


def _lengths(params: dict[str, Any], profile: str) -> None:
    """What special tokens leave of an input; of a model's own tokenizer or a given one only the stage knows."""
    sections = params["profiles"][profile]
    if read_initial_checkpoint(params).origin is not None or sections["tokenizer"].get("given") is not None:
        return
    for task, entry in ({"sst2": {}} | params["classification"] | params["hub"]["classification"]).items():
        if task in sections:
            least, holds = (5, "a token of each text") if entry.get("pair") else (3, "a token of the text")
            check_length(f"profiles.{profile}.{task}", sections[task]["max_length"], least, holds)
    reading, longest = build(ReadingSettings, params, "squad"), sections["squad"]["max_length"]
    if reading.answers == "spans":
        least, holds = shortest_window(OWN_FORMAT), "a token each of question and passage"
    else:
        least, holds = reading.max_answer + SHORTEST, f"squad.max_answer ({reading.max_answer}) and {SHORTEST} to read"
    check_length(f"profiles.{profile}.squad", longest, least, holds)


def _known(values: dict[str, Any], prefix: str, allowed: list[str]) -> None:
    for key in values:
        if key not in allowed:
            raise InputError(f"params.yaml: {prefix}{key}: unknown key; allowed: {', '.join(allowed)}")


def _plugins(params: dict[str, Any], key: str, package: str) -> None:
    for name in check_value(params, key, list[str]):
        _one_of(key, name, plugin_names(package))


def _one_of(key: str, name: str, allowed: list[str]) -> None:
    if name not in allowed:
        raise InputError(f"params.yaml: {key}: {name!r} is not allowed; expected one of {', '.join(allowed)}")
