"""Counts, put together in the ways that reports print them."""

from retrace.estimates.architectures import find_model
from retrace.estimates.parameters import Row, count_parameters, rows, sums
from retrace.methods import frozen, full, lora

LLAMA = find_model("llama-3.2-1b").config
SMALL = find_model("roberta-small").config


def test_llamas_rows_as_a_study_printed_them() -> None:
    _, counts = count_parameters("language_model", LLAMA, lambda m, h: full.tune(m, h, full.Settings()))
    found = {row.name: row.size for row in rows(counts, "parameter")}
    assert len(found) == 2 + 16 * 9
    assert found["model.embed_tokens.weight"] == 262_668_288
    layer = {name: size for name, size in found.items() if name.startswith("model.layers.15.")}
    sizes = [4_194_304, 1_048_576, 1_048_576, 4_194_304, 16_777_216, 16_777_216, 16_777_216, 2_048, 2_048]
    assert list(layer.values()) == sizes
    assert found["model.norm.weight"] == 2_048
    assert sum(found.values()) == 1_235_814_400


def test_a_module_is_a_matrix_with_its_bias_and_a_layer_all_of_its_modules() -> None:
    _, counts = count_parameters("classifier", SMALL, lambda m, h: frozen.tune(m, h, frozen.Settings()))
    modules, layers = rows(counts, "module"), rows(counts, "layer")
    assert Row("roberta.encoder.layer.0.attention.self.query", 512 * 512 + 512, 0) in modules
    assert Row("classifier.out_proj", 2 * 512 + 2, 2 * 512 + 2) in modules
    assert Row("roberta.encoder.layer.0", 1_577_984, 0) in layers
    assert sum(row.size for row in modules) == sum(row.size for row in layers) == sum(count.size for count in counts)


def test_what_a_method_added_and_what_the_head_adds_are_told_apart() -> None:
    settings = lora.Settings(rank=4, targets=("query",))
    _, counts = count_parameters("spans", SMALL, lambda m, h: lora.tune(m, h, settings))
    found = sums(counts)
    assert found["added"] == 4 * 4 * (512 + 512)  # 4 layers, rank 4
    assert (found["head_weights"], found["head_biases"]) == (2 * 512, 2)
    assert found["trainable"] == found["added"] + 2 * 512 + 2
    assert found["total"] == 22_829_568 + found["trainable"]
    assert found["frozen"] == 22_829_568
