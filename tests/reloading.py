"""Loads published models as their cards say, and has them predict what the stages did."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from huggingface_hub import hf_hub_download
from transformers import GenerationMixin

from retrace.compute.device import open_device
from retrace.core.paths import PRETRAINED
from retrace.core.settings import read_params
from retrace.finetuning.task import Row, Task, predict
from retrace.results.grid import PREDICTIONS, Grid
from retrace.results.predictions import kept_epoch, read_epochs
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import SpanModel
from retrace.tasks.question_answering.generative import ANSWERING
from retrace.tasks.question_answering.settings import AnswerSettings, settings_of
from retrace.tokens.tokenizer import load_tokenizer


def lines_of(card: str) -> str:
    """The Python in a card."""
    (found,) = re.findall(r"```python\n(.*?)\n```", card, flags=re.DOTALL)
    return found


def load(repository: str) -> dict[str, Any]:
    """What the lines of a repository's card leave: `model` and `tokenizer`."""
    names: dict[str, Any] = {}
    exec(lines_of(Path(hf_hub_download(repository, "README.md")).read_text()), names)
    return names


def predicted(model: Any, task_name: str) -> list[Row]:
    """What a model says on the validation data, asked as the stages ask."""
    params = read_params()
    settings = settings_of(params, task_name)
    kind = ANSWERING[settings.answers] if isinstance(settings, AnswerSettings) else Classification
    task: Task[Any] = kind.read(Grid.read(params).data_of(task_name), PRETRAINED, settings)
    device = open_device(1, params["precision"])
    body = model.body if isinstance(model, SpanModel) else model
    body.set_attn_implementation(device.attention)
    examples = task.examples("dev")
    asked = model if isinstance(model, SpanModel) else task.wrap(model)
    return task.rows(examples, predict(task, asked, examples, 2 * settings.batch_size, device)[0])


def reload(folder: str, pairs: list[str]) -> list[dict[str, Any]]:
    """Whether published models, each followed by its cell, predict what the stages recorded in a project's folder."""
    os.chdir(folder)
    found = []
    for repository, cell in zip(pairs[::2], pairs[1::2], strict=True):
        names, task = load(repository), cell.split("/")[0]
        kind = "question_answering" if task == "squad" else "classification"
        expected = kept_epoch(read_epochs(PREDICTIONS / cell, kind)).rows
        # Parquet's types are those of all epochs: where one answer has no start, all starts are floats.
        rows = pd.DataFrame(predicted(names["model"], task)).astype(expected.dtypes)
        own = load_tokenizer(PRETRAINED).encode("an ale").ids
        if isinstance(names["model"], GenerationMixin):
            own.pop()  # the token that ends a text; a prompt goes on
        same_tokens = names["tokenizer"]("an ale")["input_ids"] == own
        equal = _agree(rows, expected)
        found.append({"repository": repository, "rows": len(rows), "equal": equal, "same_tokens": same_tokens})
    return found


def _agree(rows: pd.DataFrame, expected: pd.DataFrame) -> bool:
    """Whether classes, answers and their order are the same, and numbers up to rounding."""
    numbers = expected.select_dtypes("float").columns
    is_same = rows.drop(columns=numbers).equals(expected.drop(columns=numbers))
    return is_same and np.allclose(rows[numbers], expected[numbers], rtol=1e-4, atol=1e-5, equal_nan=True)
