"""A figure as a report printed it: the text, what it says, and Retrace's figure with as many digits.

Such texts are 0.50, 109,482,240 and 0.13263%; 77.41 ± 2.81; 2.11E-05, 1.3e4 and 1.84 × 10⁻²; 110M and 1.23B; 0.80-0.85
and 124 to 99, which are both ends of a range; 1 hour, 46 minutes and 38 seconds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_RAISE = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NUMBER = re.compile(
    r"(?P<mantissa>[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
    r"(?:(?P<power>[eE]| × 10)(?P<exponent>[-+]?\d+|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?(?P<unit>[%KMB]?)"
)
_PARTS = re.compile(r" ?± ?|(?<=\d) to (?=\d)|(?<=\d)[-–](?=\d)")
_TIME = re.compile(r"(\d+) (hour|minute|second)s?")
_TIMES = re.compile(rf"{_TIME.pattern}(?:(?:, | and ){_TIME.pattern})*")
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}
_THOUSANDS = {"K": 3, "M": 6, "B": 9}
_HALF = 0.5 + 1e-9  # of the last digit, and what floats are off by


@dataclass(frozen=True)
class Form:
    """How a figure is written."""

    digits: int  # after the point; where there is a power of ten, of what stands before it
    power: str = ""  # what stands before the exponent: e, E or × 10
    unit: str = ""  # %, or nothing

    def text(self, value: float, sd: float | None = None, interval: Mapping[str, float] | None = None) -> str:
        """The value, never as 0 where it is not; after ± its spread, in brackets its interval."""
        vanishes = bool(value) and not self.power and round(value, self.digits) == 0
        text = (f"{value:.3g}" if vanishes else self._number(value)) + self.unit
        text += "" if sd is None else f" ± {self._number(sd)}"
        return (
            text if interval is None else f"{text} ({self._number(interval['low'])} – {self._number(interval['high'])})"
        )

    def _number(self, value: float) -> str:
        if not self.power:
            return f"{value:,.{self.digits}f}"
        mantissa, exponent = f"{value:.{self.digits}e}".split("e") if value else ("0", "")
        if "×" in self.power:
            exponent = str(int(exponent or 0)).translate(_RAISE)
        return f"{mantissa}{self.power}{exponent}" if value else mantissa


@dataclass(frozen=True)
class Printed:
    """A figure of published.yaml."""

    text: str
    value: float  # the first end of a range
    digits: int  # after the point; below 0 where tens or more were rounded
    form: Form
    sd: float | None = None
    end: float | None = None  # the other end of a range

    @property
    def half(self) -> float:
        """Half of the last digit: what the value may be off by, as it was rounded."""
        return half_of_last(self.digits)


def half_of_last(digits: int) -> float:
    """Half of the last of so many digits after the point."""
    return _HALF * 10.0**-digits


def printed(cell: float | str | None) -> Printed | None:
    """What a cell of published.yaml says; None where the report has no figure.

    Raises ValueError where text is no figure, or where it is a number: the zeros at its end are gone.
    """
    if cell is None:
        return None
    if not isinstance(cell, str):
        raise ValueError(
            f"{cell!r} is not allowed; expected text in quotes, which keeps the digits as they were printed"
        )
    text = cell.strip()
    if _TIMES.fullmatch(text):
        seconds = sum(int(count) * _SECONDS[unit] for count, unit in _TIME.findall(text))
        return Printed(text, float(seconds), 0, Form(0))
    numbers = [_NUMBER.fullmatch(part) for part in _PARTS.split(text)]
    if not all(numbers) or len(numbers) > 2:
        raise ValueError(f"{cell!r} is not allowed; expected a figure as it was printed, such as 0.50 or 77.41 ± 2.81")
    (value, digits, form), *rest = [_read(number) for number in numbers if number]
    other = rest[0][0] if rest else None
    is_spread = "±" in text
    return Printed(text, value, digits, form, other if is_spread else None, None if is_spread else other)


def _read(number: re.Match[str]) -> tuple[float, int, Form]:
    """The value, its digits after the point, and its form."""
    unit, power = number["unit"], number["power"] or ""
    mantissa = number["mantissa"].replace(",", "")
    exponent = int((number["exponent"] or "0").translate(_RAISED)) + _THOUSANDS.get(unit, 0)
    exact = Decimal(mantissa).scaleb(exponent)
    behind_point = len(mantissa.partition(".")[2])
    digits = -int(exact.as_tuple().exponent)
    return float(exact), digits, Form(behind_point if power else max(0, digits), power, unit if unit == "%" else "")
