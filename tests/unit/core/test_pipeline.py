"""What the project's own dvc.yaml wires, and a study's."""

from pathlib import Path

import pytest

from retrace.core.errors import InputError
from retrace.core.pipeline import CLASSES, QUESTIONS, check_method, check_models, check_questions
from retrace.core.settings import build, read_params
from retrace.results.grid import SQUAD, Matrix
from tests.toy import ROOT

PARAMS = {"methods": {"full": {"lr_times": 1}, "big": {"tuning": "lora", "rank": 4}, "other": {"model": "x"}}}


@pytest.mark.parametrize("folder", [ROOT, None])
@pytest.mark.parametrize("stage", [CLASSES, QUESTIONS])
def test_the_projects_own_pipeline_wires_no_alias_no_model_and_no_methods_of_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path | None, stage: str
) -> None:
    monkeypatch.chdir(folder or tmp_path)
    check_method(PARAMS, "full", stage)
    check_method(PARAMS, "lora", stage)  # of which params.yaml says nothing
    check_questions(None)
    check_models([])
    said = (
        rf"^params.yaml: methods.big.tuning: 'lora' is not allowed here; {stage} in dvc.yaml does not depend on retrace"
    )
    with pytest.raises(InputError, match=said):
        check_method(PARAMS, "big", stage)
    with pytest.raises(InputError, match=r"^params.yaml: methods.other.model: 'x' is not allowed here; "):
        check_method(PARAMS, "other", stage)
    for methods in ([], ["full"]):
        with pytest.raises(
            InputError, match=r"finetune.squad: \[.*\] is not allowed here; finetune-squad in dvc.yaml tr"
        ):
            check_questions(methods)
    with pytest.raises(
        InputError, match=r"^params.yaml: models: x is not allowed here; no stage in dvc.yaml makes them$"
    ):
        check_models(["x"])


@pytest.mark.parametrize("study", sorted(path.parent.name for path in (ROOT / "studies").glob("*/dvc.yaml")))
def test_a_study_wires_what_it_sets(monkeypatch: pytest.MonkeyPatch, study: str) -> None:
    monkeypatch.chdir(ROOT / "studies" / study)
    params = read_params()
    matrix = build(Matrix, params, "finetune")
    check_questions(matrix.squad)
    check_models(list(params.get("models", {})))
    for label in matrix.methods:
        check_method(params, label, CLASSES)
    for label in matrix.methods_of(SQUAD):
        check_method(params, label, QUESTIONS)
