"""What readers call tasks, methods, baselines and figures."""

from collections.abc import Sequence

from retrace.core.paths import ON_TEST
from retrace.report.blocks import figure_text, signed
from retrace.statistics.scales import SCALES, SHARES, Figure

TASKS = {"sst2": ("Reviews", "reviews"), "squad": ("Questions", "questions")}  # title, and what its examples are
NOUNS = {"classification": "texts", "question_answering": "questions"}  # of further tasks
METHODS = {"lora": "LoRA"}
BASELINES = {"tfidf": "tf-idf", "majority": "majority class"}
KINDS = {  # of perplexity
    "masked": "masked, fixed masks",
    "pseudo": "pseudo, each token in turn",
    "causal": "causal, sliding windows",
    "unigram": "unigram baseline",
}
LANGUAGE_MODEL = "language model"  # who has the flags of the running text
P_DIGITS = 4  # of p values
UNITS = {
    "fraction": "%", "percentage": "%", "correlation": "−1 to 1", "count": "", "loss": "nats", "seconds": "s",
    "mebibytes": "MiB",
}  # fmt: skip


def title_of(task: str) -> str:
    """What a task, or the figures on its test set, is called in headings."""
    name = task.removesuffix(ON_TEST)
    title = TASKS[name][0] if name in TASKS else name
    return title if name == task else f"{title}, test set"


def noun_of(task: str, kind: str) -> str:
    """What its examples are, in the plural."""
    name = task.removesuffix(ON_TEST)
    return TASKS[name][1] if name in TASKS else f"{name} {NOUNS[kind]}"


def capital(text: str) -> str:
    """A text that begins with a capital."""
    return text[:1].upper() + text[1:]


def listed(parts: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    *first, end = parts
    return f"{', '.join(first)} {last} {end}" if first else end


def method_name(method: str) -> str:
    """A method's name with a capital."""
    return METHODS.get(method, capital(method))


def baseline_name(baseline: str) -> str:
    """What needs no language model."""
    return BASELINES.get(baseline, baseline.replace("_", " "))


def figure_name(key: str, figure: Figure) -> str:
    """What a figure is called."""
    return figure.name or key.replace("_", " ")


def with_unit(key: str, figure: Figure) -> str:
    """Its name with the unit in which it is shown."""
    unit = UNITS.get(figure.scale)
    return figure_name(key, figure) + (f", {unit}" if unit else "")


def shown_factor(figure: Figure) -> float:
    """What a figure is multiplied with before it is shown: shares are shown as points of 100."""
    return SHARES["percentage"] / SHARES[figure.scale] if figure.scale in SHARES else 1.0


def shown(figure: Figure, value: float | None) -> str:
    """A figure as it is shown, a dash where there is none."""
    return figure_text(None if value is None else shown_factor(figure) * value, digits_of(figure))


def shown_signed(figure: Figure, difference: float) -> str:
    """The difference of two figures as it is shown, with its sign."""
    return signed(shown_factor(figure) * difference, digits_of(figure))


def digits_of(figure: Figure) -> int:
    """How many of its digits after the point are shown."""
    return 1 if figure.scale in SHARES else SCALES[figure.scale].digits


def p_text(p: float | None) -> str:
    """A p value; a small one as a bound."""
    smallest = 10**-P_DIGITS
    return f"below {smallest:.{P_DIGITS}f}" if p is not None and p < smallest else figure_text(p, P_DIGITS)
