"""Models that are loaded once and asked many times: those of a task and method, and the pretrained one."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import log_softmax, logsumexp, softmax
from torch import nn

from retrace.compute.device import open_device
from retrace.core.errors import InputError
from retrace.core.paths import LOCKFILES, PRETRAINED
from retrace.core.settings import PARAMS, Precision, build, read_yaml, section
from retrace.datasets.examples import Example
from retrace.datasets.squad import Question
from retrace.finetuning.method import read_method
from retrace.finetuning.task import Row, predict
from retrace.models.heads import check_length, longest_input, read_config
from retrace.models.language_model import read_language_model
from retrace.publishing.load import read_tuned, read_tuning, require_weights
from retrace.results.grid import WEIGHTS, Cell, Grid
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.generative import ANSWERING
from retrace.tasks.question_answering.settings import AnswerSettings, settings_of
from retrace.tasks.question_answering.windows import Span
from retrace.tokens.tokenizer import Vocabulary, load_tokenizer

MASK = "[MASK]"  # as people write it, whatever the tokenizer calls it
SUGGESTIONS = 5
# Including all of the space before a mask, as byte-level words begin with it.
_MASKS = re.compile(r"(?<!\s)\s*(?:\[MASK\]|_{3,})", re.IGNORECASE)


def note_changes(cells: Sequence[Cell], params: Mapping[str, Any]) -> None:
    """Name on standard error the settings that are not those of the training, by dvc.lock; some change the answers.

    Also those of the stages before it, such as pretraining.
    """
    stages = (read_yaml(LOCKFILES[0]).get("stages") or {}) if LOCKFILES[0].is_file() else {}
    made = {out["path"]: name for name, stage in stages.items() for out in stage.get("outs", ())}
    places = {(WEIGHTS / cell.path).as_posix(): cell for cell in cells}
    trained = {made[path]: cell for path, cell in places.items() if path in made}
    names = [*trained]
    for name in names:  # which grows
        stage = stages[name]
        before = dict.fromkeys(made[read["path"]] for read in stage.get("deps", ()) if read["path"] in made)
        names += [each for each in before if each not in names]
        since = f"{trained[name].title} was trained" if name in trained else f"{name} ran"
        for key, value in stage.get("params", {}).get(str(PARAMS), {}).items():
            if value != section(params, key):
                print(f"note: {PARAMS}: {key} has changed since {since}; run dvc repro", file=sys.stderr)


class Predictor:
    """The models of a task and a method, one per seed, whose outputs are averaged.

    Raises InputError if the weights of a seed do not exist, if generated answers are to be averaged, or if the task has
    longer inputs than the models accept.
    """

    def __init__(self, task: str, method: str, seeds: Sequence[int], params: Mapping[str, Any]) -> None:
        grid = Grid.read(params)
        self.settings = settings = settings_of(params, task)
        if isinstance(settings, AnswerSettings) and settings.answers == "generative" and len(seeds) > 1:
            raise InputError(f"--ensemble: {task} has models that generate answers, which have no mean; leave it out")
        self.cells = [Cell(task, method, seed) for seed in seeds]
        folders = [WEIGHTS / cell.path for cell in self.cells]
        for folder in folders:
            require_weights(folder)
        base = read_method(params, method, task).base
        require_weights(base)  # its tokenizer is read, and its weights where only a part was trained
        tunings = [read_tuning(cell, params) for cell in self.cells]
        if isinstance(settings, AnswerSettings):
            self.task = ANSWERING[settings.answers].read(grid.data_of(task), base, settings)
        else:
            self.task = Classification.read(grid.data_of(task), base, settings)
        check_length(f"params.yaml: {task}.max_length", self.settings.max_length, read_config(base), base)
        self._device = open_device(0, build(Precision, params, "precision"), lease=False)
        self._models: list[nn.Module] = []
        for tuning, folder in zip(tunings, folders, strict=True):
            model = read_tuned(tuning, folder, base)
            whole: Any = model if tuning.question_match else self.task.wrap(model)
            getattr(whole, "body", whole).set_attn_implementation(self._device.attention)
            self._models.append(whole.to(self._device.torch_device).eval())

    def probabilities(self, rows: Sequence[Row]) -> np.ndarray:
        """The probability of each class, (N, C), for rows with a `text` and, in a task of two texts, a `pair`.

        White space around texts is left out, as in the training data.
        """
        assert isinstance(self.task, Classification), "the task has classes"
        texts = [(row["text"].strip(), row.get("pair")) for row in rows]
        examples = self.task.encoded([Example(text, pair and pair.strip(), 0) for text, pair in texts])
        logits = [log_softmax(scores, axis=-1) for scores in self._scores(examples)]
        return softmax(logsumexp(logits, axis=0), axis=-1)

    def answers(self, rows: Sequence[Row]) -> list[Row]:
        """The label of each text and its probability, or the answer to each `question` on its `passage`.

        An answer comes with its position in the passage, if it occurs there, its score, and the score of no answer.
        `answer` is None if no answer scores higher; `no_answer_score` is None if the model never abstains.
        """
        if isinstance(self.task, Classification):
            found = self.probabilities(rows)
            return [
                {"label": self.task.classes[label], "probability": round(float(shares[label]), 6)}
                for label, shares in zip(found.argmax(-1), found, strict=True)
            ]
        questions = [
            Question(str(number), row["passage"], row["question"].strip(), ()) for number, row in enumerate(rows)
        ]
        examples = self.task.encoded(questions)
        means = [np.mean(scores, axis=0) for scores in zip(*self._scores(examples), strict=True)]
        spans = self.task.answers(examples, means)
        return [_answer(spans[question.id], self.task.may_abstain) for question in questions]

    def _scores(self, examples: Sequence[Any]) -> list[Sequence[np.ndarray]]:
        """Each model's scores, in batches as in validation: in bf16, padding changes the last digits."""
        size, task = 2 * self.settings.batch_size, self.task
        return [predict(task, model, examples, size, self._device)[0] for model in self._models]


def _answer(span: Span, may_abstain: bool) -> Row:
    abstains = not span.text or (may_abstain and span.null_score > span.score)
    return {
        "answer": None if abstains else span.text,
        "start": None if abstains else span.start,
        "score": round(span.score, 6),
        "no_answer_score": round(span.null_score, 6) if may_abstain else None,
    }


class WordModel:
    """The pretrained model, which fills in masked words or, if it is causal, continues a text."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._device = open_device(0, build(Precision, params, "precision"), lease=False)
        self._tokenizer = load_tokenizer(PRETRAINED)
        self._vocabulary = Vocabulary.of(self._tokenizer)
        self._longest = longest_input(read_config(PRETRAINED))
        model = read_language_model(PRETRAINED, 0, self._device.attention)
        self.is_masked = model.objective == "masked"
        self._model = model.to(self._device.torch_device).eval()

    @torch.no_grad()
    def suggestions(self, text: str) -> list[list[tuple[str, float]]]:
        """The most probable tokens with their probabilities, for each masked word or for what follows the text.

        Raises InputError if no word is masked, or the text is longer than the model can read.
        """
        ids, at = self._encoded(text)
        if not at:
            raise InputError(f"text: no word is masked; write {MASK} in its place")
        if len(ids) > self._longest:
            raise InputError(f"text: {len(ids)} tokens are too many; the model reads {self._longest}")
        with self._device.autocast():
            scores = self._model(self._device.send(torch.tensor([ids])), self._device.send(torch.tensor([at])))
        found = scores.double().softmax(-1).cpu()  # (masks, V)
        found[:, list(self._vocabulary.special)] = 0.0  # the model was not trained to predict them
        best = found.topk(SUGGESTIONS)
        return [
            [(self._tokenizer.decode([token]), share) for token, share in zip(tokens, shares, strict=True)]
            for tokens, shares in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def _encoded(self, text: str) -> tuple[list[int], list[int]]:
        """The token ids of a text as in pretraining, and the positions to predict."""
        pieces = _MASKS.split(text) if self.is_masked else [text]
        first, *rest = [self._tokenizer.encode(piece, add_special_tokens=False).ids for piece in pieces]
        ids, at = [self._vocabulary.begin, *first], []
        if not self.is_masked:
            return ids, [len(ids) - 1]
        mask = self._vocabulary.mask
        assert mask is not None, "a masked model has a mask"
        for piece in rest:
            at.append(len(ids))
            ids += [mask, *piece]
        return [*ids, self._vocabulary.end], at
