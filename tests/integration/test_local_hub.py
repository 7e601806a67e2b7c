"""The local hub as the real clients see it, each in a process of its own with an empty cache."""

import contextlib
import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub import (
    READ_TOKEN,
    STRANGER_TOKEN,
    WRITE_TOKEN,
    Cut,
    Fault,
    LocalHub,
    Silence,
    Status,
)
from tests.hub.client import run_client

TWO_CONFIGS = b"""---
configs:
- config_name: first
  default: true
  data_files: [{split: train, path: "a/*.csv"}]
- config_name: second
  data_files: [{split: train, path: "b/*.csv"}]
---
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    """A hub from which every request was served; one test asks for more than loopback."""
    with LocalHub(tmp_path / "hub") as hub:
        yield hub
    assert hub.unserved == []


def _load_data(commits: dict[str, str]) -> dict[str, Any]:
    from datasets import load_dataset

    def load(name: str, config: str | None = None, **options: Any) -> Any:
        return load_dataset(name, config, revision=commits[name], **options)

    text = load("Salesforce/wikitext", "wikitext-2-raw-v1")
    sentences = load("nyu-mll/glue", "sst2")
    questions = load("rajpurkar/squad_v2")
    streamed = load("rajpurkar/squad_v2", streaming=True)
    return {
        "text": [text["train"][row]["text"] for row in range(3)],
        "splits": {split: len(rows) for split, rows in text.items()},
        "labels": sentences["train"].features["label"].names,
        "withheld": sentences["test"].unique("label"),
        "answers": questions["train"][0]["answers"],
        "streamed": list(streamed["validation"]) == questions["validation"].to_list(),
        "csv": load("org/tables", "second")["train"].to_list(),
        "default": load("org/tables")["train"].to_list(),
        "jsonl": load("org/lines")["train"].to_list(),
    }


def test_data_sets_load_with_their_configs_and_features(hub: LocalHub, tmp_path: Path) -> None:
    from tests.hub.content import add_datasets

    commits = add_datasets(hub)
    tables = {"README.md": TWO_CONFIGS, "a/x.csv": b"word,n\none,1\n", "b/x.csv": b"word,n\ntwo,2\n"}
    commits["org/tables"] = hub.add("dataset", "org/tables", tables)
    commits["org/lines"] = hub.add("dataset", "org/lines", {"data/train.jsonl": b'{"word": "one"}\n'})
    hub.add("dataset", "org/tables", {"b/x.csv": b"word,n\nlater,3\n"})
    found = run_client(hub, tmp_path / "home", _load_data, commits, token=READ_TOKEN)
    assert found["text"][0] == ""
    assert found["text"][1].startswith(" = ")
    assert found["text"][1].endswith(" = \n")
    assert found["splits"] == {"train": 863, "validation": 180, "test": 180}
    assert found["labels"] == ["negative", "positive"]
    assert found["withheld"] == [-1]
    assert list(found["answers"]) == ["text", "answer_start"]
    assert found["streamed"]
    assert found["csv"] == [{"word": "two", "n": 2}]
    assert found["default"] == [{"word": "one", "n": 1}]
    assert found["jsonl"] == [{"word": "one"}]
    assert hub.outside == []
    assert {seen.token for seen in hub.requests if seen.path.startswith("/storage/")} == {False}
    assert {seen.token for seen in hub.requests if not seen.path.startswith("/storage/")} == {True}


def _load_models(commits: dict[str, str]) -> dict[str, Any]:
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    found = {}
    for name, commit in commits.items():
        tokenizer = AutoTokenizer.from_pretrained(name, revision=commit)
        head: Any = AutoModelForCausalLM if "llama" in name else AutoModelForMaskedLM
        _, report = head.from_pretrained(name, revision=commit, output_loading_info=True)
        marked = tokenizer.convert_ids_to_tokens(tokenizer("the", "the").input_ids)
        found[name] = [sorted(report["missing_keys"]), marked, tokenizer.pad_token, tokenizer.mask_token]
    return found


def test_models_of_every_family_load_by_name_and_commit(hub: LocalHub, tmp_path: Path) -> None:
    from tests.hub.content import add_models

    found = run_client(hub, tmp_path / "home", _load_models, add_models(hub))
    begin = "<|begin_of_text|>"
    assert found == {
        "google-bert/bert-base-uncased": [[], ["[CLS]", "the", "[SEP]", "the", "[SEP]"], "[PAD]", "[MASK]"],
        "FacebookAI/roberta-base": [[], ["<s>", "the", "</s>", "</s>", "the", "</s>"], "<pad>", "<mask>"],
        "answerdotai/ModernBERT-base": [[], ["[CLS]", "the", "[SEP]", "the", "[SEP]"], "[PAD]", "[MASK]"],
        "meta-llama/Llama-3.2-1B": [[], [begin, "the", begin, "the"], None, None],
    }
    assert hub.outside == []


def _publish(folder: str) -> dict[str, Any]:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    api, name = HfApi(), "org/model"
    address = str(api.create_repo(name, private=True))
    assert str(api.create_repo(name, exist_ok=True)) == address
    first = api.upload_folder(repo_id=name, folder_path=folder)
    again = api.upload_folder(repo_id=name, folder_path=folder)
    api.create_branch(name, branch="draft")
    removal = [CommitOperationDelete("notes/one.txt")]
    second = api.create_commit(name, removal, commit_message="Remove", parent_commit=first.oid)
    with pytest.raises(HfHubHTTPError) as stale:
        api.create_commit(name, [CommitOperationDelete("README.md")], commit_message="No", parent_commit=first.oid)
    broken = CommitOperationAdd("README.md", b"---\nlicense: [mit\n---\n")
    with pytest.raises(ValueError, match=r"Invalid metadata in README\.md"):
        api.create_commit(name, [broken], commit_message="Broken")
    return {
        "commits": [first.oid, again.oid, second.oid],
        "stale": stale.value.response.status_code,
        "old": Path(hf_hub_download(name, "notes/one.txt", revision="draft")).read_text(),
        "files": sorted(api.list_repo_files(name)),
        "private": api.model_info(name).private,
    }


def test_commits_are_kept_and_an_unchanged_folder_makes_none(hub: LocalHub, tmp_path: Path) -> None:
    files = {"README.md": b"---\nlicense: mit\n---\n", "model.safetensors": bytes(range(256)) * 400}
    files |= {"notes/one.txt": b"one", "notes/empty.txt": b""}
    for path, content in files.items():
        (tmp_path / "folder" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / path).write_bytes(content)
    found = run_client(hub, tmp_path / "home", _publish, str(tmp_path / "folder"), token=WRITE_TOKEN)
    first, again, second = found["commits"]
    assert first == again
    assert hub.commits("model", "org/model")[:2] == [second, first]
    assert hub.commits("model", "org/model", "draft")[0] == first
    assert (found["stale"], found["old"], found["private"]) == (412, "one", True)
    assert found["files"] == [".gitattributes", "README.md", "model.safetensors", "notes/empty.txt"]
    before = hub.files("model", "org/model", first)
    assert {path: before[path] for path in files} == files
    assert len([seen for seen in hub.requests if seen.method == "PUT"]) == 1


def _try_access(tokens: dict[str, str | bool]) -> dict[str, dict[str, str]]:
    from huggingface_hub import HfApi

    def outcomes(name: str, api: HfApi) -> dict[str, str]:
        return {
            "missing": _outcome(lambda: api.model_info("org/none")),
            "revision": _outcome(lambda: api.model_info("org/open", revision="none")),
            "file": _outcome(lambda: api.hf_hub_download("org/open", "none")),
            "open": _outcome(lambda: api.hf_hub_download("org/open", "a.txt", cache_dir=name)),
            "private": _outcome(lambda: api.hf_hub_download("org/private", "a.txt", cache_dir=name)),
            "gated": _outcome(lambda: api.hf_hub_download("org/gated", "a.txt", cache_dir=name)),
            "gated listing": _outcome(lambda: api.model_info("org/gated")),
            "write": _outcome(lambda: api.create_branch("org/open", branch="draft")),
            "create": _outcome(lambda: api.create_repo("org/new", exist_ok=True)),
        }

    os.chdir(os.environ["HF_HOME"])  # each token has a cache of its own there
    return {name: outcomes(name, HfApi(token=token)) for name, token in tokens.items()}


def _outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        response = getattr(error, "response", None)
        return type(error).__name__ if response is None else f"{type(error).__name__} {response.status_code}"
    return "done"


def test_tokens_give_the_rights_that_the_clients_expect(hub: LocalHub, tmp_path: Path) -> None:
    for name in ("open", "private", "gated"):
        hub.add("model", f"org/{name}", {"a.txt": b"a"}, private=name == "private", gated=name == "gated")
    tokens = {"none": False, "stranger": STRANGER_TOKEN, "reader": READ_TOKEN, "writer": WRITE_TOKEN, "bad": "hf_x"}
    (tmp_path / "home").mkdir()
    found = run_client(hub, tmp_path / "home", _try_access, tokens)
    absent = {"revision": "RevisionNotFoundError 404", "file": "RemoteEntryNotFoundError 404", "open": "done"}
    known = {**absent, "missing": "RepositoryNotFoundError 404", "gated listing": "done"}
    nobody, refused = "RepositoryNotFoundError 401", {"write": "HfHubHTTPError 403", "create": "HfHubHTTPError 403"}
    assert found["none"] == {
        **absent, "missing": nobody, "private": nobody, "gated": "GatedRepoError 401", "gated listing": "done",
        "write": nobody, "create": nobody,
    }  # fmt: skip
    assert found["stranger"] == {
        **known, **refused, "private": "RepositoryNotFoundError 404", "gated": "GatedRepoError 403"
    }  # fmt: skip
    reader = {**known, "private": "done", "gated": "done"}
    assert found["reader"] == {**reader, **refused}
    assert found["writer"] == {**reader, "write": "done", "create": "done"}
    assert set(found["bad"].values()) == {"HfHubHTTPError 401"}


def _ask(hub: LocalHub, path: str, method: str = "GET", seconds: float = 5) -> Any:
    """A bare request; the answer, with its body as `content`."""
    connection = http.client.HTTPConnection(hub.endpoint.removeprefix("http://"), timeout=seconds)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer: Any = connection.getresponse()
        answer.content = answer.read()
        return answer


def test_a_status_comes_as_often_as_it_was_ordered(hub: LocalHub) -> None:
    hub.add("model", "org/model", {"a.txt": b"text", "b.txt": b"text"})
    hub.fail(r"a\.txt", 2, Status(429, retry_after=7))
    answers = [_ask(hub, f"/org/model/resolve/main/{name}.txt") for name in "abaa"]
    assert [answer.status for answer in answers] == [429, 200, 429, 200]
    assert answers[0].headers["Retry-After"] == "7"
    assert [seen.status for seen in hub.requests] == [answer.status for answer in answers]
    assert hub.faults.left == 0


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (Cut("request"), http.client.RemoteDisconnected),
        (Cut("body"), http.client.IncompleteRead),
        (Silence(30), TimeoutError),
    ],
)
def test_a_connection_fails_once(hub: LocalHub, fault: Fault, raised: type[Exception]) -> None:
    hub.add("model", "org/model", {"a.txt": b"text"})
    hub.fail("resolve", 1, fault, method="GET")
    assert _ask(hub, "/org/model/resolve/main/a.txt", "HEAD").status == 200
    with pytest.raises(raised):
        _ask(hub, "/org/model/resolve/main/a.txt", seconds=0.3)
    assert _ask(hub, "/org/model/resolve/main/a.txt").content == b"text"


def _reach_out() -> list[str]:
    from huggingface_hub import HfApi

    with contextlib.closing(socket.socket()) as plain, pytest.raises(OSError, match=r"only loopback is allowed here$"):
        plain.connect(("192.0.2.1", 80))
    elsewhere = HfApi(endpoint="http://huggingface.test")
    calls = (lambda: HfApi().repo_exists("org/none"), lambda: elsewhere.model_info("org/none"))
    return list(map(_outcome, calls))


def test_nothing_but_loopback_is_reached(hub: LocalHub, tmp_path: Path) -> None:
    assert run_client(hub, tmp_path / "home", _reach_out) == ["done", "ConnectError"]
    assert sorted(hub.outside) == ["192.0.2.1", "huggingface.test"]


def test_what_is_not_served_is_recorded(tmp_path: Path) -> None:
    with LocalHub(tmp_path) as hub:
        assert _ask(hub, "/api/spaces/org/space").status == 501
        assert _ask(hub, "/storage/models/org/none/" + "0" * 64 + "/a").status == 500
    assert hub.unserved[0].path == "/api/spaces/org/space"
    assert len(hub.unserved) == 2


def test_a_stopped_hub_leaves_nothing_behind(tmp_path: Path) -> None:
    before, start = threading.active_count(), time.monotonic()
    with (
        LocalHub(tmp_path) as hub,
        contextlib.closing(socket.create_connection(("127.0.0.1", int(hub.endpoint.rpartition(":")[2])))) as idle,
    ):
        hub.fail("models", 1, Silence(60))
        idle.sendall(b"GET /api/models/org/model HTTP/1.1\r\n\r\n")
        while not hub.requests:
            time.sleep(0.01)
    assert threading.active_count() == before
    assert time.monotonic() - start < 30
