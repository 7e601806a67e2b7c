from pathlib import Path

import numpy as np
import pytest
import torch

from retrace.core.errors import InputError
from retrace.datasets.examples import Example, TaskData, write_task
from retrace.finetuning.settings import FineTuneSettings
from retrace.models.heads import read_config, read_model
from retrace.tasks.classification import Classification
from tests.tiny import FAMILIES, tiny_pretrained, tiny_sentences, tiny_tokenizer

NAMES = ("negative", "neutral", "positive")
SENTENCE = "although the ale was stale , the songs were charming and the hall was full ."


@pytest.fixture
def sst2(tmp_path: Path) -> Classification:
    rows = ["the ale was stale\t0", "the songs were charming and the hall was full .\t1"]
    return Classification(tiny_sentences(tmp_path, rows), tiny_tokenizer(), 8)


def _pairs(data: Path, max_length: int = 64, segments: bool = True) -> Classification:
    examples = [Example(SENTENCE, pair, label) for pair, label in (("songs", 2), ("the stale ale", 0), ("hall", 1))]
    folder = data / "classification" / "aspects"
    write_task(folder, TaskData(NAMES, {"train": examples, "dev": examples}))
    return Classification(folder, tiny_tokenizer(), max_length, segments)


def test_sentences_are_cut_and_padded(sst2: Classification) -> None:
    examples = sst2.examples("dev")
    batch = sst2.collate(examples)
    assert max(sst2.length(example) for example in examples) == 8
    assert batch["ids"].shape == (2, 8)
    assert batch["mask"].sum(1).tolist() == [sst2.length(example) for example in examples]
    assert batch["labels"].tolist() == [0, 1]
    assert "segments" not in batch


@pytest.mark.usefixtures("sst2")
@pytest.mark.parametrize(("name", "most", "least"), [("sst2", 1, 3), ("sst2", 2, 3), ("aspects", 4, 5)])
def test_a_length_without_room_is_refused(tmp_path: Path, name: str, most: int, least: int) -> None:
    """The tokenizer would cut nothing then."""
    _pairs(tmp_path)
    folder = tmp_path / "classification" / name
    tight, enough = (Classification(folder, tiny_tokenizer(), length) for length in (most, least))
    said = rf"params.yaml: {name}.max_length: {most} is not allowed; expected at least {least}, to fit a token"
    with pytest.raises(InputError, match=said):
        tight.examples("train")
    assert {len(example.ids) for example in enough.examples("train")} == {least}


def test_rows_hold_label_and_logits(tmp_path: Path) -> None:
    task = _pairs(tmp_path)
    assert task.rows(task.examples("dev")[:2], [np.array([1.0, 2.0, 4.0]), np.array([3.0, -1.0, 0.0])]) == [
        {"id": 0, "label": 2, "logit_0": 1.0, "logit_1": 2.0, "logit_2": 4.0},
        {"id": 1, "label": 0, "logit_0": 3.0, "logit_1": -1.0, "logit_2": 0.0},
    ]


def test_a_pair_is_two_texts_with_segments(tmp_path: Path) -> None:
    task, tokenizer = _pairs(tmp_path), tiny_tokenizer()
    (example, *_) = task.examples("dev")
    first, second = tokenizer.encode(SENTENCE), tokenizer.encode("songs", add_special_tokens=False)
    assert example.ids == [*first.ids, *second.ids, first.ids[-1]]
    assert example.segments.tolist() == [0] * len(first.ids) + [1] * (len(second.ids) + 1)
    batch = task.collate(task.examples("dev"))
    assert batch["segments"].shape == batch["ids"].shape
    assert not batch["segments"][batch["mask"] == 0].any()


def test_the_longer_text_of_a_pair_is_cut_first(tmp_path: Path) -> None:
    whole, cut = (_pairs(tmp_path, length).examples("dev")[1] for length in (64, 14))
    assert len(cut.ids) == 14
    assert cut.ids[cut.second :] == whole.ids[whole.second :]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_head_has_the_tasks_classes(tmp_path: Path, family: str) -> None:
    task = _pairs(tmp_path, segments=family == "bert")
    model = read_model(task.head, tiny_pretrained(tmp_path / "pretrained", family), 1, "eager", task.classes).eval()
    assert task.scores(model, task.collate(task.examples("dev"))).shape == (3, 3)
    model.save_pretrained(tmp_path / "tuned")
    config = read_config(tmp_path / "tuned")
    names = {"negative": 0, "neutral": 1, "positive": 2}
    assert (config.id2label, config.label2id) == ({number: name for name, number in names.items()}, names)


@pytest.mark.parametrize(("family", "told"), [("bert", {"segments", "mask"}), ("roberta", {"mask"}), ("llama", set())])
def test_the_saved_model_says_how_texts_are_read(tmp_path: Path, family: str, told: set[str]) -> None:
    """Whether it knows the second text by segments, and whether it sees padding, which a causal model does not."""
    _pairs(tmp_path)
    base = tiny_pretrained(tmp_path / "pretrained", family)
    settings = FineTuneSettings(lr=1, epochs=1, batch_size=1, max_length=28)
    task = Classification.read(tmp_path / "classification/aspects", base, settings)
    batch = task.collate(task.examples("dev"))  # of several lengths
    assert batch.keys() - {"ids", "labels"} == told
    assert batch["ids"].shape == (3, 28)


def test_segments_tell_a_pair_of_bert_apart(tmp_path: Path) -> None:
    model = read_model("classifier", tiny_pretrained(tmp_path / "pretrained", "bert"), 1, "eager", NAMES).eval()
    told, untold = (_pairs(tmp_path, segments=segments) for segments in (True, False))
    with_segments, without = (task.scores(model, task.collate(task.examples("dev"))) for task in (told, untold))
    assert not torch.allclose(with_segments, without)
