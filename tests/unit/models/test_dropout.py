from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from retrace.finetuning.method import read_method
from retrace.models.dropout import dropped
from retrace.models.heads import make_model
from tests.tiny import FAMILIES, tiny_config, tiny_pretrained, tiny_tokenizer


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.99999])
def test_elements_are_dropped_at_the_rate_and_the_rest_is_scaled(rate: float) -> None:
    """Independently of their neighbours, which share a random number."""
    torch.manual_seed(1)
    found = dropped(torch.ones(999, 1001), rate, training=True)
    is_dropped = found == 0
    assert is_dropped.float().mean().item() == pytest.approx(rate, abs=4 * (rate * (1 - rate) / found.numel()) ** 0.5)
    both = (is_dropped[:, 1:] & is_dropped[:, :-1]).float().mean().item()
    assert both == pytest.approx(rate**2, abs=4 * (rate**2 * (1 - rate**2) / found.numel()) ** 0.5)
    assert found[~is_dropped].unique().tolist() == [pytest.approx(2**16 / (2**16 - round(rate * 2**16)))]


def test_the_gradient_is_dropped_and_scaled_alike() -> None:
    states = torch.ones(3, 7, dtype=torch.bfloat16).mT.requires_grad_()  # 21 elements, in another order of memory
    found = dropped(states, 0.5, training=True)
    found.sum().backward()
    assert states.grad is not None
    assert torch.equal(states.grad, found)
    assert found.dtype == torch.bfloat16
    assert {*found.flatten().tolist()} == {0.0, 2.0}


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.0, True), (1.0, True)])
def test_it_is_torchs_where_nothing_is_drawn(rate: float, training: bool) -> None:
    states = torch.arange(6.0)
    assert torch.equal(dropped(states, rate, training), functional.dropout(states, rate, training))


class Drawn(TorchDispatchMode):
    """The names of the operations that draw random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_mask_of_a_model_is_drawn_slowly(family: str) -> None:
    config = tiny_config(family, tiny_tokenizer(), dropout=0.25)
    model = make_model("classifier", config, 1, "lean").train()
    with Drawn() as found:
        model(input_ids=torch.arange(1, 9)[None])
    assert found.names == {"random_"}


def test_no_mask_of_lora_is_drawn_slowly(tmp_path: Path) -> None:
    method = read_method({"methods": {"lora": {"dropout": 0.25}}}, "lora")
    model = method.start("classifier", tiny_pretrained(tmp_path), 1, "lean").train()
    with Drawn() as found:
        model(input_ids=torch.arange(1, 9)[None])
    assert found.names == {"random_"}
