"""A figure as a report printed it, with the digits that it printed."""

import re
from dataclasses import dataclass
from decimal import Decimal

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_TEXT = re.compile(rf"({NUMBER})(?: *± *({NUMBER}))?")
_HALF = 0.5 + 1e-9  # of the last digit, and what floats are off by


@dataclass(frozen=True)
class Printed:
    """A number or text of published.yaml, such as 0.5092, "77.41 ± 2.81" or "1.84e-2"."""

    value: float
    sd: float | None = None
    digits: int | None = None  # after the point; below 0 where tens or more were rounded; None where not known

    def is_rounded(self, value: float, digits: int) -> bool:
        """Whether a value is this one to the last digit that was printed.

        Of a number, which has lost the zeros at its end, `digits` at least count.
        """
        if self.digits is not None:
            digits = self.digits
        else:
            digits = max(digits, -int(Decimal(repr(self.value)).normalize().as_tuple().exponent))
        return abs(value - self.value) <= _HALF * 10.0**-digits


def printed(cell: float | str | None) -> Printed | None:
    """What a cell of published.yaml says; None where the report has no figure.

    Raises ValueError where text is no figure.
    """
    if cell is None:
        return None
    if not isinstance(cell, str):
        return Printed(cell)
    found = _TEXT.fullmatch(cell.strip())
    if found is None:
        raise ValueError(f"{cell!r} is not allowed; expected a number, or text such as 77.41 ± 2.81 or 1.3e4")
    value, sd = found.groups()
    digits = -int(Decimal(value).as_tuple().exponent)
    return Printed(float(value), None if sd is None else float(sd), digits)
