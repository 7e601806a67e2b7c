from transformers import RobertaConfig

from retrace.estimates.formulas import Memory, formula_memory
from retrace.estimates.memory import Needs
from retrace.finetuning.method import read_method


def test_a_methods_formula_has_the_numbers_of_its_model() -> None:
    needs = Needs(
        parameters=110, trained=10, weights=440, flops=1.0, moments=80, passes=900, besides=900, layer=9, outside=9
    )
    one = RobertaConfig(num_hidden_layers=1, hidden_size=8, intermediate_size=1, num_attention_heads=1)
    found = {name: formula_memory(read_method({"methods": {"adapter": {"reduction": 4}}}, name), one, needs)
             for name in ("full", "adapter", "lora")}  # fmt: skip
    assert found == {
        "full": Memory(16 * 110, 34 * 8 + 8, 9),
        "adapter": Memory(4 * 100 + 16 * 10, 2 * (4 * 8 + 8 * 2), 0),
        "lora": None,
    }
