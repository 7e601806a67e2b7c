from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from retrace.estimates.memory import LiveMemory
from retrace.models.language_model import LanguageModel, head_loss, make_language_model, read_language_model
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.throughput import count_flops
from tests.tiny import FAMILIES, MASKED_FAMILIES, tiny_config, tiny_tokenizer

IDS = torch.arange(10, 42).view(2, 16)
AT = torch.tensor([[0, 3, 9], [16, 20, 31]])
VOCABULARY = Vocabulary.of(tiny_tokenizer())
CLS, SEP = VOCABULARY.begin, VOCABULARY.end
FIRST, SECOND = [CLS, 20, 21, 22, SEP], [CLS, 30, 31, SEP]  # documents
FIRST_ROW = slice(0, len(FIRST))
TARGETS = torch.tensor([11, 12, 13, 14, 15, 16])


def _model(family: str, attention: str = "lean", document_start: int | None = None) -> LanguageModel:
    config = tiny_config(family, tiny_tokenizer())
    config.document_start = document_start
    return make_language_model(config, 1, attention).eval()


@pytest.mark.parametrize("document_start", [None, 14])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_late_last_layer_gives_the_same_scores_and_gradients(family: str, document_start: int | None) -> None:
    """Also if attention stays within documents; token 14 begins one."""
    model, reference = _model(family, document_start=document_start), _model(family, "eager", document_start)
    torch.testing.assert_close(model(IDS, AT), reference(IDS, AT.flatten()))
    late, whole = model(IDS, AT, TARGETS), functional.cross_entropy(reference(IDS, AT), TARGETS, reduction="sum")
    torch.testing.assert_close(late, whole)
    found = torch.autograd.grad(late, list(model.parameters()))
    torch.testing.assert_close(found, torch.autograd.grad(whole, list(reference.parameters())))


@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_a_late_last_layer_has_fewer_operations(family: str) -> None:
    """At 6 of 32 positions: the last of two layers multiplies the rest for keys and values only."""
    model = _model(family)
    late, whole = (count_flops(model, lambda at=at: model(IDS, at, TARGETS)) for at in (AT, AT.flatten()))
    assert late < 0.75 * whole


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_transformers_reads_a_saved_body_and_answers_the_same(tmp_path: Path, family: str) -> None:
    model = _model(family)
    model.body.save_pretrained(tmp_path)
    kind = AutoModelForCausalLM if family == "llama" else AutoModelForMaskedLM
    logits = kind.from_pretrained(tmp_path).eval()(input_ids=IDS).logits
    torch.testing.assert_close(model(IDS, AT), logits.flatten(0, 1)[AT.flatten()])


@torch.no_grad()
def _scores(model: LanguageModel, ids: list[int], row: slice) -> Tensor:
    return model(torch.tensor([ids]), torch.arange(len(ids))[row])


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_document_is_read_as_if_it_stood_alone_in_the_block(family: str, attention: str) -> None:
    model, last = _model(family, attention, CLS), slice(len(FIRST), None)
    torch.testing.assert_close(_scores(model, FIRST + SECOND, FIRST_ROW), _scores(model, FIRST, FIRST_ROW))
    found = _scores(model, FIRST + SECOND, last)
    assert torch.equal(found, _scores(model, [CLS, 25, 26, 27, SEP, *SECOND], last))
    assert not torch.equal(found, _scores(model, [*FIRST, CLS, 40, 41, SEP], last))


def test_attention_within_documents_is_off_by_default_and_saved_with_the_model(tmp_path: Path) -> None:
    plain, within = (_model("modernbert", "eager", start) for start in (None, CLS))
    assert not torch.allclose(_scores(plain, FIRST + SECOND, FIRST_ROW), _scores(plain, FIRST, FIRST_ROW))
    within.body.save_pretrained(tmp_path)
    again = read_language_model(tmp_path, 0, "eager").eval()
    assert torch.equal(_scores(again, FIRST + SECOND, FIRST_ROW), _scores(within, FIRST + SECOND, FIRST_ROW))


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_the_loss_of_a_head_is_that_of_its_scores(has_bias: bool, precision: torch.dtype) -> None:
    draws = torch.Generator().manual_seed(1)
    head = nn.Linear(8, 50, bias=has_bias)
    hidden = torch.randn(6, 8, generator=draws, requires_grad=True)
    with torch.autocast("cpu", precision, enabled=precision == torch.bfloat16):
        ours = head_loss(hidden, head, TARGETS)
        theirs = functional.cross_entropy(head(hidden).float(), TARGETS, reduction="sum")
    torch.testing.assert_close(ours, theirs)
    found, expected = (torch.autograd.grad(loss / 6, [hidden, *head.parameters()]) for loss in (ours, theirs))
    torch.testing.assert_close(found, expected, atol=2e-3 if precision == torch.bfloat16 else 1e-6, rtol=1e-2)


@pytest.mark.parametrize(("precision", "held"), [(torch.float32, 4), (torch.bfloat16, 6)])
def test_the_scores_of_a_head_are_held_once_in_each_precision(precision: torch.dtype, held: int) -> None:
    """Bytes per score; in bfloat16 while scores, or their gradients in the end, are converted."""
    head, hidden, targets = nn.Linear(4, 1000), torch.zeros(500, 4), torch.zeros(500, dtype=torch.long)
    with torch.autocast("cpu", precision, enabled=precision == torch.bfloat16), LiveMemory() as live:
        head_loss(hidden, head, targets)
    assert live.peak == pytest.approx(held * 500 * 1000, rel=0.05)


def test_a_very_unlikely_target_has_a_finite_loss() -> None:
    head = nn.Linear(1, 50, bias=False)
    nn.init.zeros_(head.weight)
    nn.init.constant_(head.weight[0], 200.0)
    loss = head_loss(torch.ones(1, 1), head, torch.tensor([7]))
    assert loss.item() == pytest.approx(200.0)
