"""`retrace predict` gives the answers that the stages wrote down."""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy.special import softmax

from retrace.cli import predict as command
from retrace.core.paths import questions_path
from retrace.datasets.examples import read_examples
from retrace.datasets.squad import read_questions
from retrace.results.predictions import kept_epoch, read_epochs
from tests.commands import refused, retrace
from tests.toy import Project


def predict(project: Project, *arguments: str, lines: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """The answers to rows on standard input."""
    command = [sys.executable, "-m", "retrace.cli.main", "predict", *arguments]
    done = project.run(*command, given="\n".join(map(json.dumps, lines)))
    return [json.loads(line) for line in done.stdout.splitlines()]


def kept(project: Project, task: str, kind: Any) -> pd.DataFrame:
    return kept_epoch(read_epochs(project.folder / "predictions" / task / "full" / "1", kind)).rows


def test_labels_are_those_of_the_stage(finished: Project) -> None:
    sentences = read_examples(finished.folder / "data/classification/sst2", "dev")
    found = predict(finished, "sst2", lines=[{"text": sentence.text} for sentence in sentences])
    rows = kept(finished, "sst2", "classification")
    expected = softmax(rows[["logit_0", "logit_1"]].to_numpy(), axis=1)
    assert [row["label"] for row in found] == [("negative", "positive")[of.argmax()] for of in expected]
    assert [row["probability"] for row in found] == pytest.approx(expected.max(axis=1), abs=1e-5)


def test_a_text_on_the_command_line_is_no_json(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished.folder)
    assert json.loads(retrace("predict", "sst2", "{sic} a charming journey").out)["text"] == "{sic} a charming journey"


def test_lines_are_json_whatever_the_terminals_encoding(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the warm server's standard output has had its encoding since the server was started."""
    monkeypatch.chdir(finished.folder)
    text = "a café \N{GRINNING FACE}"
    with io.TextIOWrapper(io.BytesIO(), "latin-1") as out:
        with redirect_stdout(out):
            command.predict("sst2", [text])
        out.seek(0)
        assert json.loads(out.read())["text"] == text


def test_answers_are_those_of_the_stage_and_stand_where_they_say(finished: Project) -> None:
    questions = read_questions(questions_path(finished.folder / "data/question_answering/squad", "dev"))
    lines = [{"passage": question.context, "question": question.text} for question in questions]
    found = predict(finished, "squad", lines=lines)
    rows = kept(finished, "squad", "question_answering").set_index("id")
    for question, row in zip(questions, found, strict=True):
        expected = rows.loc[question.id]
        assert row["score"] == pytest.approx(expected["score"], abs=1e-5)
        abstains = expected["null_score"] > expected["score"]
        answer = (None, None) if abstains else (expected["text"], expected["start"])
        assert (row["answer"], row["start"]) == answer
        assert question.context[expected["start"] :].startswith(expected["text"])


def test_a_passage_may_lie_in_a_file(finished: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished.folder)
    passage = "The stream had the Printers as sponsor."
    (tmp_path / "passage.txt").write_text(passage)
    asked = ("--passage", tmp_path / "passage.txt", "--question", "What was it?", "--question", "Name the river.")
    found = map(json.loads, retrace("predict", "squad", *asked).out.splitlines())
    assert [(row["passage"], row["question"]) for row in found] == [(passage, asked[3]), (passage, asked[5])]
    (tmp_path / "passage.txt").write_text(" \n\n")
    assert r"passage.txt: passage: ' \n' is not allowed; expected a text" in refused("predict", "squad", *asked)


@pytest.mark.parametrize(
    ("arguments", "lines", "said"),
    [
        (["sst2", "--seed", "1", "--ensemble"], [], "--ensemble uses all seeds; leave out --seed"),
        (["sst2"], [], "nothing to predict: expected a text"),
        (["sst2", "a", " "], [], "text:2: text: '' is not allowed; expected a text"),
        (["sst2", "a", "\udcff"], [], "text:2: not UTF-8"),
        (["sst2", "--question", "Who?"], [], "--passage and --question are for question answering; sst2 takes texts"),
        (["sst2"], [{"text": "\ud800"}], r"standard input:1: '\ud800' is an unpaired surrogate"),
        (["squad"], [{"text": "no passage"}], "standard input:1: passage is missing; there is: text"),
        (["sst2"], [{"text": "a", "pair": "b"}], "standard input:1: pair: 'b' is not allowed; the task has one text"),
        (["squad", "Who?"], [], "squad takes --passage and --question, not texts"),
        (["squad", "--passage", "README.md", "--question", " "], [], "--question 1: question: ' ' is not allowed"),
        (["squad", "--passage", "README.md", "--question", "Who\udcff?"], [], "--question 1: not UTF-8"),
        (["squad", "--question", "Who?"], [], "--passage and --question go together"),
    ],
)
def test_what_cannot_be_answered_ends_in_a_line(
    finished: Project, monkeypatch: pytest.MonkeyPatch, arguments: list[str], lines: list[dict[str, str]], said: str
) -> None:
    monkeypatch.chdir(finished.folder)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(map(json.dumps, lines))))
    assert said in refused("predict", *arguments)
