"""A project that was run, without training: five methods with three seeds, whose predictions a seeded generator makes.

Sentences and passages are of made-up words. A method is right as often as QUALITY says, on the easier examples more
often, and its seeds differ a little. The stages evaluate and report run for real on it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

from retrace.core.files import write_json, write_text
from retrace.core.records import Origin, RunRecord, StageRecord
from retrace.core.settings import read_yaml
from retrace.results.grid import Kind
from retrace.results.predictions import LOSSES, PREDICTIONS, UPDATES, write_predictions
from tests.toy import ROOT

METHODS = ("full", "scratch", "frozen", "lora", "adapter")
QUALITY = {"full": 0.93, "scratch": 0.68, "frozen": 0.55, "lora": 0.94, "adapter": 0.90}
TRAINED = {"full": 1.0, "scratch": 1.0, "frozen": 0.02, "lora": 0.1, "adapter": 0.09}
EPOCHS, UPDATES_EACH = 3, 40
QUESTION_WORDS = ("who", "what", "when", "where", "which", "how")
ORIGIN = Origin(
    commit="0123456789abcdef0123456789abcdef01234567", clean=True, date="2026-01-31", machine="a processor, 2 cores",
    versions={"python": "3.11.0", "torch": "2.0"},
)  # fmt: skip


class Maker:
    """Writes the folder of a project."""

    def __init__(
        self, folder: Path, reviews: int, questions: int, methods: tuple[str, ...], seeds: tuple[int, ...]
    ) -> None:
        self._folder, self._methods, self._seeds = folder, methods, seeds
        self._reviews, self._questions = reviews, questions
        self._random = np.random.default_rng(0)
        letters = np.array(list("abcdefghilmnoprstuv"))
        self._words = ["".join(self._random.choice(letters, self._random.integers(2, 10))) for _ in range(4000)]

    def make(self) -> None:
        """All that evaluation and the report read."""
        source, finetune = self._folder / "data/sample", {"tasks": ["sst2"], "questions": ["squad"]}
        params = read_yaml(ROOT / "params.yaml")
        params["finetune"] = finetune | {
            "methods": list(self._methods), "squad_methods": list(self._methods), "seeds": list(self._seeds)
        }  # fmt: skip
        params["metrics"] |= {"bootstrap_samples": 200, "question_answering": ["squad_v2"]}
        params["squad"]["question_match"] = True
        write_json(self._folder / "params.yaml", params)  # json is YAML too
        write_text(self._folder / "data/params.yaml", (ROOT / "data/params.yaml").read_text())
        write_json(self._folder / "models/pretrained/source.json", {"from": None})
        write_json(source / "card.json", {
            "text": {"train": {"documents": 59, "words": 68_735}}, "sst2": {"dev": {"sentences": self._reviews}},
            "findings": ["sst2: one sentence of dev is in train"],
        })  # fmt: skip
        for name in ("classification", "question_answering"):
            (self._folder / "data" / name).mkdir()
        self._classification(source)
        self._answers(source)
        self._pretraining()

    def _text(self, count: int) -> str:
        """Words of which few are frequent, as in any language."""
        return " ".join(self._words[min(3999, int(rank) - 1)] for rank in self._random.zipf(1.3, count))

    def _right(self, method: str, difficulty: np.ndarray) -> np.ndarray:
        """Margins, (N,), above 0 where a run is right."""
        noisy = difficulty + 0.5 * self._random.normal(size=len(difficulty))
        return (np.quantile(difficulty, QUALITY[method]) - noisy) * (4 if QUALITY[method] > 0.8 else 0.5)

    def _classification(self, source: Path) -> None:
        sentences = [self._text(int(count)) for count in self._random.integers(3, 25, self._reviews + 200)]
        labels = self._random.integers(0, 2, len(sentences))
        rows = [f"{sentence}\t{label}" for sentence, label in zip(sentences, labels, strict=True)]
        for part, of in (("train", rows[self._reviews :]), ("dev", rows[: self._reviews])):
            write_text(source / f"sst2/{part}.tsv", "\n".join(["sentence\tlabel", *of]) + "\n")
        gold, difficulty = labels[: self._reviews], self._random.normal(size=self._reviews)
        for method, seed in self._cells():
            margin = self._right(method, difficulty)
            rows = []
            for epoch in range(EPOCHS + 1):
                towards = (
                    margin if epoch == EPOCHS else self._random.normal(size=len(gold)) + margin * epoch / EPOCHS
                ) / 2
                logits = np.stack([-towards, towards], axis=1) * np.where(gold == 1, 1, -1)[:, None]
                rows += [
                    {"epoch": epoch, "id": i, "label": int(gold[i]), "logit_0": float(of[0]), "logit_1": float(of[1])}
                    for i, of in enumerate(logits)
                ]  # fmt: skip
            self._write("sst2", method, seed, "classification", rows)

    def _answers(self, source: Path) -> None:
        paragraphs, questions, passage = [], [], [""]
        for number in range(self._questions):
            if number % 10 == 0:
                passage = self._text(120).split()
                paragraphs.append({"context": " ".join(passage), "qas": []})
            first = int(self._random.integers(0, 110))
            start, answer = len(" ".join(passage[:first])) + (first > 0), " ".join(passage[first : first + 2])
            answers = [{"text": answer, "answer_start": start}] if number % 3 else []
            text = f"{self._random.choice(QUESTION_WORDS)} {self._text(8)}?"
            paragraphs[-1]["qas"].append(
                {"id": f"q{number}", "question": text, "answers": answers, "is_impossible": not answers}
            )
            questions.append((f"q{number}", " ".join(passage), answers))
        for part, of in (("train", paragraphs[:1]), ("dev", paragraphs)):
            write_text(
                source / f"squad/{part}.json",
                json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": of}]}),
            )
        difficulty = self._random.normal(size=len(questions))
        for method, seed in self._cells():
            margin = self._right(method, difficulty)
            rows = []
            for epoch in range(EPOCHS + 1):
                for i, (id_, passage, answers) in enumerate(questions):
                    sure = margin[i] if epoch == EPOCHS else margin[i] - 1.0
                    wrong = " ".join(passage.split()[i % 50 : i % 50 + 2])
                    right = answers[0] if answers and sure > -0.2 else None
                    said = {"text": right["text"], "start": right["answer_start"]} if right else {
                        "text": wrong, "start": len(" ".join(passage.split()[: i % 50])) + (i % 50 > 0)}  # fmt: skip
                    scores = {"score": float(sure if answers else -sure), "null_score": 0.0}
                    rows.append({"epoch": epoch, "id": id_, **said, **scores})
            self._write("squad", method, seed, "question_answering", rows)

    def _cells(self) -> list[tuple[str, int]]:
        return [(method, seed) for method in self._methods for seed in self._seeds]

    def _write(self, task: str, method: str, seed: int, kind: Kind, rows: list[dict[str, Any]]) -> None:
        folder = self._folder / "predictions" / task / method / str(seed)
        folder.mkdir(parents=True)
        write_predictions(folder / PREDICTIONS, kind, rows)
        losses = [1.2 - 0.3 * epoch * QUALITY[method] for epoch in range(EPOCHS + 1)]
        write_json(folder / LOSSES, [
            {"epoch": i, "training_loss": loss if i else None, "validation_loss": loss + 0.1, "kept": i == EPOCHS}
            for i, loss in enumerate(losses)
        ])  # fmt: skip
        count = EPOCHS * UPDATES_EACH
        write_json(folder / UPDATES, [[i, 1.2 - 0.8 * QUALITY[method] * i / count] for i in range(1, count + 1)])
        trained = int(1_000_000 * TRAINED[method])
        record = self._record(count, 12.5 + seed, trained)
        write_json(self._folder / f"reports/runs/{task}/{method}/{seed}.json", record.to_json())

    def _record(self, updates: int, seconds: float, trained: int) -> RunRecord:
        return RunRecord(
            updates=updates, seconds=seconds, tokens_per_second=9000, waiting_percent=0.5, teraflops_per_second=0.05,
            utilisation_percent=None, peak_memory_mib=800, gpu_memory_mib=None, parameters=1_000_000,
            trained_parameters=trained, processes=1, device="cpu", precision="fp32", tokens=1_400_000, origin=ORIGIN,
        )  # fmt: skip

    def _pretraining(self) -> None:
        weights = {"embeddings.weight": np.zeros((100, 8)), "layers.0.weight": np.zeros((8, 8))}
        (self._folder / "models/pretrained").mkdir(parents=True)
        save_file(weights, self._folder / "models/pretrained/model.safetensors")
        reports = self._folder / "reports"
        curve = pd.DataFrame({
            "epoch": [0, 1, 2], "training_loss": [None, 3.2, 1.5], "validation_loss": [8.47, 2.1, 1.85],
            "perplexity": [4797.9, 8.14, 6.36],
        })  # fmt: skip
        write_text(reports / "curves/pretrain/epochs.csv", curve.to_csv(index=False))
        updates = pd.DataFrame({"update": range(5, 401, 5)}).assign(
            training_loss=lambda of: 8 / (1 + of["update"] / 60)
        )
        write_text(reports / "curves/pretrain/updates.csv", updates.to_csv(index=False))
        write_json(reports / "runs/pretrain.json", self._record(400, 120.0, 1_000_000).to_json())
        for stage, seconds in (("tokenize", 8.0), ("evaluate", 60.0)):
            write_json(reports / f"runs/stages/{stage}.json", StageRecord(seconds=seconds, origin=ORIGIN).to_json())
        source = StageRecord(seconds=3.0, origin=ORIGIN)
        write_json(reports / "sources/source.json", source.to_json())
        per = {"perplexity_per_token": 6.2, "perplexity_per_word": 6.6, "bits_per_byte": 0.56}
        unigram = {"perplexity_per_token": 163.0, "perplexity_per_word": 198.0, "bits_per_byte": 1.57}
        splits = {"measures": {"masked": per, "unigram": unigram}, "beats_unigram": True, "flags": {}}
        found = {name: of for name, of in splits.items() if name != "measures"} | splits["measures"]
        write_json(reports / "perplexity-details.json", {"valid": found, "test": found})


def make_project(
    folder: Path,
    reviews: int = 800,
    questions: int = 896,
    methods: tuple[str, ...] = METHODS,
    seeds: tuple[int, ...] = (1, 2, 3),
) -> None:
    """Write a project into an empty folder; `evaluate.main()` and `report.main()` run in it."""
    Maker(folder, reviews, questions, methods, seeds).make()
