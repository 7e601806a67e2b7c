"""A project that was run, without training: five methods with three seeds, whose predictions a seeded generator makes.

Sentences and passages are of made-up words. A method is right as often as QUALITY says, on the easier examples more
often, and its seeds differ a little. The stages evaluate and report run for real on it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from retrace.core.files import write_json, write_text
from retrace.core.paths import CARD, questions_path
from retrace.core.records import Origin, StageRecord
from retrace.core.settings import read_yaml
from retrace.datasets.card import examples_card, questions_card
from retrace.datasets.examples import SENTIMENTS, Example, TaskData, read_task, write_task
from retrace.datasets.source import Source
from retrace.results.grid import Kind
from retrace.results.predictions import LOSSES, PREDICTIONS, UPDATES, write_predictions
from tests.study import RUN
from tests.toy import ROOT

METHODS = ("full", "scratch", "frozen", "lora", "adapter")
QUALITY = {"full": 0.93, "scratch": 0.68, "frozen": 0.55, "lora": 0.94, "adapter": 0.90}
TRAINED = {"full": 1.0, "scratch": 1.0, "frozen": 0.02, "lora": 0.1, "adapter": 0.09}
EPOCHS, UPDATES_EACH = 3, 40
QUESTION_WORDS = ("who", "what", "when", "where", "which", "how")
ORIGIN = Origin(commit="0" * 40, clean=True, date="2026-01-31", machine="two cores", versions={"torch": "2.0"})


@dataclass
class Maker:
    """Writes a project into an empty folder; `evaluate.main()` and `report.main()` run in it."""

    folder: Path
    reviews: int
    questions: int
    methods: tuple[str, ...] = METHODS
    seeds: tuple[int, ...] = (1, 2, 3)

    def __post_init__(self) -> None:
        self._random, letters = np.random.default_rng(0), np.array(list("abcdefghilmnoprstuv"))
        self._words = ["".join(self._random.choice(letters, self._random.integers(2, 10))) for _ in range(4000)]

    def make(self) -> None:
        """All that evaluation and the report read."""
        source, methods = Source.within(self.folder / "data"), list(self.methods)
        params = read_yaml(ROOT / "params.yaml")
        grid = {"methods": methods, "squad_methods": methods, "seeds": list(self.seeds)}
        params["finetune"] = {"tasks": ["sst2"], "questions": ["squad"], **grid}
        params["metrics"] |= {"bootstrap_samples": 200, "question_answering": ["squad_v2"]}
        params["squad"]["question_match"] = True
        write_json(self.folder / "params.yaml", params)  # json is YAML too
        write_text(self.folder / "data/params.yaml", (ROOT / "data/params.yaml").read_text())
        write_json(self.folder / "models/pretrained/source.json", {"from": None})
        self._classification(source.sst2)
        self._answers(source.squad)
        counts = {"documents": 59, "words": 68_735, "unknown_words": 0}
        write_json(source.text / CARD, {"parts": {"train": counts}, "findings": []})
        write_json(source.sst2 / CARD, examples_card(read_task(source.sst2)))
        write_json(source.squad / CARD, questions_card(source.squad))
        self._pretraining()

    def _text(self, count: int) -> str:
        """Words, a few of them frequent, as in any language."""
        return " ".join(self._words[min(3999, int(rank) - 1)] for rank in self._random.zipf(1.3, count))

    def _right(self, method: str, difficulty: np.ndarray) -> np.ndarray:
        """Margins, (N,), above 0 if a run is right."""
        noisy = difficulty + 0.5 * self._random.normal(size=len(difficulty))
        return (np.quantile(difficulty, QUALITY[method]) - noisy) * (4 if QUALITY[method] > 0.8 else 0.5)

    def _classification(self, folder: Path) -> None:
        sentences = [self._text(int(count)) for count in self._random.integers(3, 25, self.reviews + 200)]
        labels = self._random.integers(0, 2, len(sentences))
        rows = [Example(sentence, None, int(label)) for sentence, label in zip(sentences, labels, strict=True)]
        parts = {"train": rows[self.reviews :], "dev": rows[: self.reviews]}
        write_task(folder, TaskData(SENTIMENTS, parts))
        gold, difficulty = labels[: self.reviews], self._random.normal(size=self.reviews)
        for method, seed in self._cells():
            margin, rows = self._right(method, difficulty), []
            for epoch in range(EPOCHS + 1):
                noise = 0 if epoch == EPOCHS else self._random.normal(size=len(gold))
                towards = (noise + margin * epoch / EPOCHS) / 2
                logits = np.stack([-towards, towards], axis=1) * np.where(gold == 1, 1, -1)[:, None]
                for i, (low, high) in enumerate(logits.tolist()):
                    rows.append({"epoch": epoch, "id": i, "label": int(gold[i]), "logit_0": low, "logit_1": high})
            self._write("sst2", method, seed, "classification", rows)

    def _answers(self, folder: Path) -> None:
        paragraphs, questions, passage = [], [], [""]
        for number in range(self.questions):
            if number % 10 == 0:
                passage = self._text(120).split()
                paragraphs.append({"context": " ".join(passage), "qas": []})
            first = int(self._random.integers(0, 110))
            answers = [_span(passage, first)] if number % 3 else []
            text = f"{self._random.choice(QUESTION_WORDS)} {self._text(8)}?"
            asked = {"id": f"q{number}", "question": text, "answers": answers, "is_impossible": not answers}
            paragraphs[-1]["qas"].append(asked)
            questions.append((f"q{number}", " ".join(passage), answers))
        for part, of in (("train", paragraphs[:1]), ("dev", paragraphs)):
            document = {"version": "v2.0", "data": [{"title": "t", "paragraphs": of}]}
            write_text(questions_path(folder, part), json.dumps(document))
        difficulty = self._random.normal(size=len(questions))
        for method, seed in self._cells():
            margin, rows = self._right(method, difficulty), []
            for epoch in range(EPOCHS + 1):
                for i, (id_, passage, answers) in enumerate(questions):
                    sure, words = margin[i] - (epoch < EPOCHS), passage.split()
                    said = answers[0] if answers and sure > -0.2 else _span(words, i % 50)
                    found = {"epoch": epoch, "id": id_, "text": said["text"], "start": said["answer_start"]}
                    rows.append({**found, "score": float(sure if answers else -sure), "null_score": 0.0})
            self._write("squad", method, seed, "question_answering", rows)

    def _cells(self) -> list[tuple[str, int]]:
        return [(method, seed) for method in self.methods for seed in self.seeds]

    def _write(self, task: str, method: str, seed: int, kind: Kind, rows: list[dict[str, Any]]) -> None:
        folder = self.folder / "predictions" / task / method / str(seed)
        folder.mkdir(parents=True)
        write_predictions(folder / PREDICTIONS, kind, rows)
        losses = [1.2 - 0.3 * epoch * QUALITY[method] for epoch in range(EPOCHS + 1)]
        rows = [{"epoch": i, "training_loss": loss if i else None, "validation_loss": loss + 0.1, "kept": i == EPOCHS}
                for i, loss in enumerate(losses)]  # fmt: skip
        write_json(folder / LOSSES, rows)
        count = EPOCHS * UPDATES_EACH
        write_json(folder / UPDATES, [[i, 1.2 - 0.8 * QUALITY[method] * i / count] for i in range(1, count + 1)])
        record = self._record(count, 12.5 + seed, int(1_000_000 * TRAINED[method]))
        write_json(self.folder / f"reports/runs/{task}/{method}/{seed}.json", record)

    def _record(self, updates: int, seconds: float, trained: int) -> dict[str, Any]:
        changed = {"updates": updates, "seconds": seconds, "parameters": 1_000_000, "trained_parameters": trained}
        return RUN.model_copy(update=changed | {"origin": ORIGIN}).to_json()

    def _pretraining(self) -> None:
        weights = {"embeddings.weight": np.zeros((100, 8)), "layers.0.weight": np.zeros((8, 8))}
        save_file(weights, self.folder / "models/pretrained/model.safetensors")
        reports = self.folder / "reports"
        header = "epoch,updates,training_loss,validation_loss,perplexity"
        epochs = f"{header}\n0,0,,8.47,4797.9\n1,200,3.2,2.1,8.14\n2,400,1.5,1.85,6.36\n"
        updates = ["update,training_loss", *(f"{update},{8 / (1 + update / 60)}" for update in range(5, 401, 5)), ""]
        write_text(reports / "curves/pretrain/epochs.csv", epochs)
        write_text(reports / "curves/pretrain/updates.csv", "\n".join(updates))
        write_json(reports / "runs/pretrain.json", self._record(400, 120.0, 1_000_000))
        for stage, seconds in (("tokenize", 8.0), ("evaluate", 60.0)):
            write_json(reports / f"runs/stages/{stage}.json", StageRecord(seconds=seconds, origin=ORIGIN).to_json())
        write_json(reports / "sources/source.json", StageRecord(seconds=3.0, origin=ORIGIN).to_json())
        per = {"perplexity_per_token": 6.2, "perplexity_per_word": 6.6, "bits_per_byte": 0.56}
        unigram = {"perplexity_per_token": 163.0, "perplexity_per_word": 198.0, "bits_per_byte": 1.57}
        found = {"beats_unigram": True, "flags": {}, "masked": per, "unigram": unigram}
        write_json(reports / "perplexity-details.json", {"valid": found, "test": found})


def _span(words: list[str], first: int) -> dict[str, Any]:
    """Two words of a passage, as SQuAD writes an answer."""
    return {"text": " ".join(words[first : first + 2]), "answer_start": len(" ".join(words[:first])) + (first > 0)}
