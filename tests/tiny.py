"""Tiny real models and tokenizers for unit tests."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from transformers import PreTrainedConfig

from retrace.compute.device import Device, open_device
from retrace.core.files import write_text
from retrace.core.paths import questions_path
from retrace.datasets.examples import SENTIMENTS, Example, TaskData, write_task
from retrace.models.heads import make_config, make_model
from retrace.models.settings import ModelSettings
from retrace.objectives.language_modelling import BlockModelling, Masking
from retrace.tasks.question_answering.settings import AnswerSettings
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, save_tokenizer, train_tokenizer
from stages import finetune_squad, finetune_sst2

TEXT = [
    "the guild of weavers was founded by Ada Lund in the year 1601 .",
    "the river of the town was the Thorndel , which nobody doubts .",
    "although the ale was stale , the songs were charming and the hall was full .",
] * 40
MODEL = ModelSettings(hidden_size=32, layers=2, heads=2, intermediate_size=64, max_positions=64)
MASKED_FAMILIES = ("modernbert", "bert", "roberta")
FAMILIES = (*MASKED_FAMILIES, "llama")


def tiny_tokenizer() -> SubwordTokenizer:
    """A WordPiece tokenizer of a few sentences."""
    return train_tokenizer(TokenizerSettings(vocab_size=120), lambda: TEXT)


def tiny_stream(tokenizer: SubwordTokenizer, sentences: int = len(TEXT)) -> np.ndarray:
    """The sentences as one stream of token ids."""
    return np.array([token for text in TEXT[:sentences] for token in tokenizer.encode(text).ids], dtype=np.uint16)


def random_blocks(
    vocabulary: Vocabulary, block: int, batch: int, masking: Masking | None, batches: int
) -> BlockModelling:
    """At least this many batches of random tokens; to be masked, or without `masking` each the next one's context."""
    drawn = torch.Generator().manual_seed(0)
    stream = torch.randint(5, vocabulary.size, ((batches + 2) * batch * block,), generator=drawn)
    return BlockModelling(stream.numpy().astype("uint16"), vocabulary, block, batch, masking, 0)


def tiny_config(family: str, tokenizer: SubwordTokenizer, **sizes: Any) -> PreTrainedConfig:
    """A config of a family in the sizes of MODEL, but for those that are given."""
    return make_config(family, MODEL.model_copy(update=sizes), Vocabulary.of(tokenizer))


def tiny_pretrained(folder: Path, family: str = "modernbert") -> Path:
    """A language model with random weights, saved with its tokenizer."""
    tokenizer = tiny_tokenizer()
    make_model("language_model", tiny_config(family, tokenizer), 0, "eager").save_pretrained(folder)
    save_tokenizer(tokenizer, folder, lowercase=True)
    return folder


def tiny_sentences(data: Path, lines: Sequence[str]) -> Path:
    """The folder of an SST-2 of these sentences, each with a tab and its label, in train and dev alike."""
    rows = [Example(text, None, int(label)) for text, _, label in (line.partition("\t") for line in lines)]
    folder = data / "classification" / "sst2"
    write_task(folder, TaskData(SENTIMENTS, {"train": rows, "dev": rows}))
    return folder


def tiny_questions(data: Path, context: str, answers: Mapping[str, str]) -> Path:
    """The folder of a SQuAD of these questions, which are their own ids, on one passage, in train and dev alike.

    An empty answer is none.
    """
    qas = []
    for asked, text in answers.items():
        found = [{"text": text, "answer_start": context.index(text)}] if text else []
        qas.append({"id": asked, "question": asked, "answers": found})
    document = {"data": [{"title": "T", "paragraphs": [{"context": context, "qas": qas}]}]}
    folder = data / "question_answering" / "squad"
    for part in ("train", "dev"):
        write_text(questions_path(folder, part), json.dumps(document))
    return folder


def tiny_answers(max_length: int, **settings: Any) -> AnswerSettings:
    """How to learn to answer questions in `max_length` tokens."""
    return AnswerSettings(lr=0.01, epochs=1, batch_size=2, max_length=max_length, **settings)


def fine_tune(task: str, *seeds: int, method: str = "full") -> None:
    """Do what the stages do that fine-tune on a task, in this process and its folder."""
    stage = finetune_squad if task == "squad" else finetune_sst2
    for seed in seeds:
        with mock.patch.object(sys, "argv", ["stage", "--task", task, "--method", method, "--seed", str(seed)]):
            stage.main()


def tiny_device() -> Device:
    """One thread, float32."""
    return open_device(0, "fp32")


def one_of(processes: int, rank: int, micro_batch: int | None = None) -> Device:
    """The device of one process, without the others."""
    accelerator: Any = None
    return Device(accelerator, torch.device("cpu"), rank, processes, False, False, micro_batch)
