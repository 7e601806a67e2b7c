"""`retrace demo`: a real server, asked by a plain client and by Debian's Chromium."""

import html
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlencode

import pytest

from retrace.core.paths import questions_path
from retrace.datasets.examples import read_examples
from retrace.datasets.squad import read_questions
from tests.conftest import serious_violations
from tests.integration.test_predict import predict
from tests.toy import Project

FORM = "application/x-www-form-urlencoded"
HOSTILE = "</textarea><script>alert(1)</script><img src=x onerror=alert(2)> \u202e \x1b[31m & \"'"


@pytest.fixture(scope="module")
def partly(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that lists more methods than it has trained."""
    folder = tmp_path_factory.mktemp("demo") / "project"
    project = finished.copy(folder)
    project.set("finetune.methods", ["full", "scratch", "lora"])
    shutil.rmtree(folder / "models/squad/scratch")
    return project


@pytest.fixture(scope="module")
def port(partly: Project) -> Iterator[int]:
    """Where the page is served; Ctrl-C ends it cleanly."""
    command = [sys.executable, "-m", "retrace.cli.main", "demo", "--port", "0"]
    server = subprocess.Popen(command, cwd=partly.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        address = re.match(r"http://127\.0\.0\.1:(\d+) ", server.stdout.readline())
        assert address is not None, server.communicate()
        yield int(address[1])
        server.send_signal(signal.SIGINT)
        _, complaints = server.communicate(timeout=20)
        assert (server.returncode, complaints) == (0, "")
    finally:
        server.kill()


def ask(port: int, path: str = "/", body: str | bytes | None = None, **headers: str) -> tuple[HTTPResponse, str]:
    """A response and its text; with a body it is a form that is sent."""
    sent = ({} if body is None else {"Content-Type": FORM}) | headers
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET" if body is None else "POST", path, body, sent)
        response = connection.getresponse()
        return response, response.read().decode()


def cards(port: int, form: str, **fields: str) -> list[str]:
    """The words of each card that a form gets."""
    response, page = ask(port, f"/{form}", urlencode(fields), Origin=f"http://127.0.0.1:{port}")
    assert response.status == 200, page
    found = re.findall(r'(?s)<li class="card.*?</li>', page)
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", card)).split()) for card in found]


def test_labels_are_those_of_retrace_predict(port: int, partly: Project) -> None:
    text = read_examples(partly.folder / "data/classification/sst2", "dev")[3].text
    found = cards(port, "text", text=text)
    for card, method in zip(found, ("full", "scratch"), strict=True):
        (row,) = predict(partly, "sst2", "--method", method, lines=[{"text": text}])
        assert card.startswith(f"{method.capitalize()} {row['label']} {row['label']} {row['probability']:.3f} ")


def test_answers_are_those_of_retrace_predict(port: int, partly: Project) -> None:
    questions = read_questions(questions_path(partly.folder / "data/question_answering/squad", "dev"))[:4]
    lines = [{"passage": question.context, "question": question.text} for question in questions]
    for line, row in zip(lines, predict(partly, "squad", lines=lines), strict=True):
        (found,) = cards(port, "question", **line)
        scores = f"score {row['score']:.3f}, no-answer score {row['no_answer_score']:.3f}"
        assert found.startswith(f"Full {row['answer'] or 'no answer'} {scores}")
        if row["answer"]:
            assert found.replace(" ", "").endswith(line["passage"].replace(" ", "")), "the answer is marked in it"


def test_a_passage_without_a_word_is_not_answered(port: int) -> None:
    (found,) = cards(port, "question", passage="\u200b", question="Who?")
    assert found.startswith("Full no answer the passage has no token")


def test_masked_words_are_filled_in(port: int) -> None:
    found = cards(port, "words", masked="the ale was [MASK] , but the [MASK] were charming")
    assert [card[:6] for card in found] == ["Word 1", "Word 2"]
    shares = [float(share) for share in re.findall(r"\d\.\d{3}", found[0])]
    assert (len(shares), sorted(shares, reverse=True)) == (5, shares)


def test_what_was_not_trained_is_named(port: int) -> None:
    assert "Reviews by LoRA (models/sst2/lora/1); Questions by Scratch (models/squad/scratch/1)." in ask(port)[1]


def test_hostile_text_is_text(port: int) -> None:
    for form, fields in (
        ("text", {"text": HOSTILE}), ("question", {"passage": HOSTILE, "question": HOSTILE}),
        ("words", {"masked": f"[MASK] {HOSTILE}"}),
    ):  # fmt: skip
        response, page = ask(port, f"/{form}", urlencode(fields))
        assert response.status == 200, page
        assert not re.search(r"<(script|img)", page)
        assert HOSTILE in html.unescape(page)


@pytest.mark.parametrize(
    ("status", "said", "path", "body", "headers"),
    [
        (403, "Host: 'evil.example' is not allowed", "/", None, {"Host": "evil.example"}),
        (403, "Origin: 'http://evil.example' is not", "/text", "text=a", {"Origin": "http://evil.example"}),
        (403, "Origin: 'null' is not allowed", "/text", "text=a", {"Origin": "null"}),
        (413, "Maximum request body size 524288 exceeded", "/text", "text=" + "a" * 600_000, {}),
        (400, "text: 20001 characters are too many", "/text", "text=" + "a" * 20_001, {}),
        (400, "'application/json' is not allowed; expected", "/text", "{}", {"Content-Type": "application/json"}),
        (400, "text: '' is not allowed; expected a text", "/text", "{}", {}),
        (400, "text: '' is not allowed; expected a text", "/text", "text=+", {}),
        (400, "question: '' is not allowed", "/question", "passage=a", {}),
        (400, "the form cannot be read: 'utf-8' codec", "/text", b"text=\xff", {}),
        (
            400,
            "the form cannot be read: 'utf-8' codec can't encode",
            "/text",
            "text=\\ud800",
            {"Content-Type": f"{FORM}; charset=unicode_escape"},
        ),
        (400, "the form cannot be read: unknown encoding", "/text", "text=a", {"Content-Type": f"{FORM}; charset=x"}),
        (400, "text: no word is masked; write [MASK]", "/words", "masked=a", {}),
        (400, "tokens are too many; the model reads 128", "/words", "masked=" + "a+" * 200 + "___", {}),
        (404, "404: Not Found", "/models", None, {}),
        (405, "405: Method Not Allowed", "/text", None, {}),
    ],
)
def test_bad_requests_are_refused_in_a_line(port: int, status, said: str, path: str, body, headers) -> None:
    response, text = ask(port, path, body, **headers)
    assert (response.status, said in text, len(text.splitlines())) == (status, True, 1)
    assert response.headers["Content-Type"].startswith("text/plain")
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_other_addresses_of_this_machine_are_not_served(port: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=10)


def test_a_port_that_is_taken_is_named(port: int, partly: Project) -> None:
    done = partly.stage("retrace.cli.main", "demo", "--port", str(port), code=2)
    assert done.stderr == f"error: --port: {port}: Address already in use; expected a free port; 0 takes any\n"


def answered(page: Any, button: str) -> None:
    page.click(f"text='{button}'")
    page.wait_for_selector("#answers .card")


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_the_page_in_a_browser(browser: Any, port: int, width: int, theme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    complaints, own = [], f"http://127.0.0.1:{port}/"
    page.on("console", lambda message: complaints.append(message.text))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: request.url.startswith((own, "data:")) or complaints.append(request.url))
    page.goto(own)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if theme == "light" else "rgb(18, 22, 27)")
    for button, first in (("Classify", "Full"), ("Answer", "Full"), ("Fill in", "Word 1")):
        answered(page, button)  # with the examples that stand in the fields
        assert page.locator("#answers .who").first.inner_text().strip() == first
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert serious_violations(page) == []
    page.fill("#passage", f"{HOSTILE} Ada Lund founded it. " * 20)
    page.fill("#question", HOSTILE)
    answered(page, "Answer")
    assert page.input_value("#question") == HOSTILE
    assert page.locator("img, script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
    page.close()


def test_the_page_works_without_scripts(browser: Any, port: int) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"http://localhost:{port}/")
    page.fill("#question", "What is it?")
    answered(page, "Answer")
    assert page.input_value("#question") == "What is it?"
    page.close()
