import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from transformers import LlamaConfig

from retrace.cli import main as cli
from retrace.statistics.intervals import wilson_interval
from tests.console import retrace
from tests.toy import ROOT, Project

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


def _files(folder: Path, predictions: object) -> tuple[Path, Path]:
    dataset, answers = folder / "dataset.json", folder / "predictions.json"
    dataset.write_text(json.dumps(DATASET))
    answers.write_text(json.dumps(predictions))
    return dataset, answers


def test_scores_anyones_predictions(tmp_path, monkeypatch, capsys) -> None:
    assert retrace(monkeypatch, "score", "squad", *_files(tmp_path, {"a": "Ada", "b": ""})) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["exact_match"] == 50.0
    assert scores["f1"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert scores["NoAns_exact_match"] == 100.0


def _numbers(folder: Path, numbers: object) -> Path:
    path = folder / "na_prob.json"
    path.write_text(json.dumps(numbers))
    return path


def test_probabilities_of_no_answer_take_answers_back(tmp_path, monkeypatch, capsys) -> None:
    files = _files(tmp_path, {"a": "Ada Lund", "b": "1601"})
    numbers = _numbers(tmp_path, {"b": 0.75, "a": 0.25})
    assert retrace(monkeypatch, "score", "squad", *files, "--na-prob", numbers) == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["exact_match"], scores["best_exact_match"], scores["best_exact_match_thresh"]) == (50.0, 100.0, 0.25)
    assert retrace(monkeypatch, "score", "squad", *files, "--na-prob", numbers, "--na-prob-thresh", "0.5") == 0
    assert json.loads(capsys.readouterr().out)["exact_match"] == 100.0


@pytest.mark.parametrize(("order", "best"), [("ab", 100.0), ("ba", 50.0)])
def test_ties_are_broken_by_the_order_of_the_file(tmp_path, monkeypatch, capsys, order: str, best: float) -> None:
    files = _files(tmp_path, {"a": "Ada Lund", "b": "1601"})
    numbers = _numbers(tmp_path, dict.fromkeys(order, 0.5))
    assert retrace(monkeypatch, "score", "squad", *files, "--na-prob", numbers) == 0
    assert json.loads(capsys.readouterr().out)["best_exact_match"] == best


def _classes(folder: Path, gold: str, given: str) -> list[str]:
    paths = [folder / "gold.tsv", folder / "given.csv"]
    for path, text in zip(paths, (gold, given), strict=True):
        path.write_text(text)
    return [str(path) for path in paths]


def test_scores_anyones_classes_with_their_probabilities(tmp_path, monkeypatch, capsys) -> None:
    files = _classes(tmp_path, "text\tlabel\na\tgood\nb\tbad\nc\tgood\nd\tbad\n",
                     "said,good,bad\ngood,0.9,0.1\nbad,0.2,0.8\nbad,0.4,0.6\nbad,0.3,0.7\n")  # fmt: skip
    assert retrace(monkeypatch, "score", "classification", *files, "--prediction", "said", "--intervals") == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["accuracy"], scores["roc_auc"]) == (0.75, 1.0)
    assert scores["recall_macro"] == 0.75
    assert scores["intervals"]["accuracy"] == wilson_interval(0.75, 4)


def test_intervals_hold_their_figures_and_have_a_width_where_all_is_right(tmp_path, monkeypatch, capsys) -> None:
    generator = np.random.default_rng(1)
    chances = generator.uniform(0.5, 1.0, 400)
    calibrated = [(int(generator.random() < chance), f"1,{1 - chance},{chance}") for chance in chances]
    for rows in (calibrated, [(1, "1,0.1,0.9"), (0, "0,0.8,0.2")] * 30):
        gold = "label\n" + "".join(f"{label}\n" for label, _ in rows)
        files = _classes(tmp_path, gold, "label,0,1\n" + "".join(f"{row}\n" for _, row in rows))
        assert retrace(monkeypatch, "score", "classification", *files, "--intervals") == 0
        scores = json.loads(capsys.readouterr().out)
        for name, ends in scores["intervals"].items():
            assert ends["low"] <= scores[name] <= ends["high"], name
    assert scores["accuracy"] == scores["intervals"]["accuracy"]["high"] == 1.0
    assert scores["intervals"]["accuracy"]["low"] == pytest.approx(0.94, abs=0.001)


def test_one_class_for_all_is_said_to_be(tmp_path, monkeypatch, capsys) -> None:
    files = _classes(tmp_path, "label\n1\n0\n", "label\n1\n1\n")
    assert retrace(monkeypatch, "score", "classification", *files) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["recall"] == 1.0
    assert "warning: one class only: all 2 examples are called 1\n" in found.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("label\n1\n", "given.csv: 1 rows, but "),
        ('label\n1\n""\n', "given.csv:3: no 'label'"),
        ("class\n1\n0\n", "given.csv:2: no 'label'; there is: class"),
        ("label,0,1\n1,0.5,half\n0,1,0\n", "given.csv:2: expected probabilities in 0, 1; 1 has half"),
        ("label,0,1\n1,0.5,0.5\n0,-1,2\n", "given.csv:3: expected probabilities in 0, 1"),
        ("label,0,1\n1,0.5,0.5\n0,nan,1\n", "given.csv:3: expected probabilities in 0, 1; 0 has nan"),
        (
            "label,0,1\n1,0.5,0.5\n0,0.5,0.4\n",
            "given.csv:3: expected probabilities in 0, 1; they sum to 0.9 and not to 1",
        ),
        ("label,0,1\n1,50,50\n0,80,20\n", "given.csv:2: expected probabilities in 0, 1; they sum to 100 and not to 1"),
        ("label,0,1,sure\n1,0.5,0.5,1\n0,0.5,0.3,1\n", "given.csv:3: expected probabilities in 0, 1; they sum to 0.8"),
        ("label\n", "given.csv: no row in it"),
    ],
)
def test_wrong_classes_are_one_line(tmp_path, monkeypatch, capsys, given: str, said: str) -> None:
    assert retrace(monkeypatch, "score", "classification", *_classes(tmp_path, "label\n1\n0\n", given)) == 2
    assert said in capsys.readouterr().err


def _scored(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, float], str]:
    found = capsys.readouterr()
    return json.loads(found.out), found.err


def test_a_class_that_never_occurs_keeps_its_probabilities(tmp_path, monkeypatch, capsys) -> None:
    rows = [("a", "a", 0.4, 0.3, 0.3), ("b", "b", 0.25, 0.45, 0.3), ("a", "b", 0.3, 0.4, 0.3)]
    gold = "label\n" + "".join(f"{right}\n" for right, *_ in rows)
    given = "label,a,b,c,text\n" + "".join(f"{','.join(map(str, row))},x\n" for _, *row in rows)
    assert retrace(monkeypatch, "score", "classification", *_classes(tmp_path, gold, given)) == 0
    scores, said = _scored(capsys)
    # Confidences 0.4 and 0.4 (one of two right) are in one bin, 0.45 (right) in the next.
    assert scores["expected_calibration_error"] == pytest.approx(2 / 3 * (0.5 - 0.4) + 1 / 3 * (1 - 0.45))
    assert "roc_auc" not in scores
    assert said == f"warning: no roc auc: {tmp_path / 'gold.tsv'} has no c\n"


def test_a_class_that_never_occurs_counts_however_improbable(tmp_path, monkeypatch, capsys) -> None:
    files = _classes(tmp_path, "label\na\nb\n", "label,a,b,c\na,0.7,0.291,0.009\nb,0.2,0.798,0.002\n")
    assert retrace(monkeypatch, "score", "classification", *files) == 0
    scores, said = _scored(capsys)
    assert "roc_auc" not in scores
    assert said.endswith("has no c\n")


def test_another_column_of_numbers_is_no_class(tmp_path, monkeypatch, capsys) -> None:
    given = "label,right,a,b,sure\na,1,0.67,0.33,0.67\nb,0,0.333,0.666,0\n"
    assert retrace(monkeypatch, "score", "classification", *_classes(tmp_path, "label\na\nb\n", given)) == 0
    scores, said = _scored(capsys)
    assert (scores["roc_auc"], said) == (1.0, "")


def test_the_area_is_that_of_the_numbers_in_the_file(tmp_path, monkeypatch, capsys) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=300)
    # Numbers of single precision do not sum to 1 exactly; divided by their sum some would change places.
    found = generator.dirichlet(np.ones(3), 300).round(3).astype(np.float32).astype(np.float64)
    gold, given = tmp_path / "gold.jsonl", tmp_path / "given.jsonl"
    gold.write_text("".join(json.dumps({"label": int(label)}) + "\n" for label in labels))
    rows = [{"label": float(row.argmax()), **{f"{c}.0": value for c, value in enumerate(row)}} for row in found]
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert retrace(monkeypatch, "score", "classification", gold, given) == 0
    scores, said = _scored(capsys)
    expected = np.mean([roc_auc_score(labels == c, found[:, c]) for c in range(3)])
    assert scores["roc_auc"] == pytest.approx(expected, abs=1e-12)
    assert scores["accuracy"] == np.mean(labels == found.argmax(axis=1))
    assert said == ""


@pytest.mark.parametrize(
    ("gold", "given"),
    [("0 1 1", "0.0 1.0 0.0"), ("0.0 1.0 1.0", "0 1 0"), ("+1 -1 -1", "1.0 -1 1"), ("True False False", "true FALSE 1"),
     ("2 10 10", "2 10 2")],
)  # fmt: skip
def test_numbers_and_truth_are_the_same_classes_however_written(tmp_path, monkeypatch, capsys, gold, given) -> None:
    files = _classes(tmp_path, *("\n".join(["label", *text.split(), ""]) for text in (gold, given)))
    assert retrace(monkeypatch, "score", "classification", *files) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == pytest.approx(2 / 3)


def test_the_favourable_class_is_the_larger_number(tmp_path, monkeypatch, capsys) -> None:
    files = _classes(tmp_path, "label\n2\n10\n10\n2\n", "label\n2\n10\n2\n2\n")
    assert retrace(monkeypatch, "score", "classification", *files) == 0
    assert json.loads(capsys.readouterr().out)["recall"] == 0.5


@pytest.mark.parametrize("given", ["positive negative", "true false", "Positive Negative"])
def test_classes_that_have_nothing_in_common_are_one_line(tmp_path, monkeypatch, capsys, given: str) -> None:
    files = _classes(tmp_path, "label\n1\n0\n", "\n".join(["label", *given.split(), ""]))
    assert retrace(monkeypatch, "score", "classification", *files) == 2
    called = ", ".join(sorted(given.split()))
    expected = f"error: {files[1]}: no class in common: its classes are {called}, those of {files[0]} 0, 1\n"
    assert capsys.readouterr().err == expected


def test_a_predicted_class_that_is_never_right_is_named(tmp_path, monkeypatch, capsys) -> None:
    files = _classes(tmp_path, "label\nyes\nno\nno\n", "label,yes,no\nyes,1,0\nmaybe,0,1\nmaybe,0,1\n")
    assert retrace(monkeypatch, "score", "classification", *files) == 0
    scores, said = _scored(capsys)
    assert scores["accuracy"] == pytest.approx(1 / 3)
    assert said == (
        f"warning: unknown class: 2 of 3 predictions are maybe, which {files[0]} does not have\n"
        "warning: no probabilities: no column is called maybe\n"
    )


@pytest.mark.parametrize(
    ("predictions", "said"),
    [
        ({"a": "Ada"}, "1 of 2 questions have no prediction, b the first"),
        ({"b": ""}, "1 of 2 questions have no prediction, a the first"),
    ],
)
def test_questions_without_a_prediction_are_said(tmp_path, monkeypatch, capsys, predictions, said) -> None:
    files = _files(tmp_path, predictions)
    assert retrace(monkeypatch, "score", "squad", *files) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err == f"error: {files[1]}: {said}; with --allow-missing only the others are scored\n"
    assert retrace(monkeypatch, "score", "squad", *files, "--allow-missing") == 0
    scores, warned = _scored(capsys)
    assert scores["total"] == 1
    assert warned.startswith(f"warning: missing: {said}; only the others are scored\n")


def test_predictions_of_no_question_are_said(tmp_path, monkeypatch, capsys) -> None:
    assert retrace(monkeypatch, "score", "squad", *_files(tmp_path, {"a": "Ada", "b": "", "z": "", "y": "x"})) == 0
    scores, said = _scored(capsys)
    assert scores["total"] == 2
    assert said == "warning: unknown: 2 of 4 predictions are of no question, z the first\n"


def test_an_unknown_ending_is_told_the_known_ones(tmp_path, monkeypatch, capsys) -> None:
    path = tmp_path / "gold.txt"
    path.write_text("label\n1\n")
    assert retrace(monkeypatch, "score", "classification", str(path), str(path)) == 2
    formats = "csv, jsonl, parquet, tsv, xml"
    assert capsys.readouterr().err == f"error: {path}: format 'txt' is not allowed; expected one of {formats}\n"


def test_all_scores_of_answers(tmp_path, monkeypatch, capsys) -> None:
    assert retrace(monkeypatch, "score", "squad", *_files(tmp_path, {"a": "Ada Lund", "b": "x"}), "--all") == 0
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
        ({"a": True, "b": False}, "expected one object of question ids and numbers"),
    ],
)
def test_wrong_probabilities_are_one_line(tmp_path, monkeypatch, capsys, numbers, message) -> None:
    files = _files(tmp_path, {"a": "Ada", "b": ""})
    assert retrace(monkeypatch, "score", "squad", *files, "--na-prob", _numbers(tmp_path, numbers)) == 2
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
    assert retrace(monkeypatch, "score", "squad", *_files(tmp_path, predictions)) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def test_help_lists_every_command_without_importing_it(monkeypatch, capsys) -> None:
    modules = Path(cli.__file__).parent.glob("*.py")
    files = {path.stem for path in modules if re.search("^(def main|SUBCOMMANDS)", path.read_text(), re.M)} - {"main"}
    assert set(cli.COMMANDS) == files
    monkeypatch.setattr(cli, "load_command", None)
    assert retrace(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown and text in shown for name, text in cli.COMMANDS.items())


def test_an_unknown_command_is_one_line(monkeypatch, capsys) -> None:
    assert retrace(monkeypatch, "skore") == 2
    assert capsys.readouterr().err.startswith("error: retrace skore: no such command; expected one of check, ")


def test_the_committed_params_are_right(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    assert retrace(monkeypatch, "check") == 0


def test_a_plan_says_what_each_number_of_devices_takes(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    options = ("--tokens", "1e9", "--devices", "1", "8", "64", "--teraflops", "1", "--utilisation", "0.5")
    assert retrace(monkeypatch, "plan", *options) == 0
    model, assumed, header, *rows = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"modernbert: [\d,]+ parameters, 0\.\d+ GFLOP a token; .*, 488,281 steps", model)
    assert assumed == "assumed: 1 TFLOP/s a device, of which 50% are reached"
    assert header.split() == ["devices", "blocks", "each", "memory", "each", "time"]
    assert [row.split()[0] for row in rows] == ["1", "8", "64"]
    assert "64 (48 idle)" in rows[2], "a step has 16 blocks"
    assert retrace(monkeypatch, "plan", *options, "--sharded") == 0
    shared = capsys.readouterr().out.splitlines()[3:]
    assert shared[0] == rows[0]
    assert shared[1] != rows[1]


@pytest.mark.parametrize("option", ["--tokens", "--utilisation", "--devices", "--batch"])
def test_a_plan_wants_numbers_above_0(monkeypatch, capsys, option: str) -> None:
    monkeypatch.chdir(ROOT)
    assert retrace(monkeypatch, "plan", "--tokens", "1", option, "0") == 2
    assert capsys.readouterr().err == f"error: {option}: expected a number above 0\n"


def test_parameters_are_counted_as_a_user_asks(monkeypatch, capsys) -> None:
    assert retrace(monkeypatch, "parameters", "bert-base", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["total"], found["trainable"], found["frozen"]) == (109_482_240, 109_482_240, 0)
    assert found["closed_form"]["total"] == 109_482_240
    assert found["closed_form"]["differences"] == {}
    assert sum(row["size"] for row in found["rows"]) == 109_482_240
    assert [entry["total"] for entry in found["published"]] == [110_000_000, 108_432_384]


def test_a_table_of_parameters_has_a_row_for_each_or_for_each_layer(monkeypatch, capsys) -> None:
    assert retrace(monkeypatch, "parameters", "roberta-small") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["Parameter", "Size", "Trained"]
    assert ["encoder.layer.3.output.dense.weight", "262,144", "262,144"] in lines
    assert ["difference", "of", "the", "model:", "embeddings.token_type_embeddings", "+512"] in lines
    assert retrace(monkeypatch, "parameters", "roberta-small", "--by", "layer", "--method", "frozen") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["encoder.layer.3", "1,577,984", "0"] in lines
    assert ["Frozen", "22,829,568"] in lines
    assert retrace(monkeypatch, "parameters", "roberta-small", "--by", "module", "--head", "qa") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["qa_outputs", "1,026", "1,026"] in lines
    assert ["Head", "biases", "2"] in lines


def test_torchinfos_summary_is_an_option(monkeypatch, capsys) -> None:
    assert retrace(monkeypatch, "parameters", "llama-3.2-1b", "--head", "qa", "--summary", "3") == 0
    assert "Total params: 1,235,818,498" in capsys.readouterr().out


def test_the_model_of_params_yaml_is_counted_with_the_settings_of_a_method_for_the_task(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    attention = 4 * ((128 + 384) + (128 + 128))  # two matrices of four layers
    for name, head, products in (
        ("classification", 128 * 128 + 128 + 128 * 2 + 2, 15 * (attention + 3072 + 128)),  # dense, norm, classes
        ("qa", 128 * 128 + 128 + 128 * 2 + 2, 32 * attention),
    ):
        assert retrace(monkeypatch, "parameters", "--head", name, "--method", "lora", "--format", "json") == 0
        assert json.loads(capsys.readouterr().out)["trainable"] == head + products


@pytest.mark.parametrize("command", [("parameters",), ("memory", "--batch", "1", "--length", "8")])
def test_an_unknown_model_is_one_line(tmp_path, monkeypatch, capsys, command) -> None:
    name, *options = command
    assert retrace(monkeypatch, name, "bert-huge", *options) == 2
    assert capsys.readouterr().err.startswith("error: bert-huge: neither a folder nor one of the presets bert-base, ")
    assert retrace(monkeypatch, name, tmp_path, *options) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}/config.json: no such file\n"


def test_memory_is_estimated_published_and_measured(tmp_path, monkeypatch, capsys) -> None:
    project = Project(tmp_path)
    (tmp_path / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    project.set("methods.adapter.optimizer", "adamw")
    monkeypatch.chdir(tmp_path)
    options = ("--batch", "4", "--length", "32", "--method", "adapter")
    assert retrace(monkeypatch, "memory", *options) == 0
    shown = capsys.readouterr().out
    first, second, *_ = shown.splitlines()
    parameters, trained = (
        int(count.replace(",", "")) for count in re.findall(r"([\d,]+\d) (?:parameters|trained)", first)
    )
    assert "4 × 32 tokens" in second
    assert "adamw" in second
    assert "published: 4N + 16N_ad + 2d(4blh + 8bl·h_ad)" in shown
    assert "no run of this model here" in shown
    run = tmp_path / "reports/runs/sst2/adapter/1.json"
    run.parent.mkdir(parents=True)
    counts = {"parameters": parameters, "trained_parameters": trained}
    run.write_text(json.dumps({**counts, "peak_memory_mib": 1234, "gpu_memory_mib": None}))
    assert retrace(monkeypatch, "memory", *options) == 0
    assert re.search(r"whole process: reports/runs/sst2/adapter/1.json +1,234 MiB", capsys.readouterr().out)


def test_memory_needs_no_padding_token_and_no_params(tmp_path, monkeypatch, capsys) -> None:
    config = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=120
    )  # fmt: skip
    config.save_pretrained(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert retrace(monkeypatch, "memory", ".", "--batch", "2", "--length", "8", "--method", "lora") == 0
    assert "muon" in capsys.readouterr().out, "the default of the settings"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--batch", "0", "--batch: expected a number above 0"),
        ("--length", "0", "--length: expected a number above 0"),
        ("--length", "1000", "--length: 1000 is not allowed; the model reads at most 512 tokens"),
    ],
)
def test_memory_wants_a_batch_that_the_model_reads(monkeypatch, capsys, option, value, message) -> None:
    assert retrace(monkeypatch, "memory", "bert-base", "--batch", "1", "--length", "8", option, value) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
