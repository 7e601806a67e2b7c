import json
import re
import sys
from pathlib import Path

import pytest

from stages import cli
from tests.toy import ROOT

DATASET = {
    "data": [
        {
            "title": "T",
            "paragraphs": [
                {
                    "context": "Ada Lund built it in 1601.",
                    "qas": [
                        {"id": "a", "question": "Who?", "answers": [{"text": "Ada Lund", "answer_start": 0}]},
                        {"id": "b", "question": "Why?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ]
}


def _retrace(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["retrace", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _files(folder: Path, predictions: object) -> tuple[Path, Path]:
    dataset, answers = folder / "dataset.json", folder / "predictions.json"
    dataset.write_text(json.dumps(DATASET))
    answers.write_text(json.dumps(predictions))
    return dataset, answers


def test_scores_anyones_predictions(tmp_path, monkeypatch, capsys) -> None:
    assert _retrace(monkeypatch, "score", "squad", *_files(tmp_path, {"a": "Ada", "b": ""})) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["exact"] == 50.0
    assert scores["f1"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert scores["NoAns_exact"] == 100.0


def _numbers(folder: Path, numbers: object) -> Path:
    path = folder / "na_prob.json"
    path.write_text(json.dumps(numbers))
    return path


def test_probabilities_of_no_answer_take_answers_back(tmp_path, monkeypatch, capsys) -> None:
    files = _files(tmp_path, {"a": "Ada Lund", "b": "1601"})
    numbers = _numbers(tmp_path, {"b": 0.75, "a": 0.25})
    assert _retrace(monkeypatch, "score", "squad", *files, "--na-prob", numbers) == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["exact"], scores["best_exact"], scores["best_exact_thresh"]) == (50.0, 100.0, 0.25)
    assert _retrace(monkeypatch, "score", "squad", *files, "--na-prob", numbers, "--na-prob-thresh", "0.5") == 0
    assert json.loads(capsys.readouterr().out)["exact"] == 100.0


@pytest.mark.parametrize(("order", "best"), [("ab", 100.0), ("ba", 50.0)])
def test_ties_are_broken_by_the_order_of_the_file(tmp_path, monkeypatch, capsys, order: str, best: float) -> None:
    files = _files(tmp_path, {"a": "Ada Lund", "b": "1601"})
    numbers = _numbers(tmp_path, dict.fromkeys(order, 0.5))
    assert _retrace(monkeypatch, "score", "squad", *files, "--na-prob", numbers) == 0
    assert json.loads(capsys.readouterr().out)["best_exact"] == best


def test_all_scores_of_answers(tmp_path, monkeypatch, capsys) -> None:
    assert _retrace(monkeypatch, "score", "squad", *_files(tmp_path, {"a": "Ada Lund", "b": "x"}), "--all") == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["rougeL"] == 1.0
    assert scores["bleu_precision_2"] == 100.0
    assert scores["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")
    assert any(name.startswith("meteor") for name in scores)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"a": 0.5}, "no number for question b, which has a prediction"),
        ({"a": "0.5", "b": 1}, "expected one object of question ids and numbers"),
        ({"a": float("nan"), "b": 1}, "expected one object of question ids and numbers"),
    ],
)
def test_wrong_probabilities_are_one_line(tmp_path, monkeypatch, capsys, numbers, message) -> None:
    files = _files(tmp_path, {"a": "Ada", "b": ""})
    assert _retrace(monkeypatch, "score", "squad", *files, "--na-prob", _numbers(tmp_path, numbers)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (["a"], "expected one object of question ids and answer texts"),
        ({"a": 3}, "expected one object of question ids and answer texts"),
        ({"z": "x"}, "no prediction for any question"),
    ],
)
def test_wrong_predictions_are_one_line(tmp_path, monkeypatch, capsys, predictions, message) -> None:
    assert _retrace(monkeypatch, "score", "squad", *_files(tmp_path, predictions)) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def test_help_lists_the_commands(monkeypatch, capsys) -> None:
    assert _retrace(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    assert "score" in shown
    assert "check" in shown


def test_the_committed_params_are_right(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    assert _retrace(monkeypatch, "check") == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lr: 0.001 #", "lrr: 1\nlr: 0.001 #", "params.yaml: lrr: unknown key; allowed: lr, seed, "),
        ("lr: 0.001 #", "lr: fast #", "params.yaml: lr: 'fast' is not allowed; expected a number"),
        ("lr: 0.001 #", "lr: 1.0 #", "params.yaml: lr: 1.0 is not allowed; expected above 0 and at most"),
        (
            "[full, scratch]",
            "[full, half]",
            "params.yaml: finetune.methods: 'half' is not allowed; expected one of adapter",
        ),
        (
            "classification: [sst2]",
            "classification: [sst2, own]",
            "params.yaml: finetune.classification: 'own' is not allowed; expected one of sst2\n",
        ),
        (
            "classification: {}",
            "classification:",
            "params.yaml: classification: None is not allowed; expected a section",
        ),
        (
            "classification: {}",
            "classification: {sst2: {}}",
            "params.yaml: classification.sst2: the name is not allowed",
        ),
        (
            "classification: {}",
            "classification: {own: {folder: a}}",
            "params.yaml: classification.own.train is missing",
        ),
        ("meteor, bleu, rouge]", "blue]", "params.yaml: scores.squad: 'blue' is not allowed; expected one of accuracy"),
        ("seeds: [1]", "seeds: [one]", "params.yaml: finetune.seeds[0]: 'one' is not allowed; expected a whole number"),
        ("hidden_size: 768", "hidden_size: 770", "profiles.bert-base.model.heads: 12 is not allowed; it must divide"),
        ("data: sample #", "data: web #", "params.yaml: data: 'web' is not allowed; expected one of sample, files"),
        ("family: modernbert", "family: gpt", "params.yaml: family: 'gpt' is not allowed; expected one of bert"),
        (
            "answers: spans",
            "answers: generated",
            "params.yaml: squad.answers: generated is not allowed with family: modernbert; expected one of llama",
        ),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path, monkeypatch, capsys, old, new, message) -> None:
    text = (ROOT / "params.yaml").read_text()
    assert old in text
    (tmp_path / "params.yaml").write_text(text.replace(old, new, 1))
    monkeypatch.chdir(tmp_path)
    assert _retrace(monkeypatch, "check") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


OWN = "classification: {own: {folder: a, train: t.csv, dev: d.csv, text: [title, body]}}"
TRAINING = "    own: {lr: 0.001, epochs: 1, batch_size: 8, max_length: 64}\n    squad:"


def test_a_task_of_the_users_own_is_an_entry_a_name_and_a_section(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "params.yaml").read_text().replace("classification: {}", OWN)
    listed = text.replace("classification: [sst2]", "classification: [sst2, own]")
    trained = listed.replace("    squad:", TRAINING, 1)
    for params, message in (
        (text, ""),
        (listed, "params.yaml: profiles.sample.own is missing; profiles.sample has: tokenizer, model"),
        (trained, ""),
        (trained.replace("lr: 0.001, epochs: 1,", "lr: 0.001,"), "params.yaml: profiles.sample.own.epochs is missing"),
        (trained.replace("{own:", "{other:"), "params.yaml: finetune.classification: 'own' is not allowed"),
    ):
        (tmp_path / "params.yaml").write_text(params)
        assert _retrace(monkeypatch, "check") == (2 if message else 0)
        assert message in capsys.readouterr().err


def test_a_plan_says_what_each_number_of_devices_takes(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    options = ("--tokens", "1e9", "--devices", "1", "8", "64", "--teraflops", "1", "--utilisation", "0.5")
    assert _retrace(monkeypatch, "plan", *options) == 0
    model, assumed, header, *rows = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"modernbert, sample: [\d,]+ parameters, 0\.\d+ GFLOP a token; .*, 488,281 steps", model)
    assert assumed == "assumed: 1 TFLOP/s a device, of which 50% are reached"
    assert header.split() == ["devices", "blocks", "each", "memory", "each", "time"]
    assert [row.split()[0] for row in rows] == ["1", "8", "64"]
    assert "64 (48 idle)" in rows[2], "a step has 16 blocks"


@pytest.mark.parametrize("option", ["--tokens", "--utilisation", "--devices", "--batch"])
def test_a_plan_wants_numbers_above_0(monkeypatch, capsys, option: str) -> None:
    monkeypatch.chdir(ROOT)
    assert _retrace(monkeypatch, "plan", "--tokens", "1", option, "0") == 2
    assert capsys.readouterr().err == f"error: {option}: expected a number above 0\n"
