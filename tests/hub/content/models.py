"""A model of each family with random weights, in the files that its publisher uploaded."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForPreTraining

from retrace.models.settings import ModelSettings
from tests.hub.content import tokenizers
from tests.hub.content.tokenizers import Published
from tests.tiny import MODEL

BERT, ROBERTA = "google-bert/bert-base-uncased", "FacebookAI/roberta-base"
SCIBERT = "allenai/scibert_scivocab_uncased"
MODERNBERT, LLAMA = "answerdotai/ModernBERT-base", "meta-llama/Llama-3.2-1B"


@cache
def published_models() -> dict[str, dict[str, bytes]]:
    """The files of each model, by name."""
    return {
        BERT: bert(tokenizers.bert(), MODEL),
        ROBERTA: roberta(tokenizers.roberta(), MODEL),
        MODERNBERT: modernbert(tokenizers.modernbert(), MODEL),
        LLAMA: llama(tokenizers.llama(), MODEL),
    }


def write_model(folder: Path, name: str, *files: str) -> Path:
    """The files of a model, or those that are named, in a folder."""
    folder.mkdir(exist_ok=True)
    for file in files or published_models()[name]:
        (folder / file).write_bytes(published_models()[name][file])
    return folder


def bert(tokenizer: Published, size: ModelSettings) -> dict[str, bytes]:
    """Weights of both of BERT's objectives, with the names that TensorFlow gave to those of the norms.

    The published config names the masked language model; of the tokenizer there is vocab.txt too, and no file names the
    special tokens.
    """
    files = _upload(AutoModelForPreTraining, "bert", tokenizer, size, type_vocab_size=2)
    weights = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
        for name, weight in load(files["model.safetensors"]).items()
    }
    files["model.safetensors"] = save(weights, metadata={"format": "pt"})
    files["config.json"] = files["config.json"].replace(b"BertForPreTraining", b"BertForMaskedLM")
    del files["special_tokens_map.json"]
    files["tokenizer_config.json"] = _json({"do_lower_case": True, "model_max_length": tokenizer.length})
    by_id = sorted((number, token) for token, number in tokenizer.tokenizer.get_vocab().items())
    return {**files, "vocab.txt": "".join(f"{token}\n" for _, token in by_id).encode()}


def scibert(tokenizer: Published, size: ModelSettings) -> dict[str, bytes]:
    """Weights of both objectives, and only vocab.txt of the tokenizer: no file says that it is lower-cased.

    Their safetensors came in a later commit, beside the pickled ones, and hold what is not in transformers' model now.
    """
    files = bert(tokenizer, size)
    weights = load(files["model.safetensors"])
    weights = {name.replace(".gamma", ".weight").replace(".beta", ".bias"): each for name, each in weights.items()}
    positions = torch.arange(size.max_positions).expand(1, -1).clone()
    decoder = weights["bert.embeddings.word_embeddings.weight"].clone()
    more = {"bert.embeddings.position_ids": positions, "cls.predictions.decoder.weight": decoder}
    kept = {name: files[name] for name in ("config.json", "vocab.txt")}
    return {**kept, "model.safetensors": save({**weights, **more}, metadata={"format": "pt"})}


def roberta(tokenizer: Published, size: ModelSettings) -> dict[str, bytes]:
    """Two positions more than tokens: they are numbered from after the padding id, which is 1.

    Of the tokenizer there are vocab.json and merges.txt too, and no file names the special tokens.
    """
    positions = {"max_position_embeddings": size.max_positions + 2, "type_vocab_size": 1}
    files = _upload(AutoModelForMaskedLM, "roberta", tokenizer, size, **positions)
    del files["special_tokens_map.json"]
    files["tokenizer_config.json"] = _json({"model_max_length": tokenizer.length})
    whole = json.loads(files["tokenizer.json"])
    tokens = whole["model"]["vocab"] | {token["content"]: token["id"] for token in whole["added_tokens"]}
    merges = "".join(f"{line}\n" for line in ["#version: 0.2", *map(" ".join, whole["model"]["merges"])])
    return {**files, "vocab.json": _json(tokens), "merges.txt": merges.encode()}


def modernbert(tokenizer: Published, size: ModelSettings) -> dict[str, bytes]:
    """As its family is by default."""
    return _upload(AutoModelForMaskedLM, "modernbert", tokenizer, size)


def llama(tokenizer: Published, size: ModelSettings) -> dict[str, bytes]:
    """In bfloat16, with fewer heads of keys than of queries, and no padding id."""
    grouped = {"num_key_value_heads": 1, "tie_word_embeddings": True, "dtype": torch.bfloat16}
    return _upload(AutoModelForCausalLM, "llama", tokenizer, size, **grouped)


def _json(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode()


def _upload(head: Any, family: str, tokenizer: Published, size: ModelSettings, **settings: Any) -> dict[str, bytes]:
    """config.json, model.safetensors and the tokenizer's files."""
    ids = {f"{name}_token_id": tokenizer.id(f"{name}_token") for name in ("pad", "bos", "eos", "cls", "sep")}
    numbers = {"vocab_size": tokenizer.tokenizer.get_vocab_size(), "max_position_embeddings": size.max_positions}
    config = AutoConfig.for_model(family, **{**size.shape, **ids, **numbers, **settings})
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        head.from_config(config).save_pretrained(folder)
        saved = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    return {**saved, **tokenizer.files()}
