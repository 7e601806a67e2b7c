"""The metrics as modules of Hugging Face's `evaluate`, which load, describe themselves and combine as its own do.

    squad = evaluate.load("retrace/evaluation/hf_module.py", "squad_v2")
    squad.compute(predictions=["Ada Lund"], references=[["Ada Lund", "Lund"]])
    evaluate.combine([squad, evaluate.load("retrace/evaluation/hf_module.py", "rouge")])

The name is that of a file of `retrace/evaluation/metrics`. Nothing is downloaded. No stage imports this file, as
`evaluate` alone takes longer to import than the stage that scores takes to start.
"""

import inspect
import math
from typing import Any

import evaluate
import numpy as np
from datasets import Features, List, Value

from retrace.core.errors import InputError
from retrace.core.settings import plugin_names
from retrace.datasets.squad import Answer, Question
from retrace.evaluation.outcomes import METRICS, Answered, Classified, answered, figures, load_metric, sum_to_one
from retrace.evaluation.settings import metric_names

_STRING, _NUMBER = Value("string"), Value("float64")
_SQUAD = {
    "predictions": {"id": _STRING, "prediction_text": _STRING, "no_answer_probability": _NUMBER},
    "references": {"id": _STRING, "answers": {"text": List(_STRING), "answer_start": List(Value("int64"))}},
}


class RetraceMetric(evaluate.Metric):
    """The metric called `config_name`."""

    def __init__(self, config_name: str | None = None, **options: Any) -> None:
        names = plugin_names(METRICS)
        if config_name not in names:
            raise InputError(f"config_name: {config_name!r} is not allowed; expected one of {', '.join(names)}")
        self._metric = load_metric(config_name, "config_name")
        self._outcome = _answered if config_name in metric_names("Answered") else _classified
        super().__init__(config_name=config_name, **options)
        self.info.module_name = config_name

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=inspect.getdoc(self._metric) or "",
            citation=getattr(self._metric, "CITATION", ""),
            inputs_description=inspect.getdoc(self._outcome) or "",
            features=FEATURES[self._outcome],
        )

    def _compute(self, *, predictions: Any = None, references: Any = None, **options: Any) -> dict[str, float]:
        for name, given in (("references", references), ("predictions", predictions)):
            if not given or any(value is None for value in given):
                raise InputError(f"{name}: expected one for every example")
        return figures(self._metric, self._outcome(predictions, references, **options))


def _answered(predictions: list[Any], references: list[Any], no_answer_threshold: float = 1.0) -> Answered:
    """Predictions are answers, "" for none; references are lists of right answers, empty if there is none.

    Or both have the format of `evaluate`'s squad_v2, with no_answer_probability, and are matched by id; answers whose
    probability is above `no_answer_threshold` (default 1.0) count as no answer.
    """
    if isinstance(predictions[0], str):
        return Answered(tuple(tuple(golds) for golds in references), tuple(predictions))
    right = {row["id"]: tuple(Answer(text, 0) for text in row["answers"]["text"]) for row in references}
    spans = {row["id"]: row["prediction_text"] for row in predictions}
    if right.keys() != spans.keys() or len(right) < len(references):
        unknown = next((f": {name} is only predicted" for name in spans if name not in right), "")
        raise InputError(f"predictions and references are of different questions{unknown}")
    no_answer = {row["id"]: row["no_answer_probability"] for row in predictions}
    if wrong := [at for at in no_answer.values() if at is None or not math.isfinite(at)]:
        raise InputError(f"no_answer_probability: {wrong[0]} is not allowed; expected a finite number")
    questions = [Question(name, "", "", right[name]) for name in spans]
    return answered(questions, spans, no_answer, no_answer_threshold)


def _classified(predictions: list[Any], references: list[Any]) -> Classified:
    """Predictions are numbers of classes, or the probabilities of all classes; references are numbers of classes."""
    if len(set(map(np.size, predictions))) > 1:
        raise InputError("predictions: expected equally many probabilities for every example")
    labels, probabilities = _whole("references", references), None
    if np.ndim(predictions) == 1:
        predicted = _whole("predictions", predictions)
    else:
        probabilities = np.array(predictions)
        wrong = ~(sum_to_one(probabilities) & (probabilities >= 0).all(axis=1))
        if wrong.any():
            raise InputError(f"predictions: {predictions[wrong.argmax()]} is not allowed; expected probabilities")
        predicted = probabilities.argmax(axis=1)
    count = 1 + max(labels.max(), predicted.max()) if probabilities is None else probabilities.shape[1]
    for name, numbers in (("references", labels), ("predictions", predicted)):
        if numbers.min() < 0 or numbers.max() >= count:
            raise InputError(f"{name}: {numbers.min()} to {numbers.max()}; expected numbers of {count} classes from 0")
    return Classified(tuple(map(str, range(count))), labels, predicted, probabilities)


def _whole(name: str, numbers: list[float]) -> np.ndarray:
    """Numbers of classes, (N,). Raises InputError where one is not whole, such as a probability of one class."""
    for number in numbers:
        if not float(number).is_integer():
            raise InputError(f"{name}: {number} is not allowed; expected numbers of classes")
    return np.array(numbers, dtype=np.int64)


FEATURES = {
    _answered: [Features({"predictions": _STRING, "references": List(_STRING)}), Features(_SQUAD)],
    # As whole numbers, `datasets` would cut 0.9 to 0.
    _classified: [Features({"predictions": given, "references": _NUMBER}) for given in (_NUMBER, List(_NUMBER))],
}
