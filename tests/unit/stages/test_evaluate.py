"""A test split from training to the scores: predicted and scored separately, and not used to choose the epoch."""

from pathlib import Path
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.files import read_json, write_json
from retrace.core.paths import examples_path, has_test, questions_path
from retrace.datasets.examples import Example, TaskData, write_task
from retrace.finetuning.run import fine_tune, write_tuned
from retrace.finetuning.settings import FineTuneSettings
from retrace.models.heads import make_model
from retrace.results.predictions import (
    LOSSES,
    PREDICTIONS,
    kept_epoch,
    read_baselines,
    read_drawn,
    read_epochs,
    write_predictions,
)
from retrace.tasks.classification import Classification
from stages import evaluate
from tests.tiny import tiny_config, tiny_device, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
SETTINGS = FineTuneSettings(lr=0.005, epochs=3, batch_size=8, max_length=32, max_train_examples=16)
MOODS = Path("data/classification/moods")
PREDICTED = Path("predictions/moods/full/1")
WORDS = (("charming", 1), ("stale", 0), ("full", 1), ("the guild of stale", 0))


def _moods(*openings: str) -> list[Example]:
    return [Example(f"{opening} {word}", None, label) for opening in openings for word, label in WORDS]


TRAIN = _moods("the ale was", "the hall was", "the river was", "the town was", "the year was")
DEV, TEST = _moods("the guild was", "the songs was", "the Thorndel was"), _moods("nobody doubts", "Ada Lund was")
PARAMS = """finetune: {tasks: [moods], methods: [full], squad_methods: [], seeds: [1]}
metrics: {classification: [accuracy, f1], question_answering: [squad_v2], every_epoch: [accuracy, squad_v2],
          bootstrap_samples: 200, seed: 0}
"""


@pytest.fixture
def source(here: Path) -> Path:
    """A project in whose data there is a task with three splits."""
    Path("params.yaml").write_text(PARAMS)
    write_moods({"train": TRAIN, "dev": DEV, "test": TEST})
    return MOODS


def write_moods(parts: dict[str, list[Example]]) -> None:
    write_task(MOODS, TaskData(("bad", "good"), parts))


def tune(source: Path, settings: FineTuneSettings = SETTINGS) -> None:
    task = Classification(source, TOKENIZER, 32)
    model = make_model("classifier", tiny_config("modernbert", TOKENIZER), 0, "eager")
    write_tuned(PREDICTED, fine_tune(task, model, settings, 1, tiny_device(), "t"))


def run(source: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tune and evaluate; returns metrics.json and scores.json."""
    tune(source)
    evaluate.main()
    return read_json(evaluate.METRICS), read_json(evaluate.DETAILS)


def test_both_splits_are_scored_and_the_test_split_does_not_choose_the_epoch(source: Path) -> None:
    metrics, details = run(source)
    before, after = read_epochs(PREDICTED, "classification", "test")
    kept = details["moods"]["methods"]["full"]["seeds"]["1"]["epoch"]
    assert (before.number, before.kept, after.number, after.kept) == (0, False, kept, True)
    right = after.rows["label"] == (after.rows["logit_1"] > after.rows["logit_0"])
    assert metrics["moods-test"]["full"]["accuracy"] == sum(right) / len(TEST)
    assert metrics["moods-test"]["full"]["loss"] == pytest.approx(after.validation_loss, rel=1e-5)
    assert not Path("reports/curves/tasks/moods-test.csv").exists()
    validated = [(PREDICTED / name).read_bytes() for name in (PREDICTIONS, LOSSES)]

    swapped = [Example(example.text, None, 1 - example.label) for example in TEST]
    write_moods({"train": TRAIN, "dev": DEV, "test": swapped})
    again, _ = run(source)
    assert validated == [(PREDICTED / name).read_bytes() for name in (PREDICTIONS, LOSSES)]
    for old, new in zip((before, after), read_epochs(PREDICTED, "classification", "test"), strict=True):
        assert old.rows.assign(label=1 - old.rows["label"]).equals(new.rows)
    assert again["moods"] == metrics["moods"]
    assert again["moods-test"]["full"]["accuracy"] == 1 - metrics["moods-test"]["full"]["accuracy"]


def test_the_test_split_is_predicted_with_the_weights_that_were_kept(source: Path) -> None:
    write_moods({"train": TRAIN, "dev": DEV, "test": DEV})
    tune(source, SETTINGS.model_copy(update={"lr": 0.03, "epochs": 4}))
    kept = kept_epoch(read_epochs(PREDICTED, "classification"))
    *_, tested = read_epochs(PREDICTED, "classification", "test")
    assert 1 <= kept.number < 4
    assert tested.validation_loss == pytest.approx(kept.validation_loss, rel=1e-5)


def test_predictions_of_other_examples_are_not_scored(source: Path) -> None:
    run(source)
    write_moods({"train": TRAIN, "dev": DEV[::-1], "test": TEST})
    with pytest.raises(InputError, match=r"^predictions/moods/full/1: these predictions are for other examples"):
        evaluate.main()
    write_moods({"train": TRAIN, "dev": DEV, "test": TEST[1:]})
    with pytest.raises(InputError, match="for other examples"):
        evaluate.main()


def test_baselines_are_fitted_to_the_models_training_examples(source: Path) -> None:
    """Of 96 examples, those of the validation set with the other class, 16 are drawn."""
    wrong = [Example(example.text, None, 1 - example.label) for example in DEV] * 8
    write_moods({"train": wrong, "dev": DEV, "test": TEST})
    _, details = run(source)
    drawn = read_drawn(PREDICTED) or []
    assert len(drawn) == 16
    for name in ("moods", "moods-test"):
        assert details[name]["notes"]["majority, tfidf"].startswith("fitted to 16 of 96 training examples")
    # Rows that were not drawn do not matter: put right, they leave the figures as they are.
    righted = [wrong[place] if place in drawn else example for place, example in enumerate(DEV * 8)]
    write_moods({"train": righted})
    evaluate.main()
    assert read_json(evaluate.DETAILS)["moods"]["baselines"] == details["moods"]["baselines"]


def test_what_the_baselines_say_of_each_split_is_written_as_it_is_scored(source: Path) -> None:
    metrics, _ = run(source)
    for name, examples in (("moods", DEV), ("moods-test", TEST)):
        found = read_baselines(name)
        assert list(found) == ["majority", "tfidf"]
        for baseline, labels in found.items():
            right = [label == example.label for label, example in zip(labels, examples, strict=True)]
            accuracy = metrics[name]["baselines"][baseline]["accuracy"]
            assert accuracy == pytest.approx(sum(right) / len(right), rel=1e-5)


def test_the_learning_curve_has_the_losses_and_the_chosen_metrics_of_each_epoch(source: Path) -> None:
    """Of 12 examples 6, 3 and none are wrong after the epochs, of which the second is kept. The curve has no F1."""
    examples_path(source, "test").unlink()
    rows = [
        {"epoch": epoch, "id": place, "label": label, "logit_0": 0.5, "logit_1": float(label != (place < wrong))}
        for epoch, wrong in enumerate((6, 3, 0))
        for place, label in enumerate(example.label for example in DEV)
    ]
    losses = [
        {"epoch": 0, "training_loss": None, "validation_loss": 0.7, "kept": False},
        {"epoch": 1, "training_loss": 0.5, "validation_loss": 0.4, "kept": True},
        {"epoch": 2, "training_loss": 0.3, "validation_loss": 0.6, "kept": False},
    ]
    PREDICTED.mkdir(parents=True)
    write_predictions(PREDICTED / PREDICTIONS, "classification", rows)
    write_json(PREDICTED / LOSSES, losses)
    evaluate.main()
    header, *epochs = (evaluate.CURVES / "moods.csv").read_text().splitlines()
    assert header == "method,seed,epoch,training_loss,validation_loss,accuracy"
    assert epochs == ["full,1,0,,0.7,0.5", "full,1,1,0.5,0.4,0.75", "full,1,2,0.3,0.6,1.0"]


def test_a_task_without_a_test_split_does_not_mention_one(source: Path) -> None:
    examples_path(source, "test").unlink()
    assert not has_test(source)
    assert list(run(source)[0]) == ["moods"]
    written = {path.name for path in PREDICTED.iterdir()}
    assert written == {"predictions.parquet", "losses.json", "updates.json", "drawn.json", ".SHA256SUMS"}


def test_questions_may_have_a_test_split_too(tmp_path: Path) -> None:
    assert not has_test(tmp_path)
    write_json(questions_path(tmp_path, "test"), {})
    assert has_test(tmp_path)
