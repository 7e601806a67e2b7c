"""What readers call tasks, methods, baselines and figures, and how figures are printed."""

import math
import re
from collections.abc import Iterable, Sequence

from retrace.core.paths import task_and_part
from retrace.evaluation.records import Figures, Intervals
from retrace.report.blocks import NOISE, figure_text, signed
from retrace.statistics.comparisons import ALPHA
from retrace.statistics.scales import SCALES, SHARES, Figure, Legend, factor

Scores = tuple[Figures, Intervals, Figures]  # figures, their intervals, and their standard deviations over seeds

TASKS = {"sst2": ("Reviews", "reviews"), "squad": ("Questions", "questions")}  # title, and noun for the examples
NOUNS = {"classification": "texts", "question_answering": "questions"}  # for other tasks
METHODS = {"lora": "LoRA"}
BASELINES = {"tfidf": "TF-IDF", "majority": "majority class", "no_answer": "never answers"}
KINDS = {  # of perplexity
    "masked": "masked, fixed masks",
    "pseudo": "pseudo, each token in turn",
    "causal": "causal, sliding windows",
    "unigram": "unigram baseline",
}
UNITS = {
    "fraction": "%", "percentage": "%", "correlation": "−1\u00a0to\u00a01", "loss": "nats", "seconds": "s",
    "mebibytes": "MiB",
}  # fmt: skip


def title_of(task: str) -> str:
    """The heading of a task, or of the figures on its test set."""
    name, part = task_and_part(task)
    title = TASKS[name][0] if name in TASKS else name
    return title if part == "dev" else f"{title}, test set"


def title_in_text(task: str) -> str:
    """The same within a sentence; a name that the settings give stays as it is."""
    title = title_of(task)
    return title.lower() if task_and_part(task)[0] in TASKS else title


def noun_of(task: str, kind: str) -> str:
    """What a task's examples are called, in the plural."""
    name, _ = task_and_part(task)
    return TASKS[name][1] if name in TASKS else f"{name} {NOUNS[kind]}"


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def listed(parts: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    *first, end = parts
    return f"{', '.join(first)} {last} {end}" if first else end


def each_once(texts: Iterable[str]) -> str:
    """The texts as a list without repetitions: a, b and c."""
    return listed(list(dict.fromkeys(texts)))


def method_name(method: str) -> str:
    """A method as readers see it, capitalised."""
    return METHODS.get(method, capital(method))


def baseline_name(baseline: str) -> str:
    """A baseline as readers see it."""
    return BASELINES.get(baseline, baseline.replace("_", " "))


def with_unit(key: str, figure: Figure) -> str:
    """A figure's name, its key where it has none, with the unit in which it is printed."""
    name, unit = figure.name or key.replace("_", " "), UNITS.get(figure.scale)
    return f"{name}, {unit}" if unit else name


def shown_factor(figure: Figure) -> float:
    """The factor by which a figure is multiplied for printing: shares are printed as percentages."""
    return factor(figure.scale, "percentage")


def digits_of(figure: Figure) -> int:
    """How many digits after the point are printed."""
    return 1 if figure.scale in SHARES else SCALES[figure.scale].digits


def shown(figure: Figure, value: float | None) -> str:
    """A figure as it is printed, a dash for None."""
    return figure_text(None if value is None else shown_factor(figure) * value, digits_of(figure))


def shown_signed(figure: Figure, difference: float) -> str:
    """A difference, or an end of its interval, as it is printed, with enough digits to show its sign: +1.0 or −0.04."""
    value = shown_factor(figure) * difference
    return signed(value, digits_beside(0, value, digits_of(figure)))


def shown_ends(figure: Figure, low: float, high: float) -> str:
    """The interval of a difference as it is printed: −2.5 to +1.0."""
    return f"{shown_signed(figure, low)} to {shown_signed(figure, high)}"


def digits_beside(bound: float, value: float, least: int) -> int:
    """How many digits, `least` or more, show on which side of a bound a value is, which verdicts go by."""
    return next((digits for digits in range(least, NOISE) if round(value, digits) != bound), least)


def points(figure: Figure) -> str:
    """The word after a difference: " points" for shares, else nothing."""
    return " points" if figure.scale in SHARES else ""


def count_text(number: int) -> str:
    """A number of parameters or tokens: 12.34 M."""
    if number >= 999_995_000:  # which rounds to 1000.00 M
        return f"{number / 1e9:.2f} B"
    return f"{number / 1e6:.2f} M" if number >= 1e6 else f"{number:,}"


def duration(seconds: float) -> str:
    """Seconds in words: in hours, minutes or seconds, whichever reads best."""
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def machine_text(machine: str) -> str:
    """A machine as readers know it: Intel Xeon, 2 cores, for what Linux calls Intel(R) Xeon(R) CPU @ 2.20GHz."""
    return re.sub(r"\((?:R|TM)\)|(?: CPU)? @ [\d.]+ ?GHz| Processor\b", "", machine)


def checkpoint_text(checkpoint: str) -> str:
    """A checkpoint with the first 12 digits of its commit or digest."""
    return re.sub(r"(?<=@[0-9a-f]{12})[0-9a-f]+$", "", checkpoint)


def p_text(p: float | None) -> str:
    """A p value; as a bound where it is small, or would be rounded up to the level that verdicts go by."""
    if p is not None and p < 0.0001:
        return "<0.0001"
    return f"<{ALPHA}" if p is not None and p < ALPHA == round(p, 4) else figure_text(p, 4)


def never_answers(figures: Figures, best: str) -> bool:
    """Whether the `best` score is that of never answering, for which SQuAD's script gives 0 as the threshold.

    Thresholds here are differences of scores, where 0 has no special meaning. False for the scores of other metrics.
    """
    if not {best, "total"} <= figures.keys():
        return False
    nothing = 100 * figures.get("NoAns_total", 0) / figures["total"]
    return figures[f"{best}_thresh"] == 0 and math.isclose(figures[best], nothing, rel_tol=1e-9)


def with_real_thresholds(means: Figures, seeds: Sequence[Figures]) -> Figures:
    """Means over seeds, without a best threshold that some seed does not have because never answering scores best."""

    def is_real(name: str) -> bool:
        best = name.removesuffix("_thresh")
        return best == name or not any(never_answers(figures, best) for figures in seeds)

    return {name: value for name, value in means.items() if is_real(name)}


def score_rows(names: Iterable[str], legend: Legend, columns: Sequence[Scores]) -> list[tuple[str, ...]]:
    """A row for each figure: name, unit and the columns' values."""
    return [
        (legend[name].name, UNITS.get(legend[name].scale, ""),
         *(_with_interval(name, legend[name], *column) for column in columns))
        for name in names
    ]  # fmt: skip


def _with_interval(name: str, figure: Figure, values: Figures, intervals: Intervals, std: Figures) -> str:
    """A figure, after ± its standard deviation over seeds, in brackets its interval, where these are known."""
    text = shown(figure, values.get(name))
    if name in values and name in std and figure.scale != "count":
        text += f" ± {shown(figure, std[name])}"
    if name in intervals:
        text += " ({} – {})".format(*(shown(figure, intervals[name][end]) for end in ("low", "high")))
    return text
