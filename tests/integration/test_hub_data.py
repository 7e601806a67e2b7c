"""Data from the hub: the real clients in processes of their own, against a hub on loopback."""

import json
import re
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrace.core.paths import questions_path
from retrace.datasets.examples import read_examples, read_task
from retrace.datasets.source import Source
from retrace.datasets.squad import read_questions
from retrace.datasets.text import PARTS, read_documents, text_path
from tests.hub import READ_TOKEN, STRANGER_TOKEN, Cut, LocalHub, Silence, Status
from tests.hub.content import add_datasets
from tests.hub.content.datasets import GLUE, SQUAD, WIKITEXT
from tests.hub.content.studies import add_study, read_preset
from tests.toy import ROOT, Project, holding

DATA = r"\.parquet"


@pytest.fixture
def user(project: Project, hub: LocalHub, tmp_path: Path) -> Project:
    """The project of someone who knows the local hub alone, with its data sets in params.yaml."""
    pins = {name: f"{name}@{commit}" for name, commit in add_datasets(hub).items()}
    reviews = {"repository": pins[GLUE], "config": "sst2", "dev": "validation", "text": "sentence"}
    project.set_all({
        "hub.text.repository": pins[WIKITEXT], "hub.sst2.repository": pins[GLUE], "hub.squad.repository": pins[SQUAD],
        "hub.classification": {"reviews": reviews},
    })  # fmt: skip
    return replace(project, variables=hub.environment(tmp_path / "home"))


def _fetch(user: Project, code: int = 0) -> str:
    """Fetch one small data set; where that fails, the line that says why."""
    said = user.stage("sources.hub_classification", "--task", "reviews", code=code).stderr
    assert said.count("\n") == 1 or not code
    return said


def _bytes(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_source_is_what_the_sample_is_and_is_fetched_once(user: Project, hub: LocalHub, tmp_path: Path) -> None:
    """Only the configs asked for are fetched: real cards list the large WikiText and GLUE's other tasks first."""
    user.stage("sources.sample")
    sample = Source.within(Path(shutil.copytree(user.folder / "data", tmp_path / "sample")))
    said = user.stage("sources.hub", code=2).stderr
    assert said == "error: params.yaml: data: sample is not allowed here; expected hub\n"
    user.set("data", "hub")
    user.stage("sources.hub")
    fetched = {"/".join(seen.path.split("/")[-2:]) for seen in hub.requests if ".parquet" in seen.path}
    assert Counter(path.split("/")[0] for path in fetched) == {"wikitext-2-raw-v1": 3, "sst2": 3, "squad_v2": 2}
    source = Source.within(user.folder / "data")
    assert read_task(source.sst2) == read_task(sample.sst2)
    for part in ("train", "dev"):
        ours, theirs = (read_questions(questions_path(of.squad, part)) for of in (source, sample))
        assert ours == theirs
    for name in ("text", "sst2", "squad"):
        card, theirs = (json.loads((getattr(of, name) / "card.json").read_text()) for of in (source, sample))
        assert card.pop("origin")["repository"] == user.params()["hub"][name]["repository"]
        assert card == theirs

    before, asked = _bytes(user.folder / "data"), len(hub.requests)
    user.stage("sources.hub")
    shutil.rmtree(tmp_path / "home/retrace")  # the rows; what was fetched is there still
    user.with_variables(HF_HUB_OFFLINE="1").stage("sources.hub")
    assert (_bytes(user.folder / "data"), len(hub.requests)) == (before, asked)


def test_the_lines_in_the_docs_write_wikitext_as_files_of_ones_own(user: Project) -> None:
    """Those of the sample, of which the hub's are made."""
    (lines,) = re.findall(r"(?s)```python\n(.*?)```", (ROOT / "docs/data.md").read_text())
    loopback = "import datasets\ndatasets.config.USE_PARQUET_EXPORT = False  # which has a host of its own\n"
    user.run(sys.executable, "-c", loopback + lines)
    user.stage("sources.sample")
    for part in PARTS:
        own, sample = (text_path(user.folder / "data" / name, part) for name in ("own/wikitext-2", "text"))
        assert list(read_documents(own)) == list(read_documents(sample))


def test_a_study_that_no_test_runs_pins_what_there_is(user: Project, hub: LocalHub) -> None:
    """WikiText-103 and SQuAD 1.1; test_studies.py fetches what the others pin."""
    study = ROOT / "studies/one-gpu"
    add_study(hub, study)
    user.set_all({"data": "hub", "hub": read_preset(study / "params.yaml")["hub"]})
    user.stage("sources.hub")
    configs = {Path(seen.path).parent.name for seen in hub.requests if ".parquet" in seen.path}
    assert configs == {"wikitext-103-raw-v1", "sst2", "plain_text"}


def test_streaming_reads_the_first_rows_without_keeping_files(user: Project, tmp_path: Path) -> None:
    key, folder = "hub.classification.reviews", user.folder / "data/classification/reviews"
    user.set(f"{key}.stream", 7)
    _fetch(user)
    assert len(read_examples(folder, "train")) == 7
    assert not list((tmp_path / "home").rglob("*.parquet"))
    user.set_all({f"{key}.stream": None, f"{key}.train": "train[:30]", f"{key}.dev": None, f"{key}.split": 0.8})
    _fetch(user)  # a part of a split, and dev drawn from it
    assert [len(read_examples(folder, part)) for part in ("train", "dev")] == [24, 6]


def test_no_other_commit_is_read_where_the_pinned_one_cannot_be_fetched(user: Project, hub: LocalHub) -> None:
    """`datasets` falls back on what it has in its own cache, whichever commit that is of."""
    old = hub.add("dataset", "own/rows", {"train.csv": b"text,label\nold,0\nolder,1\n"})
    new = hub.add("dataset", "own/rows", {"train.csv": b"text,label\nnew,0\nnewer,1\n"})
    user.run(sys.executable, "-c", f"import datasets; datasets.load_dataset('own/rows', revision='{old}')")
    rows = {"repository": f"own/rows@{new}", "dev": None, "split": 0.5, "stream": 2}
    user.set("hub.classification", {"reviews": rows})
    for variables in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        assert f"own/rows@{new}: Couldn't reach 'own/rows'" in _fetch(user.with_variables(**variables), code=2)
    _fetch(user)
    folder = user.folder / "data/classification/reviews"
    assert {each.text for part in ("train", "dev") for each in read_examples(folder, part)} == {"new", "newer"}


def test_a_question_that_is_wrong_is_named_with_its_split(user: Project, hub: LocalHub) -> None:
    answers = {"text": ["Ada"], "answer_start": [1]}
    asked = {"id": "q", "title": "T", "context": "Ada ran.", "question": "Who?", "answers": answers}
    rows = json.dumps(asked).encode()
    commit = hub.add("dataset", "own/asked", {"train.jsonl": rows, "validation.jsonl": rows})
    user.set_all({"data": "hub", "hub.squad": {"repository": f"own/asked@{commit}"}})
    said = f"error: own/asked@{commit} default train: question q: the answer 'Ada' is not at character 1\n"
    assert user.stage("sources.hub", code=2).stderr == said


def test_the_card_says_the_licence(user: Project, hub: LocalHub) -> None:
    files = hub.files("dataset", SQUAD)
    card = files["README.md"].replace(b"license: cc-by-sa-4.0\n", b"", 1)
    user.set("hub.squad.repository", f"{SQUAD}@{hub.add('dataset', SQUAD, {**files, 'README.md': card})}")
    user.set("data", "hub")
    for stream in (None, 1000):
        user.set("hub.text.stream", stream)
        user.stage("sources.hub")
        cards = [user.folder / "data" / name / "card.json" for name in ("text", "question_answering/squad")]
        licences = [json.loads(card.read_text())["origin"]["licence"] for card in cards]
        assert licences == ["cc-by-sa-3.0, gfdl", None]


def test_transient_faults_are_retried(user: Project, hub: LocalHub) -> None:
    """All of them in one fetch: of a list of files, then of a file."""
    for pattern, times, fault in (
        ("tree", 2, Status(500)),
        ("tree", 1, Cut("request")),
        (DATA, 1, Status(429, retry_after=1)),
        (DATA, 1, Silence(3)),
        (DATA, 2, Cut("body")),
    ):
        hub.fail(pattern, times, fault)
    _fetch(user.with_variables(HF_HUB_DOWNLOAD_TIMEOUT="1", HF_HUB_ETAG_TIMEOUT="1"))
    assert hub.faults.left == 0


@pytest.mark.parametrize(
    ("fault", "said"),
    [(Status(503), "answered 503 to"), (Status(403), "refused a request without HF_TOKEN (403")],
    ids=str,
)
def test_lasting_faults_are_one_line(user: Project, hub: LocalHub, fault: Any, said: str) -> None:
    hub.fail(".", 1000, fault)
    line = _fetch(user, code=2)
    assert said in line
    assert line.startswith(f"error: {user.params()['hub']['sst2']['repository']}: ")


def test_missing_private_and_gated_repositories(user: Project, hub: LocalHub) -> None:
    nowhere = f"nyu-mll/none@{'0' * 40}"
    commit = hub.add("dataset", "own/gated", hub.files("dataset", GLUE), gated=True)
    for pin, said in (
        (nowhere, f"{nowhere}: no such repository at"),
        (f"{GLUE}@{'0' * 40}", "the repository has no such commit"),
        (f"own/gated@{commit}", "the repository is gated; accept its terms at"),
    ):
        user.set("hub.classification.reviews.repository", pin)
        assert said in _fetch(user, code=2)
    asked = Counter((seen.method, seen.path) for seen in hub.requests)
    assert set(asked.values()) == {1}, "refusals are not tried again"
    line = _fetch(user.with_variables(HF_TOKEN=STRANGER_TOKEN), code=2)
    assert ("gated" in line, STRANGER_TOKEN in line) == (True, False)
    _fetch(user.with_variables(HF_TOKEN=READ_TOKEN))
    assert holding(user.folder, READ_TOKEN) == []


@pytest.mark.parametrize("stream", [None, 7])
def test_a_token_of_the_machine_is_not_sent(user: Project, hub: LocalHub, tmp_path: Path, stream: int | None) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/token").write_text(READ_TOKEN)
    user.set("hub.classification.reviews.stream", stream)
    _fetch(user)
    assert not any(seen.token for seen in hub.requests)


def test_what_another_client_fetched_in_part_is_fetched_whole(user: Project) -> None:
    repository, commit = user.params()["hub"]["sst2"]["repository"].split("@")
    one = f"hf_hub_download('{repository}', 'README.md', repo_type='dataset', revision='{commit}')"
    user.run(sys.executable, "-c", f"from huggingface_hub import hf_hub_download; {one}")
    assert "not fetched before" in _fetch(user.with_variables(HF_HUB_OFFLINE="1"), code=2)
    _fetch(user)


def test_without_network_the_line_says_so(user: Project) -> None:
    assert "HF_HUB_OFFLINE forbids" in _fetch(user.with_variables(HF_HUB_OFFLINE="1"), code=2)
    assert "cannot be reached (ConnectError)" in _fetch(user.with_variables(HF_ENDPOINT="http://127.0.0.1:9"), code=2)
    assert "Using SOCKS proxy, but" in _fetch(user.with_variables(ALL_PROXY="socks5://127.0.0.1:9"), code=2)
    odd = user.with_variables(HTTPS_PROXY="::", HTTP_PROXY="::")
    assert "HF_ENDPOINT, or a proxy, is not an address" in _fetch(odd, code=2)


def test_a_config_that_is_not_there_is_one_line(user: Project) -> None:
    user.set("hub.classification.reviews.config", "imdb")
    assert "BuilderConfig 'imdb' not found. Available: ['ax', 'cola', 'sst2'" in _fetch(user, code=2)
