"""The three lines of every form load the very model that was tuned, whatever the family."""

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

from retrace.compute.sharding import gather_weights
from retrace.core.errors import InputError
from retrace.core.files import SUMS, read_json, write_json
from retrace.finetuning.method import Method, has_frozen, save_trained
from retrace.finetuning.settings import load_method
from retrace.hub.pins import Pin
from retrace.methods import frozen
from retrace.models.heads import Head
from retrace.publishing import load
from retrace.publishing.bundle import SHARES, Address, LoadingCode, write_pretrained, write_shares, write_tuned
from retrace.publishing.load import DESCRIPTION, Tuning, load_tuned, read_description, read_tuned
from retrace.tasks.question_answering.extractive import (
    COMMON,
    KINDS,
    MIDDLING,
    RARE,
    SpanModel,
    match_kinds,
    word_shares,
)
from retrace.tasks.question_answering.generative import Generator
from retrace.tokens.tokenizer import Vocabulary, copy_tokenizer, load_tokenizer
from tests.hub.content.models import ROBERTA, write_model
from tests.tiny import FAMILIES, tiny_pretrained, tiny_questions

IDS = torch.tensor([[2, 20, 21, 22, 23, 3]])
CLASSES = ("bad", "so-so", 'a "good" one')


def _tuned(folder: Path, tuning: Tuning, pretrained: Path) -> tuple[nn.Module, Path]:
    """A model whose trained weights are not what they were, saved as a stage does."""
    body = tuning.method.start(tuning.head, pretrained, 0, "sdpa", tuning.classes)
    model: Any = body
    if tuning.head != "classifier":
        model = SpanModel(body, tuning.question_match) if tuning.head == "spans" else Generator(body)
    model.eval()
    torch.manual_seed(5)
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data += 0.3 * torch.randn_like(weight)
    folder.mkdir(parents=True)
    if has_frozen(model):
        save_trained(gather_weights(model, only_trained=True), folder)
    else:
        model.save_pretrained(folder, state_dict=model.state_dict())
    copy_tokenizer(pretrained, folder)
    return (model if tuning.question_match or tuning.head == "classifier" else body), folder


@torch.no_grad()
def _answer(model: Any) -> torch.Tensor:
    if isinstance(model, SpanModel):
        return model(IDS, torch.ones_like(IDS), torch.zeros_like(IDS), IDS % KINDS)
    output = model(input_ids=IDS)
    return output.logits if "logits" in output else torch.stack([output.start_logits, output.end_logits])


def _names(published: LoadingCode) -> dict[str, Any]:
    """The `tokenizer` and the `model` that the lines define."""
    names: dict[str, Any] = {}
    exec("\n".join(published.lines), names)
    return names


def _loaded(published: LoadingCode) -> Any:
    names = _names(published)
    assert names["tokenizer"]("ale")["input_ids"]
    assert not names["model"].training
    return names["model"]


def _tuning(method: str, head: Head, match: bool = False, **chosen: Any) -> Tuning:
    module = load_method(method, "")
    tuning = Method(module, module.Settings(**chosen), f"params.yaml: methods.{method}")
    return Tuning(tuning, head, CLASSES if head == "classifier" else (), match)


def _publish(folder: Path, tuning: Tuning, pretrained: Path, address: Any = None) -> tuple[LoadingCode, Any, Path]:
    """How the model is loaded, the model itself and the folder that holds its files."""
    model, saved = _tuned(folder / "saved", tuning, pretrained)
    target = folder / "published"
    target.mkdir()
    return write_tuned(tuning, saved, pretrained, address or Address(str(target)), target), model, target


@pytest.mark.parametrize(
    ("method", "chosen"),
    [*((method, {}) for method in ("full", "frozen", "lora", "adapter")), ("lora", {"embeddings": True}),
     ("adapter", {"embedding_rank": 3})],
)  # fmt: skip
@pytest.mark.parametrize("family", FAMILIES)
def test_three_lines_load_the_model(tmp_path: Path, family: str, method: str, chosen: dict[str, Any]) -> None:
    pretrained = tiny_pretrained(tmp_path / "pretrained", family)
    (pretrained / SUMS).touch()
    library = {"lora": "peft", "adapter": "retrace"}.get(method, "transformers")
    forms: list[tuple[Head, bool]] = [("classifier", False), ("spans", False), ("spans", True)]  # with question matches
    for head, match in [*forms, *([("language_model", False)] if family == "llama" and not chosen else [])]:
        tuning = _tuning(method, head, match, **chosen)
        published, model, folder = _publish(tmp_path / f"{head} {match}", tuning, pretrained)
        assert published.library == ("retrace" if match else library)
        found = _loaded(published)
        torch.testing.assert_close(_answer(found), _answer(model))
        if head == "classifier":
            assert found.config.id2label == dict(enumerate(CLASSES))
        assert not [path for path in folder.rglob("*") if path.suffix in (".bin", ".py", ".pt") or path.name == SUMS]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_pretrained_model_is_published_as_it_is(tmp_path: Path, family: str) -> None:
    pretrained, folder = tiny_pretrained(tmp_path / "pretrained", family), tmp_path / "published"
    published = write_pretrained(pretrained, Address(str(folder)), folder)
    tuned = read_tuned(_tuning("full", "language_model"), pretrained, pretrained)
    torch.testing.assert_close(_answer(_loaded(published)), _answer(tuned))


def test_code_that_a_checkpoint_names_is_not_named_again(tmp_path: Path) -> None:
    """With `trust_remote_code=True` it would be run, in whatever state it is by then."""
    pretrained, folder = tiny_pretrained(tmp_path / "pretrained"), tmp_path / "published"
    path = pretrained / "tokenizer_config.json"
    write_json(path, read_json(path) | {"auto_map": {"AutoTokenizer": [None, "org/other--tokens.Own"]}})
    write_pretrained(pretrained, Address(str(folder)), folder)
    assert "auto_map" not in read_json(folder / "tokenizer_config.json")


@pytest.mark.parametrize("head", ["classifier", "spans"])
def test_weights_that_a_method_draws_and_freezes_are_drawn_again_from_the_runs_seed(tmp_path: Path, head: Head) -> None:
    """As only trained weights are saved: those of a random body, for example, or of the projections of VeRA."""
    pretrained, folder = tiny_pretrained(tmp_path / "pretrained"), tmp_path / "published"
    method = ModuleType("drawn")
    vars(method).update(Settings=frozen.Settings, tune=frozen.tune, FROM_RANDOM=True)
    tuning = Tuning(Method(method, frozen.Settings(), ""), head, seed=7)
    body = tuning.method.start(head, pretrained, tuning.seed, "lean").eval()
    saved = tmp_path / "saved"
    saved.mkdir()
    save_trained(gather_weights(SpanModel(body) if head == "spans" else body, only_trained=True), saved)
    copy_tokenizer(pretrained, saved)
    torch.testing.assert_close(_answer(read_tuned(tuning, saved, pretrained)), _answer(body))
    folder.mkdir()
    published = write_tuned(tuning, saved, pretrained, Address(str(folder)), folder)
    torch.testing.assert_close(_answer(_loaded(published)), _answer(body))


def test_a_published_causal_model_goes_on_with_the_text_itself(tmp_path: Path) -> None:
    """As in the demo: after the token that ends a text, the model would begin another text."""
    pretrained, folder = tiny_pretrained(tmp_path / "pretrained", "llama"), tmp_path / "published"
    published, own = write_pretrained(pretrained, Address(str(folder)), folder), load_tokenizer(pretrained)
    ids = own.encode("the river of the", add_special_tokens=False).ids
    assert _names(published)["tokenizer"]("the river of the")["input_ids"] == [Vocabulary.of(own).begin, *ids]
    texts = ("the river", "of the")
    assert load_tokenizer(folder).encode(*texts).ids == own.encode(*texts).ids, "tuned here, it is still the same"


@pytest.mark.parametrize(
    ("family", "method"), [*((family, "full") for family in FAMILIES), ("bert", "lora"), ("bert", "adapter")]
)
def test_the_published_tokenizer_gives_a_pair_segments_if_the_model_takes_them(
    tmp_path: Path, family: str, method: str
) -> None:
    """As in training; without segments, a model that was tuned with them gives other answers."""
    pretrained = tiny_pretrained(tmp_path / "pretrained", family)
    expected = load_tokenizer(pretrained).encode("the ale", "the hall").type_ids if family == "bert" else None
    published, _, _ = _publish(tmp_path, _tuning(method, "spans"), pretrained)
    assert _names(published)["tokenizer"]("the ale", "the hall").get("token_type_ids") == expected


@torch.no_grad()
def test_a_roberta_with_berts_tokenizer_is_given_no_segments(tmp_path: Path) -> None:
    """As Korean ones are published; of segments they have an embedding of the first only."""
    pretrained = tiny_pretrained(tmp_path / "pretrained", "roberta")
    path = pretrained / "tokenizer_config.json"
    gives = {"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    write_json(path, read_json(path) | gives)
    published, _, _ = _publish(tmp_path, _tuning("full", "classifier"), pretrained)
    names = _names(published)
    assert names["model"](**names["tokenizer"]("the ale", "the hall", return_tensors="pt")).logits.shape == (1, 3)


@pytest.mark.parametrize("method", ["full", "lora", "adapter"])
def test_the_published_tokenizer_adds_the_special_tokens_of_training(tmp_path: Path, method: str) -> None:
    """Also if the checkpoint's own tokenizer adds none, as those of some causal models."""
    pretrained = tiny_pretrained(tmp_path / "pretrained", "llama")
    path = pretrained / "tokenizer.json"
    write_json(path, read_json(path) | {"post_processor": None})
    published, _, _ = _publish(tmp_path, _tuning(method, "classifier"), pretrained)
    own = load_tokenizer(pretrained).encode("the ale").ids
    assert _names(published)["tokenizer"]("the ale")["input_ids"] == own


@pytest.mark.parametrize("change", [{"post_processor": None}, {"normalizer": {"type": "Lowercase"}}])
def test_the_published_tokenizer_is_what_its_file_says(tmp_path: Path, change: dict[str, Any]) -> None:
    """As in training. RobertaTokenizer, which transformers takes where no class is named, has parts of its own."""
    pretrained = write_model(tmp_path / "pretrained", ROBERTA)
    path = pretrained / "tokenizer.json"
    write_json(path, read_json(path) | change)
    published, _, _ = _publish(tmp_path, _tuning("full", "classifier"), pretrained)
    own, tokenizer = load_tokenizer(pretrained), _names(published)["tokenizer"]
    assert tokenizer("The ale", "the hall")["input_ids"] == own.encode("The ale", "the hall").ids
    assert (tokenizer.cls_token, tokenizer.mask_token) == ("<s>", "<mask>")


@pytest.mark.parametrize(("family", "head"), [("llama", "classifier"), ("llama", "language_model"), ("bert", "spans")])
def test_the_published_tokenizer_pads_and_cuts_as_in_training(tmp_path: Path, family: str, head: Head) -> None:
    """Whatever the checkpoint's own does; Llamas name no padding token, and only prompts are padded on the left."""
    pretrained = tiny_pretrained(tmp_path / "pretrained", family)
    path, pad = pretrained / "tokenizer_config.json", Vocabulary.of(load_tokenizer(pretrained)).pad
    config = {name: value for name, value in read_json(path).items() if name != "pad_token"}
    write_json(path, config | {"padding_side": "left", "truncation_side": "left"})
    published, _, _ = _publish(tmp_path, _tuning("full", head), pretrained)
    tokenizer = _names(published)["tokenizer"]
    long, short = tokenizer(["the river of the town", "the"], padding=True)["input_ids"]
    padding = [pad] * (len(long) - len(tokenizer("the")["input_ids"]))
    assert (short[: len(padding)] if head == "language_model" else short[-len(padding) :]) == padding
    if head != "language_model":  # whose prompts are never cut
        start = tokenizer("the river", add_special_tokens=False)["input_ids"]
        cut = tokenizer("the river of the town", add_special_tokens=False, truncation=True, max_length=len(start))
        assert cut["input_ids"] == start


@pytest.mark.parametrize("head", ["classifier", "spans"])
def test_a_special_token_that_is_spelt_out_is_ordinary_text_as_in_training(tmp_path: Path, head: Head) -> None:
    pretrained = tiny_pretrained(tmp_path / "pretrained", "bert")
    published, _, _ = _publish(tmp_path, _tuning("full", head), pretrained)
    text, own = "the hall [SEP] was full", load_tokenizer(pretrained)
    assert own.encode(text).ids.count(Vocabulary.of(own).end) == 1
    assert _names(published)["tokenizer"](text)["input_ids"] == own.encode(text).ids


def test_the_published_tokenizer_cuts_to_the_length_of_training(tmp_path: Path) -> None:
    pretrained, folder = tiny_pretrained(tmp_path / "pretrained"), tmp_path / "published"
    tuning = _tuning("full", "classifier")
    _, saved = _tuned(tmp_path / "saved", tuning, pretrained)
    folder.mkdir()
    published = write_tuned(tuning, saved, pretrained, Address(str(folder)), folder, 5)
    own, texts = load_tokenizer(pretrained), ("the river of the town", "the hall was full")
    own.enable_truncation(5, strategy="longest_first")
    assert _names(published)["tokenizer"](*texts, truncation=True)["input_ids"] == own.encode(*texts).ids
    assert _names(published)["tokenizer"](texts[0], truncation=True)["input_ids"] == own.encode(texts[0]).ids


def test_the_words_that_are_published_grade_question_matches_as_in_training(tmp_path: Path) -> None:
    """Whoever loads the model does not have the training passages."""
    passage = f"{'the ' * 200_000}{'hall ' * 50}Ada"
    write_shares(tiny_questions(tmp_path, passage, {"who?": "Ada"}), tmp_path)
    published, shares = read_json(tmp_path / SHARES), word_shares([passage])
    assert published == {word: shares[word] for word in ("hall", "the")}
    for grades in (published, shares):
        assert match_kinds("the hall of Ada", "the hall Ada", grades)[[0, 4, 9]].tolist() == [COMMON, MIDDLING, RARE]


PIN = Pin("org/base", "a" * 40)


def test_an_adapter_of_lora_is_loaded_onto_that_commit_by_transformers_and_by_peft(tmp_path: Path) -> None:
    pretrained = tiny_pretrained(tmp_path / "pretrained", "llama")
    published, _, folder = _publish(tmp_path, _tuning("lora", "spans"), pretrained, Address("org/name", "trial", PIN))
    _, loading, adding = published.lines
    assert f"""from_pretrained("org/base", revision='{PIN.commit}'""" in loading
    assert """from_pretrained("org/name", revision="trial")""" in loading
    assert adding == """model.load_adapter("org/name", adapter_kwargs={'revision': 'trial'})"""
    assert r"key_mapping={'^model\\.': 'transformer.'}" in loading
    assert not list(folder.rglob("model.safetensors"))
    config = read_json(folder / "adapter_config.json")
    assert (config["base_model_name_or_path"], config["revision"]) == ("org/base", PIN.commit)


def test_peft_reads_the_base_beside_an_adapter_from_the_same_branch(tmp_path: Path) -> None:
    pretrained = tiny_pretrained(tmp_path / "pretrained")
    for branch in (None, "trial"):
        address = Address("org/name", branch)
        _, _, folder = _publish(tmp_path / str(branch), _tuning("lora", "classifier"), pretrained, address)
        config = read_json(folder / "adapter_config.json")
        assert (config["base_model_name_or_path"], config["revision"]) == ("org/name", branch)


@pytest.mark.parametrize("head", ["classifier", "spans"])
@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_lora_is_loaded_onto_a_base_that_was_tuned_on_other_classes(tmp_path: Path, family: str, head: Head) -> None:
    """As on MNLI, from which smaller tasks are often started. ModernBERT calls its head for spans a classifier too."""
    pretrained = tiny_pretrained(tmp_path / "pretrained", family)
    AutoModelForSequenceClassification.from_pretrained(pretrained, num_labels=4).save_pretrained(pretrained)
    address = Address(str(tmp_path / "published"), None, Pin(str(pretrained), PIN.commit))
    published, model, _ = _publish(tmp_path, _tuning("lora", head), pretrained, address)
    torch.testing.assert_close(_answer(_loaded(published)), _answer(model))


@pytest.mark.parametrize("method", ["lora", "adapter"])
@torch.no_grad()
def test_a_part_is_loaded_as_in_training_onto_a_base_in_bf16_that_names_no_padding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Llamas are published like this; the copy to start from names it, as a causal classifier has to find the end."""
    pretrained = tiny_pretrained(tmp_path / "pretrained", "llama")
    base = Path(shutil.copytree(pretrained, tmp_path / "base"))
    config = read_json(base / "config.json")
    write_json(base / "config.json", config | {"pad_token_id": None, "dtype": "bfloat16"})
    # transformers reads the base from the folder; load_tuned fetches a repository, since it parses the pin.
    pin = Pin(str(base), PIN.commit) if method == "lora" else PIN
    monkeypatch.setattr(load, "snapshot_download", lambda *_, **__: base)
    monkeypatch.setattr(load, "fetch", lambda *_: base)
    address = Address(str(tmp_path / "published"), None, pin)
    published, model, _ = _publish(tmp_path, _tuning(method, "classifier"), pretrained, address)
    padded = torch.tensor([[2, 20, 21, 22, 3], [2, 20, 3, config["pad_token_id"], config["pad_token_id"]]])
    torch.testing.assert_close(_loaded(published)(input_ids=padded).logits, model(input_ids=padded).logits)


@pytest.mark.parametrize(("variable", "token"), [("", False), ("hf_a", "hf_a")])
def test_a_model_is_fetched_at_the_commits_asked_for_with_no_token_but_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, token: str | bool
) -> None:
    pretrained = tiny_pretrained(tmp_path / "pretrained", "llama")
    address = Address("org/name", "trial", PIN)
    _, model, folder = _publish(tmp_path, _tuning("adapter", "classifier"), pretrained, address)
    assert not list(folder.rglob("model.safetensors"))
    asked, there = [], {"org/name": folder, "org/base": pretrained}

    def fetch(name: str, revision: str | None, token: str | bool | None, **_: Any) -> Path:
        asked.append((name, revision, token))
        return there[name]

    monkeypatch.setattr(load, "snapshot_download", fetch)
    monkeypatch.setattr(load, "fetch", lambda pin, *_: there[pin.repository])
    monkeypatch.setenv("HF_TOKEN", variable)
    torch.testing.assert_close(_answer(load_tuned("org/name", "trial")), _answer(model))
    assert asked == [("org/name", "trial", token), ("org/base", PIN.commit, token)]


def test_a_description_that_does_not_suit_the_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / DESCRIPTION
    write_json(path, _tuning("lora", "classifier", targets=("none",)).description(None))
    described, _ = read_description(path)
    with pytest.raises(InputError, match=rf"^{path}: settings.targets: 'none' is not allowed"):
        described.method.start("classifier", tiny_pretrained(tmp_path / "pretrained"), 0, "eager")


def test_a_whole_model_goes_onto_no_other(tmp_path: Path) -> None:
    pretrained, address = tiny_pretrained(tmp_path / "pretrained", "llama"), Address("org/name", None, PIN)
    with pytest.raises(InputError, match="--base: not allowed with full"):
        _publish(tmp_path, _tuning("full", "classifier"), pretrained, address)
    with pytest.raises(InputError, match="--base: not allowed with the pretrained model"):
        write_pretrained(pretrained, address, tmp_path)


def test_a_description_of_somebody_else_is_checked(tmp_path: Path) -> None:
    path, tuning = tmp_path / DESCRIPTION, _tuning("adapter", "classifier")
    write_json(path, tuning.description(None))
    assert read_description(path) == (tuning, None)
    wrong = {"method": "os", "head": "shell", "classes": "x", "base": 5, "settings": {"reduction": 0}}
    for key, value in wrong.items():
        write_json(path, tuning.description(None) | {key: value})
        with pytest.raises(InputError, match=rf"^{path}: {key}"):
            read_description(path)
    write_json(path, {"method": "full"})
    with pytest.raises(InputError, match=rf"^{path}: settings is missing$"):
        read_description(path)


def test_the_same_model_gives_the_same_files(tmp_path: Path) -> None:
    pretrained, tuning = tiny_pretrained(tmp_path / "pretrained"), _tuning("lora", "classifier")
    folders = [_publish(tmp_path / name, tuning, pretrained, Address("org/name"))[2] for name in ("one", "two")]
    one, two = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert one == two
