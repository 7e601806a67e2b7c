"""One cell of the fine-tuning matrix."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from retrace.core.settings import Precision
from retrace.finetuning import run
from retrace.finetuning.run import fine_tune, run_cell
from retrace.finetuning.settings import FineTuneParams
from retrace.results.grid import Cell
from retrace.tasks.classification import Classification
from tests.tiny import tiny_pretrained, tiny_sentences


@pytest.mark.parametrize(("precision", "stored"), [("bf16", torch.bfloat16), ("fp32", torch.float32)])
def test_only_the_body_is_stored_in_the_precision_of_products(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: Precision, stored: torch.dtype
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_pretrained(Path("models/pretrained"))
    tiny_sentences(Path("data"), ["sentence\tlabel", "the ale was stale\t0", "the songs were charming\t1"])
    Path("data/source").rename("data/sample")
    found: dict[str, torch.dtype] = {}

    def spy(task: Any, model: torch.nn.Module, *rest: Any) -> Any:
        found.update({name: weight.dtype for name, weight in model.named_parameters()})
        return fine_tune(task, model, *rest)

    monkeypatch.setattr(run, "fine_tune", spy)
    settings = {"lr": 0.001, "epochs": 1, "batch_size": 2, "max_length": 16}
    cell, given = Cell("sst2", "lora", 1), {"data": "sample", "precision": precision, "sst2": settings}
    params = FineTuneParams.read(given | {"methods": {"lora": {}}}, task="sst2", method="lora")
    params.settings.clear()  # there is no params.yaml here, which the guard would compare
    run_cell(cell, params, Path("data/classification/sst2"), Classification.read)
    assert found["model.layers.0.attn.Wqkv.base_layer.weight"] == stored
    assert {dtype for name, dtype in found.items() if "lora_" in name or "norm" in name} == {torch.float32}
    saved = load_file(f"models/{cell.path}/trained.safetensors")
    assert {weight.dtype for weight in saved.values()} == {torch.float32}
