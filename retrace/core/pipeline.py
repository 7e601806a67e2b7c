"""What a folder's dvc.yaml takes from params.yaml: what it leaves out would not be run, or be stale in silence.

Studies wire settings that the project's own pipeline does not.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from retrace.core.errors import InputError

FILE = Path("dvc.yaml")
OWN = Path(__file__).parents[2] / FILE  # the project's, which counts where a folder has none
CLASSES, QUESTIONS = "finetune-sst2", "finetune-squad"


def check_method(params: Mapping[str, Any], label: str, stage: str) -> None:
    """Raise InputError where a method's tuning or model is none that the stage of fine-tuning depends on."""
    entry = params.get("methods", {}).get(label)
    if not isinstance(entry, Mapping) or not {"tuning", "model"} & entry.keys():
        return
    deps = [dep.replace("${item.method}", label) for dep in _stages().get(stage, {}).get("deps", ())]
    needed = {"tuning": f"retrace/methods/{entry.get('tuning')}.py", "model": "data/models"}
    for setting, dep in needed.items():
        if entry.get(setting) is not None and not any(each.endswith(dep) for each in deps):
            raise InputError(
                f"params.yaml: methods.{label}.{setting}: {entry[setting]!r} is not allowed here; "
                f"{stage} in {FILE} does not depend on {dep}"
            )


def check_questions(methods: Sequence[str] | None) -> None:
    """Raise InputError where questions are to have methods of their own and dvc.yaml does not take these."""
    if methods is None:
        return
    stage = _stages().get(QUESTIONS)
    by = stage["matrix"]["method"] if stage else []
    if by != "${finetune.squad}" and by != list(methods):
        trained = f"trains by {str(by).strip('${}')}" if by else "is not there"
        raise InputError(
            f"params.yaml: finetune.squad: {list(methods)} is not allowed here; {QUESTIONS} in {FILE} {trained}"
        )


def check_models(names: Sequence[str]) -> None:
    """Raise InputError where models are named that no stage makes."""
    if names and not any(stage.get("foreach") == "${models}" for stage in _stages().values()):
        raise InputError(f"params.yaml: models: {', '.join(names)} is not allowed here; no stage in {FILE} makes them")


def _stages() -> dict[str, Any]:
    return YAML(typ="safe").load(FILE if FILE.is_file() else OWN)["stages"]
