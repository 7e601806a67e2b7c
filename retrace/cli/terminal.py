"""What commands share: tables, and checks of options."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from retrace.core.errors import InputError

WIDTH = 10_000  # a table is as wide as it needs to be: what reads a pipe does not want its lines broken


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a header, columns flush right; an empty header is left out."""
    table = Table(*(header or ()), box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(header))
    for row in rows:
        table.add_row(*map(str, row))
    for column in table.columns:
        column.justify = "right"
    Console(width=WIDTH, markup=False, highlight=False, emoji=False).print(table)


def above_0(param: typer.CallbackParam, value: Any) -> Any:
    """An option's callback: a number above 0, each number of a list too."""
    if any(number is not None and number <= 0 for number in _each(value)):
        raise InputError(f"{param.opts[0]}: expected a number above 0")
    return value


def one_of(allowed: Iterable[str]) -> Callable[[typer.CallbackParam, Any], Any]:
    """An option's callback: one of these names, each of a list too."""
    names = list(allowed)

    def check(param: typer.CallbackParam, value: Any) -> Any:
        for name in _each(value):
            if name is not None and name not in names:
                raise InputError(f"{param.opts[0]}: {name!r} is not allowed; expected one of {', '.join(names)}")
        return value

    return check


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
