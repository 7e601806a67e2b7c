"""How commands print tables."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

WIDTH = 10_000  # a table is as wide as it needs to be: what reads a pipe does not want its lines broken


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a header, columns flush right; an empty header is left out."""
    table = Table(*(header or ()), box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(header))
    for row in rows:
        table.add_row(*map(str, row))
    for column in table.columns:
        column.justify = "right"
    Console(width=WIDTH, markup=False, highlight=False, emoji=False).print(table)
