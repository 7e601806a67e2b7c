"""The page on which all trained models answer side by side: its three forms, their answers, and its server.

The server listens only on this machine, and accepts forms only from its own page.
"""

import os
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from markupsafe import Markup

from retrace.core.errors import InputError
from retrace.core.paths import PRETRAINED, questions_path
from retrace.datasets.examples import read_examples
from retrace.datasets.squad import read_questions
from retrace.finetuning.settings import FineTuneSettings
from retrace.publishing.load import RUN_FIRST
from retrace.report.names import method_name, title_of
from retrace.report.page import make_environment, packaged, source_hash
from retrace.report.svg import STYLE
from retrace.results.grid import WEIGHTS, Cell, Grid
from retrace.serving.predictor import MASK, Predictor, WordModel
from retrace.tasks.question_answering.extractive import LOWEST

HERE = Path(__file__).parent
FIELDS = {"text": ("text", "pair"), "question": ("passage", "question"), "words": ("masked",)}  # of each form
FORM = "application/x-www-form-urlencoded"  # how browsers send them
LONGEST = 20_000  # characters of a field
CLASSES = 5  # the most probable ones, which are shown
HOST = "127.0.0.1"
BODY = 2**19  # bytes of a request: two fields of the longest text, encoded with up to 12 bytes per character
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with "no-referrer" browsers would send the origin "null" with forms
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class AnswerCard:
    """A model's answer; `place` selects its method's colour and shape."""

    name: str
    place: int | None = None
    answer: str | None = None
    gist: str = ""
    shares: Sequence[tuple[str, float]] = ()  # words or classes, and their probabilities
    passage: tuple[str, str, str] | None = None  # before the answer, the answer, after it


@dataclass(frozen=True)
class Answering:
    """A task, its models by method, and an example: a value for each field of its form."""

    title: str
    predictors: Mapping[str, Predictor]
    example: Mapping[str, str]
    settings: FineTuneSettings  # `AnswerSettings` for questions


class Demo:
    """All trained models of params.yaml, the first seed of each method, loaded.

    Raises InputError if there are none.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._places = {method: place for place, method in enumerate(Grid.read(params).every_method)}
        self.absent: list[str] = []  # models of params.yaml that were not trained
        self.tasks = self._read_tasks(params)
        self._words = WordModel(params) if PRETRAINED.is_dir() else None
        if self._words is None:
            self.absent.append(f"the pretrained model ({PRETRAINED})")
            if not any(self.tasks.values()):
                raise InputError(f"no trained models here; {RUN_FIRST}")
        style = STYLE + packaged("page.css") + packaged("demo.css", HERE)
        self._template = make_environment(HERE, autoescape=True).get_template("demo.html.j2")
        self._style = Markup(style)
        # No script, no requests but the forms', and no style but the page's own.
        allowed = f"style-src {source_hash(style)}; img-src data:; form-action 'self'"
        self.policy = f"default-src 'none'; {allowed}; base-uri 'none'; frame-ancestors 'none'"

    @property
    def cells(self) -> list[Cell]:
        """The trained models."""
        predictors = [each for tasks in self.tasks.values() for task in tasks for each in task.predictors.values()]
        return [cell for predictor in predictors for cell in predictor.cells]

    def page(self, form: str | None = None, given: Mapping[str, str] = {}) -> str:
        """The page as HTML; if the fields of a `form` were `given`, with them and the models' answers.

        Raises InputError if a field is empty, or the models cannot read it.
        """
        answers: Sequence[tuple[str, Sequence[AnswerCard]]] = ()
        if form is not None:
            empty = [name for name, text in given.items() if not text.strip() and name != "pair"]
            if empty:
                raise InputError(f"{empty[0]}: '' is not allowed; expected a text")
            answers = self._word_cards(given["masked"]) if form == "words" else self._task_cards(form, given)
        values = {name: text for tasks in self.tasks.values() for task in tasks for name, text in task.example.items()}
        values["masked"] = f"the {MASK} of the town" if self._words and self._words.is_masked else "the"
        return self._template.render(
            style=self._style, tasks=self.tasks, words=self._words, absent=self.absent, form=form, answers=answers,
            values=values | dict(given), longest=LONGEST, mask=MASK,
        )  # fmt: skip

    def _read_tasks(self, params: Mapping[str, Any]) -> dict[str, list[Answering]]:
        """The tasks with trained models, by form."""
        grid = Grid.read(params)
        found: dict[str, list[Answering]] = {"text": [], "question": []}
        for task in grid.all_tasks:
            predictors = {}
            for method in grid.methods_of(task):
                folder = WEIGHTS / Cell(task, method, grid.seeds[0]).path
                if folder.is_dir():
                    predictors[method] = Predictor(task, method, grid.seeds[:1], params)
                else:
                    self.absent.append(f"{title_of(task)} by {method_name(method)} ({folder})")
            if predictors:
                form, example = ("question", _question_example) if task in grid.questions else ("text", _text_example)
                settings = next(iter(predictors.values())).settings
                found[form].append(Answering(title_of(task), predictors, example(grid.data_of(task)), settings))
        return found

    def _task_cards(self, form: str, given: Mapping[str, str]) -> list[tuple[str, list[AnswerCard]]]:
        """The cards of each task; tasks of two texts are left out if only one was given."""
        tasks = [
            task for task in self.tasks[form] if form == "question" or not task.example["pair"] or given["pair"].strip()
        ]
        return [(task.title, [self._card(task, method, given) for method in task.predictors]) for task in tasks]

    def _card(self, task: Answering, method: str, given: Mapping[str, str]) -> AnswerCard:
        name, place, predictor = method_name(method), self._places[method], task.predictors[method]
        if "passage" in given:
            return _answer_card(name, place, predictor.answers([dict(given)])[0], given["passage"])
        row = {"text": given["text"], "pair": given["pair"] if task.example["pair"] else None}
        shares = zip(predictor.task.classes, predictor.probabilities([row])[0].tolist(), strict=True)
        best = sorted(shares, key=lambda share: -share[1])
        return AnswerCard(name, place, best[0][0], shares=best[:CLASSES])

    def _word_cards(self, text: str) -> list[tuple[str, list[AnswerCard]]]:
        if self._words is None:
            raise InputError(f"the pretrained model is not here: {PRETRAINED}")
        found = self._words.suggestions(text)
        names = [f"Word {number}" for number in range(1, len(found) + 1)] if self._words.is_masked else ["Next"]
        return [("", [AnswerCard(name, shares=shares) for name, shares in zip(names, found, strict=True)])]


def _text_example(folder: Path) -> dict[str, str]:
    example = read_examples(folder, "dev")[0]
    return {"text": example.text, "pair": example.pair or ""}


def _question_example(folder: Path) -> dict[str, str]:
    questions = read_questions(questions_path(folder, "dev"))
    question = next((question for question in questions if question.answers), questions[0])
    return {"passage": question.context, "question": question.text}


def _answer_card(name: str, place: int, found: Mapping[str, Any], passage: str) -> AnswerCard:
    gist = f"score {found['score']:.3f}" if found["score"] > LOWEST else "the passage has no token"
    if found["no_answer_score"] is not None:
        gist += f", no-answer score {found['no_answer_score']:.3f}"
    answer, start = found["answer"], found["start"]
    if answer is None or start is None:
        return AnswerCard(name, place, answer or "no answer", gist)
    return AnswerCard(name, place, answer, gist, passage=(passage[:start], answer, passage[start + len(answer) :]))


def listen(port: int) -> socket.socket:
    """A socket that only this machine can reach; port 0 picks a free one.

    Raises InputError if the port is taken or not allowed.
    """
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise InputError(f"--port: {port}: {reason}; expected a free port; 0 takes any") from None


def serve(demo: Demo, listener: socket.socket) -> None:
    """Answer requests, one at a time, until Ctrl-C or SIGTERM."""
    port = listener.getsockname()[1]
    shown = "" if port == 80 else f":{port}"  # as browsers send it
    hosts = (f"{HOST}{shown}", f"localhost{shown}")

    @web.middleware
    async def checked(request: web.Request, handler: Any) -> web.StreamResponse:
        _check_origin(request, hosts)
        try:
            return await handler(request)
        except InputError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None

    async def page(request: web.Request) -> web.Response:
        form = request.match_info.get("form")
        given = {} if form is None else await _fields(request, FIELDS[form])
        return web.Response(text=demo.page(form, given), content_type="text/html")

    async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
        response.headers.update({**HEADERS, "Content-Security-Policy": demo.policy})

    app = web.Application(middlewares=[checked], client_max_size=BODY)
    app.on_response_prepare.append(add_headers)
    app.router.add_get("/", page)
    app.router.add_post(f"/{{form:{'|'.join(FIELDS)}}}", page)
    web.run_app(app, sock=listener, print=None, access_log=None, shutdown_timeout=1.0)


def _check_origin(request: web.Request, hosts: Sequence[str]) -> None:
    """Refuse requests that another site has a browser send, from its own origin or by DNS rebinding."""
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    if host not in hosts:
        raise web.HTTPForbidden(text=f"Host: {host[:100]!r} is not allowed; expected {' or '.join(hosts)}\n")
    if origin is not None and origin not in [f"http://{host}" for host in hosts]:
        raise web.HTTPForbidden(text=f"Origin: {origin[:100]!r} is not allowed; expected http://{hosts[0]}\n")


async def _fields(request: web.Request, names: Collection[str]) -> dict[str, str]:
    """The fields of a form by name, "" for those that are missing."""
    if request.content_type != FORM:
        raise InputError(f"Content-Type: {request.content_type[:100]!r} is not allowed; expected {FORM}")
    try:
        given = await request.post()
        fields = {name: str(given.get(name, "")).replace("\r\n", "\n") for name in names}
        "".join(fields.values()).encode()
    except (LookupError, ValueError) as error:  # an unknown charset, malformed, or half of a character
        raise InputError(f"the form cannot be read: {error}") from None
    for name, text in fields.items():
        if len(text) > LONGEST:
            raise InputError(f"{name}: {len(text)} characters are too many; expected at most {LONGEST}")
    return fields
