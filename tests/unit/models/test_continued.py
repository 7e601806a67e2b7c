"""Training on from published weights, in the layouts of the four families."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from retrace.core.errors import InputError
from retrace.core.weights import parameters_by_module
from retrace.models.heads import make_model, read_config, read_model
from retrace.models.language_model import LanguageModel, PairModel, continue_model
from retrace.tokens.tokenizer import Vocabulary, load_tokenizer
from tests.hub.content.models import BERT, LLAMA, ROBERTA, published_models, write_model


def _continued(folder: Path, pairs: bool = False, seed: int = 1) -> LanguageModel | PairModel:
    return continue_model(folder, Vocabulary.of(load_tokenizer(folder)), pairs, seed, "eager")


@pytest.mark.parametrize("name", list(published_models()))
def test_every_weight_is_the_published_one_in_float32_and_there_is_padding(tmp_path: Path, name: str) -> None:
    published = load_file(write_model(tmp_path, name) / "model.safetensors")
    named = {key.replace(".gamma", ".weight").replace(".beta", ".bias"): of.float() for key, of in published.items()}
    model, other = _continued(tmp_path), _continued(tmp_path, seed=2)
    found = model.body.state_dict()
    torch.testing.assert_close({key: found[key] for key in named}, named, rtol=0, atol=0)
    torch.testing.assert_close(other.state_dict(), model.state_dict(), rtol=0, atol=0)
    assert model.body.config.pad_token_id == Vocabulary.of(load_tokenizer(tmp_path)).pad


def test_berts_weights_for_pairs_are_kept_for_classifiers_and_frozen(tmp_path: Path) -> None:
    published = load_file(write_model(tmp_path, BERT) / "model.safetensors")
    model = _continued(tmp_path)
    still = {name.rpartition(".")[0] for name, weight in model.named_parameters() if not weight.requires_grad}
    assert still == {"body.bert.pooler.dense", "body.cls.seq_relationship"}
    model.body.save_pretrained(tmp_path / "saved")
    classifier = read_model("classifier", tmp_path / "saved", 1, "eager", ("no", "yes")).state_dict()
    assert torch.equal(classifier["bert.pooler.dense.weight"], published["bert.pooler.dense.weight"])


def test_the_relation_head_is_read_for_training_on_pairs(tmp_path: Path) -> None:
    published = load_file(write_model(tmp_path, BERT) / "model.safetensors")
    model = _continued(tmp_path, pairs=True)
    assert isinstance(model, PairModel)
    assert torch.equal(model.body.state_dict()["cls.seq_relationship.weight"], published["cls.seq_relationship.weight"])
    assert all(weight.requires_grad for weight in model.parameters())
    bare = {name: weight for name, weight in published.items() if "pooler" not in name and "seq_" not in name}
    save_file(bare, tmp_path / "model.safetensors", {"format": "pt"})
    one, other = (_continued(tmp_path, pairs=True, seed=seed).state_dict() for seed in (1, 2))
    new = {name for name, weight in one.items() if not torch.equal(weight, other[name])}
    assert new == {"body.cls.seq_relationship.weight", "body.bert.pooler.dense.weight"}
    assert "pooler" not in " ".join(_continued(tmp_path).state_dict())


def test_weights_in_several_files(tmp_path: Path) -> None:
    whole = load_file(write_model(tmp_path, LLAMA) / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    where = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(sorted(whole))}
    for file in set(where.values()):
        save_file({name: whole[name] for name in whole if where[name] == file}, tmp_path / file, {"format": "pt"})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    assert sum(parameters_by_module(tmp_path).values()) == sum(weight.numel() for weight in whole.values())
    found = _continued(tmp_path).body.state_dict()
    assert all(torch.equal(found[name], weight.float()) for name, weight in whole.items())


@pytest.mark.parametrize("classes", [1, 3])
def test_spans_have_two_scores_whatever_classes_a_checkpoint_was_tuned_on(tmp_path: Path, classes: int) -> None:
    write_model(tmp_path, ROBERTA)
    AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=classes).save_pretrained(tmp_path)
    for model in (
        read_model("spans", tmp_path, 1, "eager"),
        make_model("spans", read_config(tmp_path), 1, "eager"),
    ):
        assert model.get_parameter("qa_outputs.weight").shape[0] == model.config.num_labels == 2


@pytest.mark.parametrize("kind", ["regression", "multi_label_classification"])
def test_the_kind_of_an_earlier_task_is_forgotten(tmp_path: Path, kind: str) -> None:
    """With it, transformers' pipeline would return logits or sigmoids for two classes instead of a softmax."""
    write_model(tmp_path, ROBERTA)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"problem_type": kind}))
    assert read_model("classifier", tmp_path, 1, "eager", ["no", "yes"]).config.problem_type is None


def test_a_published_classifier_of_other_classes_is_drawn_anew(tmp_path: Path) -> None:
    write_model(tmp_path, ROBERTA)
    AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=3).save_pretrained(tmp_path)
    assert _continued(tmp_path).body.config.num_labels == 2, "the three classes are forgotten"
    one, other = (read_model("classifier", tmp_path, seed, "eager", list("abcde")).state_dict() for seed in (1, 2))
    assert one["classifier.out_proj.weight"].shape[0] == 5
    assert {name for name in one if not torch.equal(one[name], other[name])} == {"classifier.out_proj.weight"}
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": config["vocab_size"] + 1}))
    with pytest.raises(InputError, match=r"roberta.embeddings.word_embeddings.weight does not have the size in config"):
        read_model("classifier", tmp_path, 1, "eager", list("abcde"))
