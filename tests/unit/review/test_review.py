"""`retrace review` on real repositories of git and DVC, whose reports are written by hand."""

import gc
import json
import math
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from dvc.repo import Repo
from dvc.repo.add import add

from retrace.cli import review as command
from retrace.core.files import write_json, write_text
from retrace.core.records import git
from retrace.evaluation.outcomes import CLUSTERED
from retrace.perplexity.measures import Losses, Sizes, write_documents
from retrace.results.grid import Kind
from retrace.results.predictions import LOSSES, PREDICTIONS, write_predictions
from retrace.review.changes import Review
from retrace.review.changes import review as compare
from retrace.review.revision import Revision, commit_of, default_base
from retrace.review.text import verdict
from tests.commands import refused, retrace
from tests.study import RUN, method_of
from tests.toy import Project, copy_settings

pytestmark = pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")  # of pygtrie, in `dvc add`
ACCURACY = {"accuracy": 0.8, "f1_macro": 0.8, "validation_loss": 0.5}
METRICS: dict[str, Any] = {"sst2": {"baselines": {"tfidf": {"accuracy": 0.7}}, "full": ACCURACY, "scratch": ACCURACY}}
PERPLEXITY: dict[str, Any] = {part: {"masked": 6.0, "unigram": 160.0} for part in ("valid", "test")}
BETTER = ", beyond the noise; no figure that models are judged by got worse beyond it"
WITHIN_NOISE = "within noise: {} of {} figures differ, but none that models are judged by differs by more than noise"


TRACKED = (
    "predictions", "data/classification", "data/question_answering", "reports/runs", "reports/scores.json",
    "reports/perplexity-documents.parquet",
)  # fmt: skip


class Repository:
    """A repository in the current folder: settings of the project, and reports."""

    _settings = Project(Path())

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, metrics: Any = METRICS, perplexity: Any = PERPLEXITY) -> str:
        """Commit all, with these reports; DVC's cache gets what it tracks, here without a pipeline."""
        self.write(metrics, perplexity)
        with Repo() as repo:
            add(repo, list(filter(os.path.exists, TRACKED)))
        return self.record()

    def record(self, files: str = "-A") -> str:
        """Commit files as they are."""
        self.git("add", files)
        self.git(
            "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-qm", "commit", "--allow-empty"
        )
        return self.git("rev-parse", "HEAD")

    def write(self, metrics: Any = METRICS, perplexity: Any = PERPLEXITY) -> None:
        write_json(Path("reports/metrics.json"), metrics)
        write_json(Path("reports/perplexity.json"), perplexity)

    def set(self, key: str, value: Any) -> None:
        self._settings.set(key, value)

    def ask(self) -> None:
        """Have questions answered by `full`."""
        self._settings.set_all({"finetune.questions": ["squad"], "finetune.squad_methods": ["full"]})


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A repository with settings alone and nothing committed, which `repository` copies."""
    project = copy_settings(tmp_path_factory.mktemp("settings"))
    project.set_all({"finetune.questions": [], "finetune.squad_methods": []})
    project.run("git", "init", "-q", "-b", "main")
    for name, text in (("dvc.yaml", ""), (".dvc/config", "[core]\n    analytics = false\n"),
                       (".dvc/.gitignore", "/cache\n/tmp\n")):  # fmt: skip
        write_text(project.folder / name, text)
    return project


@pytest.fixture
def repository(settings: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.chdir(settings.copy(tmp_path / "project").folder)
    return Repository()


def _metrics(**accuracies: float) -> dict[str, Any]:
    """The same with other accuracies, by method."""
    methods = {method: {**ACCURACY, "accuracy": accuracy} for method, accuracy in accuracies.items()}
    return {"sst2": METRICS["sst2"] | methods}


def _review(*arguments: str, code: int = 0) -> str:
    done = retrace("review", *arguments)
    assert done.code == code, done
    return done.out


def _found(*arguments: str, code: int = 0) -> tuple[str, Any]:
    """The verdict and all that differs, which the command found; its words name the base and the verdict."""
    kept: list[Review] = []
    with patch.object(command, "compare", lambda *sides: kept.append(compare(*sides)) or kept[-1]):
        said = _review(*arguments, code=code)
    (found,) = kept
    commit = commit_of(arguments[1] if arguments else default_base()[0])
    assert commit[:10] in said
    assert f"**{verdict(found)}.**\n" in said
    return verdict(found), found


def test_nothing_moved_is_one_quiet_line(repository: Repository) -> None:
    commit = repository.commit()
    said = _review()
    assert said == f"**no change: all 11 figures are the same.**\n\nCompared with {commit[:10]}, the last commit.\n"
    said = _review("--base", "HEAD", "--brief")
    assert said == f"compared with HEAD ({commit[:10]}): no change: all 11 figures are the same\n"


def test_a_name_in_the_reports_does_not_act_on_the_terminal(repository: Repository) -> None:
    repository.commit(_metrics(**{"\x1b[2J": 0.8}))
    repository.write(_metrics(**{"\x1b[2J": 0.7}))
    said = "worse: reviews accuracy (\\x1b[2J) −10.0 points\n"
    assert _review("--base", "HEAD", "--brief", code=1).endswith(said)


def test_without_predictions_and_seeds_the_tolerance_decides(repository: Repository) -> None:
    repository.commit()
    for full, why, said, code in (
        (0.75, "within", WITHIN_NOISE.format(1, 11), 0),  # the tolerance, and not more: 0.8 - 0.75 is above 0.05
        (0.86, "more than", f"better: reviews accuracy (full) +6.0 points{BETTER}", 0),
        (0.74, "more than", "worse: reviews accuracy (full) −6.0 points", 1),
    ):
        repository.write(_metrics(full=full))
        verdict, found = _found(code=code)
        assert verdict == said
        assert [change.why for change in found.changes] == [f"{why} the tolerance of 5 points"]


def test_questions_that_are_no_longer_listed_are_still_compared_as_questions(repository: Repository) -> None:
    """Their F1 is a percentage, where that of a classification is a fraction."""
    repository.ask()
    before, after = (
        {**METRICS, "squad": {"baselines": {"no_answer": {"f1": 30.0}}, "full": {"f1": f1, "exact_match": 90.0}}}
        for f1 in (98.0, 97.0)
    )
    repository.commit(before)
    repository.set("finetune.questions", [])
    repository.write(after)
    _, found = _found()
    assert [change.why for change in found.changes] == ["within the tolerance of 5 points"]


def test_a_fall_fails_beside_a_rise_and_a_looser_tolerance_lets_it_pass(repository: Repository) -> None:
    repository.commit()
    repository.write(_metrics(full=0.9, scratch=0.7), {**PERPLEXITY, "valid": {"masked": 5.0, "unigram": 160.0}})
    said, found = _found(code=1)
    rest = "but reviews accuracy (full) +10.0 points, masked perplexity (valid) −1.00"
    assert said == f"mixed: reviews accuracy (scratch) −10.0 points; {rest}"
    assert [change.direction for change in found.changes] == ["better", "worse", "better"]
    repository.set("review.tolerance.points", 12)
    assert _found()[0] == f"better: masked perplexity (valid) −1.00{BETTER}"


def test_a_difference_that_counts_is_not_printed_as_0(repository: Repository) -> None:
    """Without a tolerance 0.04 points count, of which one digit would print 0.0 beside worse."""
    repository.commit()
    repository.set("review.tolerance.points", 0)
    repository.write(_metrics(full=0.7996))
    assert _found(code=1)[0] == "worse: reviews accuracy (full) −0.04 points"


def test_what_falls_is_named_beside_what_rises_of_the_same_model(repository: Repository) -> None:
    repository.ask()
    repository.commit({"squad": {"baselines": {}, "full": {"exact_match": 50.0, "f1": 80.0}}})
    repository.write({"squad": {"baselines": {}, "full": {"exact_match": 60.0, "f1": 70.0}}})
    said, _ = _found(code=1)
    assert said == "mixed: questions F1 (full) −10.0 points; but questions exact match (full) +10.0 points"


def test_a_loss_a_baseline_or_a_part_of_the_questions_alone_fails_nothing(repository: Repository) -> None:
    parts = {"f1": 60.0, "exact_match": 58.0, "HasAns_f1": 65.0, "NoAns_f1": 50.0, "validation_loss": 1.0}
    repository.ask()
    repository.commit({"squad": {"baselines": {"no_answer": {"f1": 32.0}}, "full": parts}})
    worse = {**parts, "NoAns_f1": 40.0, "validation_loss": 2.0}
    repository.write({"squad": {"baselines": {"no_answer": {"f1": 20.0}}, "full": worse}})
    said, found = _found()
    assert said == WITHIN_NOISE.format(3, 10)
    assert {change.place.figure: (change.counts, change.direction) for change in found.changes} == {
        "NoAns_f1": (True, "worse"), "validation_loss": (True, "worse"), "f1": (True, "other")
    }  # fmt: skip


def _predict(*wrong: int, examples: int = 200) -> None:
    """Predictions of sst2 by full, whose classes alternate: by each seed so many examples, the last ones, are wrong."""
    for seed, count in enumerate(wrong, 1):
        said = [1 - i % 2 if i >= examples - count else i % 2 for i in range(examples)]
        rows = [
            {"epoch": epoch, "id": i, "label": i % 2, "logit_0": 1.0 - x, "logit_1": float(x)}
            for epoch, of in ((1, said), (2, [0] * examples)) for i, x in enumerate(of)
        ]  # fmt: skip
        _write_run(Path(f"predictions/sst2/full/{seed}"), "classification", rows)


def _write_run(folder: Path, kind: Kind, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_predictions(folder / PREDICTIONS, kind, rows)
    epochs = sorted({row["epoch"] for row in rows})  # of which the first was kept
    losses = [{"epoch": of, "training_loss": 0.5, "validation_loss": 0.5, "kept": of == 1} for of in epochs]
    write_json(folder / LOSSES, losses)


def test_with_one_seed_a_clear_difference_also_has_to_exceed_the_tolerance(repository: Repository) -> None:
    _predict(40)
    repository.commit()
    _predict(32)
    repository.write(_metrics(full=0.84))
    (change,) = _found()[1].changes
    # Eight examples in 200 are won and none is lost; with half of one more won, half of one lost, and one unchanged.
    error = (np.var([*[1] * 17, -1, *[0] * 386]) / 202) ** 0.5
    assert change.interval["low"] == pytest.approx(0.04 - 1.972 * error, abs=0.001)
    assert not change.counts
    said = "within the tolerance of 5 points; one seed, 95% interval +1.1 to +6.9 points"
    assert change.why.startswith(said)
    repository.set("review.tolerance.points", 3)
    assert _found()[0] == f"better: reviews accuracy (full) +4.0 points{BETTER}"


PAIRED = "95% interval +0.5 to +3.5 points, of the same seeds, paired"


def _gain(repository: Repository) -> None:
    """Since the last commit each of three seeds gained two points, though they lie 20 points apart.

    Each has won four examples, and other ones. With half an example more that all won, half of one that all
    lost, and one unchanged, the error of the mean is √((12/9 + 1) / 202 - (4 / 202)²) / √202 = 0.74 points.
    """
    repository.set("finetune.seeds", [1, 2, 3])
    _predict(20, 40, 60)
    repository.commit()
    _predict(16, 36, 56)
    repository.write(_metrics(full=0.82))


def test_the_same_seeds_are_paired_and_others_are_not(repository: Repository) -> None:
    """The seeds' spread would show nothing."""
    _gain(repository)
    (change,) = _found()[1].changes
    assert (change.counts, change.why) == (True, PAIRED)
    assert 0 < change.interval["low"] < 0.02 < change.interval["high"]
    repository.set("finetune.seeds", [3, 2, 1])
    assert [change.why for change in _found()[1].changes] == ["within the tolerance of 5 points"]


@pytest.mark.parametrize("seeds", [[1], [1, 2, 3]])
def test_a_figure_that_is_computed_in_another_way_is_not_within_the_noise_of_equal_predictions(
    repository: Repository, seeds: list[int]
) -> None:
    """An edit of a metric breaks it: the models are the same, and so would be what it says of both now."""
    repository.set("finetune.seeds", seeds)
    _predict(*[40] * len(seeds))
    repository.commit()
    for accuracy, code, said in (
        (0.5, 1, "worse: reviews accuracy (full) −30.0 points"),
        (0.78, 0, WITHIN_NOISE.format(1, 11)),
    ):
        repository.write(_metrics(full=accuracy))
        verdict, found = _found(code=code)
        assert verdict == said
        why = f"{'more than' if code else 'within'} the tolerance of 5 points; the predictions of both, scored by the "
        assert [change.why for change in found.changes] == [f"{why}same code, differ by 0.0 points"]


@pytest.mark.parametrize(("part", "why"), [("dev", "not compared: the examples differ"), ("train", PAIRED)])
def test_other_texts_with_the_same_labels_are_other_examples(repository: Repository, part: str, why: str) -> None:
    """Only those that are scored: what a model was trained on may differ."""
    folder = Path("data/classification/sst2")
    for name in ("train", "dev"):
        write_text(folder / f"{name}.jsonl", "first\n")
    _gain(repository)
    write_text(folder / f"{part}.jsonl", "other\n")
    assert [change.why for change in _found()[1].changes] == [why]


def test_where_texts_are_shared_but_not_available_examples_are_not_taken_as_independent(repository: Repository) -> None:
    """A note in scores.json says that texts are shared; without it the same predictions are paired."""
    _predict(40)
    repository.commit()
    _predict(20)
    repository.write(_metrics(full=0.9))
    assert _found()[1].changes[0].interval is not None
    task = {"headlines": [], "legend": {}, "baselines": {}, "methods": {}, "comparisons": [], "notes": {CLUSTERED: "2"}}
    write_json(Path("reports/scores.json"), {"sst2": task})
    (change,) = _found()[1].changes
    assert (change.interval, change.why) == (None, "more than the tolerance of 5 points")


def _lock(digests: dict[str, str]) -> None:
    """A lock file that has digests of the folders that a stage read."""
    read = [{"path": path, "hash": "md5", "md5": digest} for path, digest in digests.items()]
    write_text(Path("dvc.lock"), json.dumps({"schema": "2.0", "stages": {"evaluate": {"cmd": "x", "deps": read}}}))


def test_on_examples_that_are_known_to_be_the_same_a_loss_is_compared_whatever_models_were_trained_on(
    repository: Repository,
) -> None:
    """The lock file says that the task's folder differs, the predictions that the examples do not; nor do seeds."""
    for digest, loss, seeds in (("one", 0.5, [1, 2]), ("two", 0.6, [1, 2]), ("two", 0.6, [2, 1])):
        _lock({"data/classification/sst2": digest})
        repository.set("finetune.seeds", seeds)
        _predict(40, 40)
        metrics = {"sst2": METRICS["sst2"] | {"full": ACCURACY | {"validation_loss": loss}}}
        if digest == "one":
            repository.commit(metrics)
            continue
        repository.write(metrics)
        said, found = _found()
        assert [change.why for change in found.changes] == ["more than the tolerance of 10%"]
        assert said == WITHIN_NOISE.format(1, 11), "a loss alone judges nothing"


def test_what_cannot_be_compared_is_not_said_to_be_within_the_noise(repository: Repository) -> None:
    """Accuracies of other texts fall by half: no verdict speaks of them, whatever the rest does."""
    _predict(20)
    repository.commit(_metrics(full=0.9), _lose([1.8] * 100))
    _predict(50, examples=100)
    for nats, code, said in ((1.81, 0, WITHIN_NOISE.format(2, 9)), (2.4, 1, "worse: masked perplexity (valid) +4.97")):
        repository.write(_metrics(full=0.5), _lose([nats] * 100))
        assert _found(code=code)[0] == f"{said}; 1 figure that differs cannot be compared"


def test_without_predictions_data_that_differs_by_the_lock_file_is_not_compared(repository: Repository) -> None:
    """As in a fresh clone, after a run on one's own files: the committed figures are those of the sample."""
    _lock({"data/classification/sst2": "1", "data/text": "1"})
    repository.commit()
    metrics, perplexity = _metrics(full=0.5), {**PERPLEXITY, "valid": {"masked": 9.0, "unigram": 200.0}}
    metrics["sst2"]["baselines"] = {"tfidf": {"accuracy": 0.4}}
    repository.write(metrics, perplexity)
    assert _found(code=1)[0].startswith("worse: reviews accuracy (full) −30.0 points")
    _lock({"data/classification/sst2": "2", "data/text": "1"})
    said, found = _found(code=1)
    assert said.startswith("worse: masked perplexity (valid) +3.00")
    assert {change.why for change in found.changes if change.place.of == "sst2"} == {"not compared: the data differs"}
    Path("dvc.lock").unlink()
    assert _found(code=1)[0].startswith("worse: reviews accuracy (full) −30.0 points"), "nothing is known to differ"
    _lock({"data/classification/sst2": "2", "data/text": "2"})
    said, found = _found()
    assert list(found.notes) == [], "no interval is shown, so none leaves anything out"
    assert said == "not compared: 4 of 11 figures differ, and none of these can be compared"


def test_without_losses_perplexities_of_other_tokens_by_the_lock_file_are_not_compared(repository: Repository) -> None:
    """As in a fresh clone, after a run with a larger vocabulary: losses of the committed run are not there."""
    _lock({"models/tokenizer": "1", "models/tokens": "1"})
    repository.commit()
    repository.write(perplexity={**PERPLEXITY, "valid": {"masked": 9.0, "unigram": 240.0}})
    # Another training text has other tokens of the same tokenizer; another file of a tokenizer may make the same.
    for tokenizer, tokens in (("1", "2"), ("2", "1")):
        _lock({"models/tokenizer": tokenizer, "models/tokens": tokens})
        assert _found(code=1)[0].startswith("worse: masked perplexity (valid) +3.00")
    _lock({"models/tokenizer": "2", "models/tokens": "2"})
    said, found = _found()
    assert said == "not compared: 2 of 11 figures differ, and none of these can be compared"
    assert {change.why for change in found.changes} == {"not compared: the tokenizer differs"}


def test_what_a_run_that_is_no_longer_listed_has_read_is_ignored(repository: Repository) -> None:
    """DVC leaves the stage of lora in dvc.lock, after the listed ones, with the data as it was when it last ran."""

    def lock(digest: str) -> None:
        digests = {"finetune-sst2@sst2-full-1": digest, "finetune-sst2@sst2-lora-1": "1"}
        stages = {name: {"cmd": "x", "deps": [{"path": "data/classification/sst2", "hash": "md5", "md5": found}]}
                  for name, found in digests.items()}  # fmt: skip
        write_text(Path("dvc.lock"), json.dumps({"schema": "2.0", "stages": stages}))

    lock("1")
    repository.commit()
    repository.write(_metrics(full=0.5))
    assert _found(code=1)[0].startswith("worse: reviews accuracy (full) −30.0 points")
    lock("2")
    assert [change.why for change in _found()[1].changes] == ["not compared: the data differs"]


@pytest.mark.filterwarnings("ignore:Unclosed c:ResourceWarning")  # sessions that DVC leaves to the garbage collector
def test_predictions_that_no_remote_gives_are_done_without(repository: Repository) -> None:
    """A folder that was looked at before would be known to DVC."""
    _predict(40)
    with Path(".dvc/config").open("a") as file:
        file.write("    remote = gone\n['remote \"gone\"']\n    url = http://127.0.0.1:9/x\n")
    repository.commit()
    shutil.rmtree(".dvc/cache")
    _predict(32)
    repository.write(_metrics(full=0.84))
    assert _found()[1].changes[0].why == "within the tolerance of 5 points"
    gc.collect()  # here, where their warnings are ignored


def test_a_remote_whose_client_is_not_installed_is_done_without(repository: Repository) -> None:
    """As S3's in CI. DVC itself then reads nothing that git does not have, not even from its cache."""
    _predict(40)
    repository.commit()
    with Path(".dvc/config").open("a") as file:
        file.write("    remote = far\n['remote \"far\"']\n    url = oss://bucket/folder\n")
    repository.record()
    _predict(32)
    repository.write(_metrics(full=0.84))
    _, found = _found()
    (change,) = found.changes
    assert change.why.startswith("within the tolerance of 5 points; one seed, 95% interval +1.1 to +6.9 points")
    why = "oss is supported, but requires 'dvc-oss' to be installed"
    assert found.notes == [f"the remote far was not used: {why}"]


def test_settings_of_dvc_that_it_cannot_read_are_an_error(repository: Repository) -> None:
    """And not a project without results."""
    repository.commit()
    Path(".dvc/config").write_text("password: secret\n")
    said = refused("review", "--brief")
    assert said.startswith("error: DVC's configuration (.dvc/config or .dvc/config.local): ")
    assert "secret" not in said


@pytest.mark.parametrize("passages", [1, 20])
def test_answers_to_questions_are_paired(repository: Repository, passages: int) -> None:
    """Six of 60 questions are answered that were not; if they are those of two passages of 20, that is within noise."""
    repository.ask()
    Path("data/question_answering/squad").mkdir(parents=True)
    rows = [{"id": str(n), "question": "Who ?", "answers": [{"text": "Ada", "answer_start": 0}]} for n in range(60)]
    size = 60 // passages
    paragraphs = [{"context": f"Ada met {n}", "qas": rows[n * size : (n + 1) * size]} for n in range(passages)]
    document = {"data": [{"title": "T", "paragraphs": paragraphs}]}
    write_json(Path("data/question_answering/squad/dev.json"), document)

    def answer(right: int) -> dict[str, Any]:
        said = {"epoch": 1, "text": "Ada", "start": 0, "score": 1.0}
        rows = [{**said, "id": str(n), "null_score": 2.0 * (n >= right)} for n in range(60)]
        _write_run(Path("predictions/squad/full/1"), "question_answering", rows)
        return {"squad": {"baselines": {}, "full": dict.fromkeys(figures, 100 * right / 60)}}

    figures = ("f1", "exact_match", "HasAns_f1")
    repository.commit(answer(30))
    repository.write(answer(36))
    said, found = _found()
    assert said == (f"better: questions F1 (full) +10.0 points{BETTER}" if passages == 1 else WITHIN_NOISE.format(3, 7))
    error = (np.var([*[1] * 13, -1, *[0] * 110]) / 62) ** 0.5  # six and a half of 62 won, half of one lost
    reach = 2.001 * error if passages == 1 else 2.093 * (0.1 * 0.9 / 19) ** 0.5
    lowest = pytest.approx(10 - 100 * reach, abs=0.25)
    assert {change.place.figure: change.interval["low"] for change in found.changes} == dict.fromkeys(figures, lowest)


def _lose(nats: list[float], tokens: int = 20, size: int = 80, kind: str = "masked") -> dict[str, Any]:
    """Losses of a language model: nats per token by document, each of as many tokens and bytes."""
    losses, count = np.array(nats), np.full(len(nats), float(tokens))
    one = Losses(float(losses.mean()), losses * tokens, count), Sizes(count, count / 2, np.full(len(nats), float(size)))
    write_documents({"valid": {kind: one}})
    return {"valid": {kind: float(np.exp(losses.mean())), "unigram": 8.0 * tokens}}


@pytest.mark.parametrize(("kind", "drawn"), [("masked", "documents"), ("pseudo", "passages")])
def test_perplexities_are_paired_by_what_is_drawn(repository: Repository, kind: str, drawn: str) -> None:
    """Half of 100 of them fall from log 6 nats by 0.2: in resamples a binomial share of them."""
    six = math.log(6)
    repository.commit(perplexity=_lose([six] * 100, kind=kind))
    repository.write(perplexity=_lose([six, six - 0.2] * 50, kind=kind))
    (change,) = _found()[1].changes
    now = 6 * math.exp(-0.1)
    assert change.new - change.old == pytest.approx(now - 6)
    reach = 1.96 * now * 0.2 * (0.25 / 100) ** 0.5
    assert change.interval == pytest.approx({"low": now - 6 - reach, "high": now - 6 + reach}, abs=0.01)
    assert change.why.endswith(f"one seed, 95% interval −0.68 to −0.46 over {drawn}")


def test_a_perplexity_has_no_interval_if_one_side_scored_only_one_document(repository: Repository) -> None:
    """Other masks may leave two of the three documents without a scored token."""
    for nats, scored in ((1.8, [20.0, 0.0, 0.0]), (1.7, [20.0] * 3)):
        count, size = np.array(scored), np.full(3, 20.0)
        write_documents({"valid": {"masked": (Losses(nats, nats * count, count), Sizes(size, size / 2, size * 4))}})
        perplexity = {"valid": {"masked": math.exp(nats), "unigram": 160.0}}
        if nats == 1.8:
            repository.commit(perplexity=perplexity)
    repository.write(perplexity=perplexity)
    (change,) = _found()[1].changes
    assert (change.interval, change.why) == (None, "within the tolerance of 10%")


def test_a_difference_on_three_documents_is_as_unsure_as_students_t_says(repository: Repository) -> None:
    """By the normal distribution 0.2 ± 0.14 nats, by Student's of two degrees of freedom ± 0.37."""
    repository.commit(perplexity=_lose([2.0] * 3))
    repository.write(perplexity=_lose([1.95, 1.8, 1.65]))
    (change,) = _found()[1].changes
    assert change.interval["low"] < 0 < change.interval["high"]


def test_it_is_said_if_each_side_has_one_pretrained_model(repository: Repository) -> None:
    """Only where tasks are compared with them; the settings may have changed fine-tuning alone."""
    repository.commit(_metrics(full=0.9))
    for metrics, perplexity, count in [
        (_metrics(full=0.8), {"valid": {"masked": 9.0, "unigram": 160.0}}, 1),
        (_metrics(full=0.8), {"valid": {"causal": 9.0, "unigram": 160.0}}, 1),
        (_metrics(full=0.8), PERPLEXITY, 0),
        (_metrics(full=0.9), {"valid": {"masked": 9.0, "unigram": 160.0}}, 0),
    ]:
        repository.write(metrics, perplexity)
        assert len([note for note in _found(code=1)[1].notes if "seeds of pretraining" in note]) == count


def test_another_masking_rate_does_not_make_one_pretrained_model_two(repository: Repository) -> None:
    """Its perplexity differs, and so does what fine-tuning with other settings made of it."""
    _lock({"models/pretrained": "1"})
    repository.commit(_metrics(full=0.9))
    repository.write(_metrics(full=0.8), {"valid": {"masked": 9.0, "unigram": 160.0}})
    repository.set("perplexity.mask_rate", 0.3)
    for digest, count in (("1", 0), ("2", 1)):
        _lock({"models/pretrained": digest})
        assert len([note for note in _found(code=1)[1].notes if "seeds of pretraining" in note]) == count


def test_a_pseudo_perplexity_of_other_passages_is_not_compared(repository: Repository) -> None:
    """Their tokens are not taken for those of another tokenizer, as the masked losses are of the same text."""

    def lose(nats: float, length: float) -> dict[str, Any]:
        found = {}
        for measure, tokens in (("masked", 20.0), ("pseudo", length)):
            count = np.full(100, tokens)
            found[measure] = Losses(nats, nats * count, count), Sizes(count, count / 2, count * 4)
        write_documents({"valid": found})
        return {"valid": {"masked": math.exp(nats), "pseudo": math.exp(nats), "unigram": 160.0}}

    repository.commit(perplexity=lose(1.8, 20.0))
    repository.write(perplexity=lose(2.4, 25.0))
    masked, pseudo = _found(code=1)[1].changes
    assert masked.counts
    assert "tokens are others" not in masked.why
    assert (pseudo.counts, pseudo.why) == (False, "not compared: the passages differ")


def test_perplexities_of_other_tokens_are_compared_by_byte(repository: Repository) -> None:
    """The same text in more tokens, each of which costs less."""
    six = math.log(6)
    repository.commit(perplexity=_lose([six] * 100))
    within, worse = "within noise: 2 of 9 figures differ", "worse: masked perplexity (valid) +2.10"
    for more, begins in ((0.0, within), (0.05, within), (0.3, worse)):
        repository.write(perplexity=_lose([(six + more) * 20 / 21] * 100, 21))
        fails = begins == worse
        said, found = _found(code=int(fails))
        model, unigram = found.changes
        assert (model.old, model.new) == pytest.approx((6, 6 * math.exp(more)))
        assert (model.counts, found.has_failed) == (fails, fails)
        assert model.direction == ("worse" if more else "other"), "the same model, in more tokens"
        assert model.why.startswith("in the base's tokens, as the tokenizers differ; ")
        assert "one seed, 95% interval" in model.why
        assert (unigram.counts, unigram.why) == (False, "not compared: the tokenizer differs")
        assert said.startswith(begins)


def test_a_unigram_model_of_other_tokens_is_not_compared_beside_a_model_of_another_kind(repository: Repository) -> None:
    """A masked and a causal model have no perplexity in common, but are measured on the same documents."""
    repository.commit(perplexity=_lose([1.8] * 100))
    for size, why in ((80, "the tokenizer differs"), (84, "the text differs")):
        repository.write(perplexity=_lose([1.8] * 100, tokens=30, size=size, kind="causal"))
        assert [(change.counts, change.why) for change in _found()[1].changes] == [(False, f"not compared: {why}")]


def test_perplexities_of_different_things_are_not_compared(repository: Repository) -> None:
    """Perplexities of another text, or with another masking rate."""
    repository.commit(perplexity=_lose([1.8] * 100))
    for size, rate, why in ((84, 0.15, "the text differs"), (80, 0.3, "perplexity.mask_rate differs")):
        repository.set("perplexity.mask_rate", rate)
        repository.write(perplexity=_lose([2.4] * 100, size=size))
        said, found = _found()
        assert said.startswith("not compared: ")
        assert [(change.counts, change.why) for change in found.changes] == [(False, f"not compared: {why}")]
        assert [change.direction for change in found.changes] == ["other"]


def test_the_same_text_of_which_another_tokenizer_knows_more_is_not_said_to_differ(repository: Repository) -> None:
    """Words that a tokenizer does not know count neither in the tokens nor in the bytes."""
    _lock({"data/text": "one", "models/tokenizer": "one"})
    repository.commit(perplexity=_lose([1.8] * 100))
    repository.write(perplexity=_lose([2.4] * 100, size=84))
    for text, why in (("one", "different words are unknown to the two tokenizers"), ("two", "the text differs")):
        _lock({"data/text": text, "models/tokenizer": "two"})
        assert [change.why for change in _found()[1].changes] == [f"not compared: {why}"]


def test_perplexities_of_a_causal_model_with_another_stride_are_not_compared(repository: Repository) -> None:
    """With a longer stride fewer tokens are read before each, so the same model has a higher perplexity."""
    repository.commit(perplexity=_lose([1.8] * 100, kind="causal"))
    repository.write(perplexity=_lose([2.4] * 100, kind="causal"))
    repository.set("perplexity.stride", 32)
    assert [change.why for change in _found()[1].changes] == ["not compared: perplexity.stride differs"]
    repository.set("perplexity.stride", 64)  # the default, which the base leaves out
    assert [change.counts for change in _found(code=1)[1].changes] == [True]


@pytest.mark.parametrize("kind", ["masked", "causal", "pseudo"])
def test_in_blocks_of_another_length_only_passages_that_no_block_cuts_are_compared(
    repository: Repository, kind: str
) -> None:
    """In shorter blocks fewer tokens are read beside each, so the same model has a higher perplexity."""
    repository.commit(perplexity=_lose([1.8] * 100, kind=kind))
    repository.write(perplexity=_lose([2.4] * 100, kind=kind))
    repository.set("pretrain.block_size", 64)
    (change,) = _found(code=int(kind == "pseudo"))[1].changes
    assert change.counts == (kind == "pseudo")
    assert change.counts or change.why == "not compared: pretrain.block_size differs"


def test_without_losses_pseudo_perplexities_of_other_passages_are_not_compared(repository: Repository) -> None:
    """As in a fresh clone: the sizes of the base's passages are not there, but its settings are."""
    repository.commit(perplexity={"valid": {"pseudo": 6.0, "unigram": 160.0}})
    repository.write(perplexity={"valid": {"pseudo": 9.0, "unigram": 160.0}})
    assert _found(code=1)[0] == "worse: pseudo perplexity (valid) +3.00"
    for key, other in (("pretrain.block_size", 64), ("perplexity.seed", 1), ("perplexity.pseudo_passages", 8)):
        repository.set(key, other)
        assert [change.why for change in _found()[1].changes] == [f"not compared: {key} differs"]


def test_what_only_one_has_is_named_and_no_flag_is_resolved_by_it(repository: Repository) -> None:
    """A figure of a model, and a model that was flagged."""
    one_class = {"flags": {"scratch": {"one_class_only": 1}}}
    repository.commit({"sst2": METRICS["sst2"] | one_class})
    fewer = {"sst2": {"baselines": METRICS["sst2"]["baselines"], "full": {"accuracy": ACCURACY["accuracy"]}}}
    repository.write(fewer)
    said, found = _found()
    assert said.startswith("no change: all ")
    assert said.endswith(" figures that both have are the same")
    assert found.notes == [f"gone: {', '.join(f'sst2 full {name}' for name in sorted(ACCURACY) if name != 'accuracy')}"
                           ", sst2 scratch"]  # fmt: skip
    assert found.flags == []


def _scores(std: float, half: float | None) -> None:
    """scores.json of three seeds, perhaps with half the width of the interval over examples; over seeds it is wider."""
    seeds = {str(seed): {"epoch": 1, "figures": {}, "intervals": {}, "before": {}} for seed in (1, 2, 3)}
    ends = {"low": 0.6, "high": 0.95, "low_examples": 0.8 - half, "high_examples": 0.8 + half} if half else {}
    method = method_of({}, seeds, {"accuracy": ends} if half else {}, {"accuracy": std})
    task = {"headlines": ["accuracy"], "legend": {}, "baselines": {}, "methods": {"full": method}, "comparisons": []}
    write_json(Path("reports/scores.json"), {"sst2": task})


@pytest.mark.parametrize(
    ("has_base_scores", "halves"), [(True, (None, None)), (True, (0.04, 0.03)), (False, (None, None))]
)
def test_without_predictions_the_spread_over_seeds_decides(
    repository: Repository, has_base_scores: bool, halves: tuple[float | None, float | None]
) -> None:
    """Errors √(0.01²/3 + 0.01²/3), t with 4 degrees of freedom; if the base has one seed √(0.01²/3 + 0.01²), with 2.

    Examples are taken to be the same, whatever the intervals over examples.
    """
    if has_base_scores:
        _scores(0.01, halves[0])
    repository.commit()
    _scores(0.01, halves[1])
    repository.write(_metrics(full=0.83))
    (change,) = _found()[1].changes
    reach = 2.776 * 0.01 * (2 / 3) ** 0.5 if has_base_scores else 4.303 * 0.01 * (4 / 3) ** 0.5
    assert change.interval == pytest.approx({"low": 0.03 - reach, "high": 0.03 + reach}, abs=1e-4)
    assert change.counts == has_base_scores
    assert change.why.endswith(" points, by the spread over seeds")


def test_a_base_without_metrics_is_not_compared(repository: Repository) -> None:
    repository.record()  # settings alone
    for metrics in ({}, [], {"else": {"a": 1}}, {"news": {"baselines": {}, "full": ACCURACY}}):
        repository.write()
        assert _found()[0] == "not compared: the base has no metrics that this version of Retrace reads"
        repository.commit(metrics, {})
    repository.write()
    assert _found()[0] == "not compared: the two have no figure in common"


def test_figures_that_cannot_be_read_are_not_just_new_or_gone(repository: Repository) -> None:
    repository.commit({"else": {"a": 1}})  # of another layout; the perplexities are compared
    repository.write()
    said, found = _found()
    assert said == "no change: all 4 figures that both have are the same"
    cannot = "this version of Retrace cannot read reports/metrics.json"
    assert found.notes == [f"{cannot} of the base", "new: sst2 full, sst2 scratch, sst2 tfidf"]
    repository.commit()
    Path("reports/metrics.json").write_text("<<<<<<< HEAD\n")
    assert _found()[1].notes == [f"{cannot} here", "gone: sst2 full, sst2 scratch, sst2 tfidf"]
    Path("reports/perplexity.json").unlink()
    assert _found()[0] == "not compared: there are no metrics here that this version of Retrace reads; run dvc repro"


def test_flags_are_not_new_where_those_of_the_base_cannot_be_read(repository: Repository) -> None:
    repository.commit({"else": {"a": 1}})  # of another layout
    flagged = {"sst2": METRICS["sst2"] | {"flags": {"data": {"dev_in_training": 1}}}}
    repository.write(flagged)
    said, found = _found()
    assert said == "no change: all 4 figures that both have are the same"
    assert found.flags == []
    repository.write()
    Path("reports/perplexity.json").write_text("<<<<<<< HEAD\n")  # which has the flags of the language model alone
    repository.record()
    repository.write(flagged)
    said, found = _found()
    assert said.startswith("no change: all 7 figures that both have are the same; but the data has new flags: ")
    assert [flag.name for flag in found.flags] == ["sst2 data dev_in_training"]


def test_a_base_without_dvc_and_settings_is_not_compared(repository: Repository) -> None:
    Path("README.md").write_text("nothing else yet")
    first = repository.record("README.md")
    repository.commit()
    said, found = _found("--base", first)
    assert said.startswith("not compared: ")
    assert found.params == []


@pytest.mark.usefixtures("repository")
def test_what_is_only_absent_is_not_out_of_date(monkeypatch) -> None:
    """As in a clone without DVC's cache, where a folder of data may have no file but .gitkeep."""
    write_text(Path("data/classification/.gitkeep"), "")
    write_text(Path("data/own/mine/dev.jsonl"), "")
    for status, stale in (
        ({"made": [{"changed outs": {"models": "not in cache"}}, {"changed deps": {"data/own": "deleted"}}]}, []),
        ({"made": [{"changed deps": {"params.yaml": {"lr": "modified"}}}]}, ["made"]),
        ({"made": [{"changed deps": {"data/own": "deleted", "stages/x.py": "modified"}}]}, ["made"]),
        ({"made": ["changed command"]}, ["made"]),
        ({"data/own/mine.dvc": [{"changed outs": {"data/own/mine": "modified"}}]}, []),
        ({"made": [{"changed deps": {"data/classification": "modified", "data/text": "deleted"}}]}, []),
        ({"made": [{"changed deps": {"data/own": "modified"}}]}, ["made"]),
    ):
        monkeypatch.setattr(Repo, "status", lambda _, found=status: found)
        assert Revision().stale_stages == stale, status


def test_what_a_stage_makes_at_the_moment_is_out_of_date(repository: Repository) -> None:
    Path("dvc.yaml").write_text("stages: {make: {cmd: make, params: [lr], outs: [made]}}")
    repository.commit()
    writer = {"pid": os.getpid(), "cmd": "dvc repro"}
    write_json(Path(".dvc/tmp/rwlock"), {"write": {str(Path("made").absolute()): writer}})
    said, found = _found()
    assert said.startswith("out of date, as dvc repro has not run since a change; before it: no change: all 11 figures")
    assert found.notes == ["dvc repro has not run since something changed: a stage that runs now"]


def test_without_a_repository_nothing_is_said_of_a_base(here: Path) -> None:
    copy_settings(here)
    (here / "dvc.yaml").touch()
    (here / ".dvc").mkdir()
    assert "not a git repository" in refused("review")


def test_other_methods_and_stages_out_of_date_are_named_and_the_rest_is_compared(repository: Repository) -> None:
    Path("dvc.yaml").write_text("stages: {make: {cmd: make, params: [lr]}}")
    repository.commit()
    repository.write({"sst2": {"baselines": {}, "full": ACCURACY, "lora": ACCURACY}})
    said, found = _found()
    assert said.startswith("out of date, as dvc repro has not run since a change; before it: no change: all 7 figures")
    stale = "dvc repro has not run since something changed: make"
    assert found.notes == ["gone: sst2 scratch, sst2 tfidf", "new: sst2 lora", stale]


def test_flags_settings_time_and_memory_are_listed(repository: Repository) -> None:
    """A flag on more seeds is neither new nor resolved; tasks and methods are named as in the settings."""
    write_json(Path("reports/runs/pretrain.json"), RUN.to_json())
    write_json(Path("reports/runs/sst2/full/1.json"), RUN.to_json())
    news: dict[str, Any] = {"baselines": {}, "low_rank": ACCURACY}
    repository.set("lr", 0.25)
    before, after = (METRICS["sst2"] | {"flags": {"full": {"one_class_only": seeds}}} for seeds in (1, 2))
    repository.commit({"sst2": before, "ag_news": news})
    repository.write({"sst2": after, "ag_news": news | {"flags": {"low_rank": {"one_class_only": 1}}}})
    repository.set("lr", 0.5)
    repository.set("seeds", None)
    repository.set("sst2.optimizer", {"kind": "| <b>@octocat</b> [x](y) \x1b[31m\u202e"})
    slower = RUN.to_json() | {"seconds": RUN.seconds * 1.3, "peak_memory_mib": round(RUN.peak_memory_mib * 1.1)}
    write_json(Path("reports/runs/pretrain.json"), slower)
    said = _review()
    assert [line for line in said.splitlines() if "flags" in line] == [
        r"New health flags: ag\_news low\_rank one class only.",  # Markdown, so with escapes
        "Health flags on more or fewer seeds: sst2 full one class only (was 1, is 2).",
    ]
    assert "| lr | 0.25 | 0.5 |\n" in said
    assert "| seeds | – | null |\n" in said
    assert "| pretrain: time, s | 46.3 | 60.19 |\n" in said
    assert "peak" not in said
    assert r"\| \<b\>@" + "\u200b" + r"octocat\</b\> \[x\](y) " in said
    assert not {"\x1b", "\u202e"} & {*said}


def test_data_that_leaks_is_in_the_verdict(repository: Repository) -> None:
    """Better figures of a validation set that models were trained on are no progress."""
    repository.commit()
    repository.write({"sst2": METRICS["sst2"] | {"flags": {"data": {"dev_in_training": 1}}}})
    said, found = _found()
    assert said.startswith("no change: all ")
    assert said.endswith("; but the data has new flags: sst2 data dev in training")
    assert [(flag.name, flag.old, flag.new) for flag in found.flags] == [("sst2 data dev_in_training", 0, 1)]
    repository.commit({"sst2": METRICS["sst2"] | {"flags": {"data": {"dev_in_training": 1}}}})
    repository.write()
    said = _review()
    assert "Resolved health flags: sst2 data dev in training.\n" in said
    assert said.startswith("**no change: all 11 figures are the same.**\n"), "a flag that is gone is not new"


def test_time_is_shown_from_a_fifth_more_of_what_it_was_before(repository: Repository) -> None:
    """What was not measured, or took no time, has no share that it could differ by."""
    path = Path("reports/runs/pretrain.json")
    for before, now, shown in ((100.0, 120.0, []), (100.0, 123.0, [(100.0, 123.0)]), (100.0, 77.0, [(100.0, 77.0)]),
                               (0.0, 5.0, []), (None, 5.0, [])):  # fmt: skip
        write_json(path, RUN.model_copy(update={"evaluation_seconds": before}).to_json())
        repository.commit()
        write_json(path, RUN.model_copy(update={"evaluation_seconds": now}).to_json())
        assert [(moved.old, moved.new) for moved in _found()[1].runs] == shown


def test_baselines_are_neither_better_nor_worse_and_are_named_as_in_the_report(repository: Repository) -> None:
    """A unigram model's perplexity is 50% higher, and TF-IDF's accuracy lower by 20 points."""
    repository.commit()
    metrics = {"sst2": METRICS["sst2"] | {"baselines": {"tfidf": {"accuracy": 0.5}}}}
    repository.write(metrics, PERPLEXITY | {"valid": {"masked": 6.0, "unigram": 240.0}})
    said, found = _found()
    assert said == WITHIN_NOISE.format(2, 11)
    assert [(of.place.who, of.counts, of.direction) for of in found.changes] == [
        ("tfidf", True, "other"), ("unigram", True, "other")
    ]  # fmt: skip
    page = _review()
    assert "| Reviews, TF-IDF | accuracy | – | 70.0 | 50.0 | −20.0 points |" in page
    assert "| valid text, unigram baseline | perplexity | – | 160.00 | 240.00 | +80.00 |" in page


def test_a_verdict_names_the_largest_shares_first_and_counts_models_not_figures(repository: Repository) -> None:
    """Accuracy and F1 of five methods change, by 6 to 10 points; and perplexity, by 1 of 6 before 12 of 100."""
    methods, figures = ("full", "scratch", "lora", "adapter", "frozen"), ("accuracy", "f1_macro")
    before, after = (
        {"sst2": {"baselines": {}} | {method: dict.fromkeys(figures, 0.5 + (6 + i) / 100 * gain)
                                      for i, method in enumerate(methods)}}
        for gain in (0, 1)
    )  # fmt: skip
    repository.commit(before)
    repository.write(after)
    named = ", ".join(f"reviews accuracy ({method}) +{gain}.0 points"
                      for method, gain in (("frozen", 10), ("adapter", 9), ("lora", 8)))  # fmt: skip
    assert _found()[0] == f"better: {named}, 2 more{BETTER}"
    repository.commit(before, {"valid": {"masked": 6.0, "pseudo": 100.0}})
    repository.write(before, {"valid": {"masked": 5.0, "pseudo": 88.0}})
    assert _found()[0] == f"better: masked perplexity (valid) −1.00, pseudo perplexity (valid) −12.00{BETTER}"


def test_the_base_is_where_the_branch_left_the_default_branch(repository: Repository) -> None:
    left = repository.commit()
    repository.git("switch", "-qc", "change")
    repository.commit(_metrics(full=0.9))
    repository.git("switch", "-q", "main")
    repository.commit(_metrics(full=0.1))
    assert default_base() == ("HEAD", "the last commit")
    repository.git("switch", "-q", "change")
    assert default_base() == (left, "where this branch left main")
    assert _found()[1].changes[0].old == 0.8
    assert _found("--base", "main")[1].changes[0].old == 0.1
    repository.git("switch", "-q", "--detach", "change")
    assert default_base()[0] == left


def test_the_base_may_be_a_commit_of_the_default_branch_that_was_not_pushed(
    repository: Repository, tmp_path: Path, monkeypatch
) -> None:
    """As in docs/tutorial.md, where a clone's own run is committed as the baseline."""
    pushed = repository.commit()
    repository.git("clone", "-q", str(Path.cwd()), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    own = repository.commit(_metrics(full=0.79))
    repository.git("switch", "-qc", "change")
    repository.write(_metrics(full=0.9))
    assert default_base() == (own, "where this branch left main")
    assert _found()[1].changes[0].old == 0.79
    repository.git("branch", "-q", "--force", "main", pushed)  # behind origin's, as after a fetch
    repository.git("update-ref", "refs/remotes/origin/main", own)
    assert default_base()[0] == own
    repository.git("branch", "-qD", "main")
    assert default_base()[0] == own


def test_the_project_may_be_in_a_folder_of_its_repository(repository: Repository) -> None:
    """DVC finds what git has and what its own cache has, of the base as of the working tree."""
    Path(".git").rename("../.git")
    _gain(repository)
    said, found = _found()
    assert said == f"better: reviews accuracy (full) +2.0 points{BETTER}"
    assert [change.why for change in found.changes] == [PAIRED]


def test_a_shallow_clone_is_not_compared_with_its_own_commit_but_with_what_is_fetched(
    repository: Repository, tmp_path: Path, monkeypatch
) -> None:
    """What git clone --depth=1 --branch fetches, and keeps a name for, is that branch alone."""
    repository.commit()
    repository.git("switch", "-qc", "change")
    repository.commit(_metrics(full=0.9))
    repository.commit(_metrics(full=0.9))
    repository.git("switch", "-q", "main")
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth=1", "--branch", "change", f"file://{Path.cwd()}", str(clone))
    monkeypatch.chdir(clone)
    how = "this clone is shallow; git fetch --depth=1 origin REVISION, then --base FETCH_HEAD"
    assert refused("review") == f"error: --base: the default branch is not here: {how}\n"
    said = f"error: --base: 'HEAD~2' is not a revision of this repository: {how}\n"
    assert refused("review", "--base", "HEAD~2") == said
    better = f"better: reviews accuracy (full) +10.0 points{BETTER}"
    repository.git("fetch", "-q", "--depth=1", "origin", "main")
    assert _found("--base", "FETCH_HEAD")[0] == better
    repository.git("fetch", "-q", "--depth=1", "origin", "+refs/heads/main:refs/remotes/origin/main")
    assert default_base() == ("origin/main", "origin/main, as this clone does not know where the branch left it")
    assert _found()[0] == better


def test_a_base_that_is_no_commit_is_an_error_of_one_line(repository: Repository) -> None:
    repository.commit()
    for base in ("nowhere", "--upload-pack=x", "HEAD:params.yaml"):
        assert refused("review", f"--base={base}") == f"error: --base: {base!r} is not a revision of this repository\n"


def test_seeds_that_are_all_the_same_leave_the_tolerance(repository: Repository) -> None:
    """Else no interval would be as narrow as theirs, and every difference count."""
    _scores(0.0, 0.04)
    repository.commit()
    _scores(0.0, 0.04)
    repository.write(_metrics(full=0.83))
    (change,) = _found()[1].changes
    assert (change.counts, change.why) == (False, "within the tolerance of 5 points")


def test_the_loss_on_a_test_set_is_not_called_validation_loss(repository: Repository) -> None:
    def of(loss: float) -> dict[str, Any]:
        keys = {"sst2": "validation_loss", "sst2-test": "loss"}
        return {name: {"baselines": {}, "full": {"accuracy": 0.8, key: loss}} for name, key in keys.items()}

    repository.commit(of(0.5))
    repository.write(of(0.9))
    assert [change.what.name for change in _found()[1].changes] == ["validation loss", "loss"]


def test_what_got_worse_within_the_tolerance_is_no_regression(repository: Repository) -> None:
    """Beyond the noise of paired seeds, but by 2 points of 5; and it is not said to be better."""
    repository.set("finetune.seeds", [1, 2, 3])
    _predict(16, 36, 56)
    repository.commit(_metrics(full=0.82))
    _predict(20, 40, 60)
    repository.write(_metrics(full=0.8))
    said, found = _found()
    assert said == "worse: reviews accuracy (full) −2.0 points"
    assert [(of.counts, of.is_far, of.direction) for of in found.changes] == [(True, False, "worse")]
    assert not found.has_failed


def test_a_difference_beyond_the_tolerance_that_seeds_explain_is_no_regression(repository: Repository) -> None:
    """Six points less, with seeds that vary as much; the base, whose scores are not known, has three seeds too."""
    repository.set("finetune.seeds", [1, 2, 3])
    repository.commit()
    _scores(0.06, 0.04)
    repository.write(_metrics(full=0.74))
    (change,) = _found()[1].changes
    reach = 4.302653 * 0.06 * (2 / 3) ** 0.5
    assert change.interval == pytest.approx({"low": -0.06 - reach, "high": -0.06 + reach}, abs=1e-4)
    assert (change.counts, change.is_far, change.is_regression) == (False, True, False)


def test_a_setting_in_the_wrong_file_is_not_the_revisions(repository: Repository) -> None:
    repository.commit()
    wanted, data = Revision().params, Path("data/params.yaml")
    data.write_text(f"{data.read_text()}\nlr: 3\n")
    assert Revision().params == wanted


def test_the_base_may_be_an_experiment_of_dvc(repository: Repository) -> None:
    repository.commit()
    commit = git("rev-parse", "HEAD")
    git("update-ref", f"refs/exps/{commit[:2]}/{commit[2:]}/slower", commit)
    assert commit_of("slower") == commit
    assert "'faster' is not a revision" in refused("review", "--base", "faster")
    assert "'sl*' is not a revision" in refused("review", "--base", "sl*"), "a pattern names no experiment"
