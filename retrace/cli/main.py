"""The command `retrace`: what people do besides `dvc repro`, and how commands print tables and lists.

COMMANDS names the file of each command, which is imported only when the command is called. The function of that name is
the command, its docstring the help, and its parameters the arguments and options as typer reads them. A file without
such a function has its subcommands in SUBCOMMANDS, and its own docstring is the help. A file's CONTEXT, if any, is
typer's context settings.
"""

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from retrace.core.errors import InputError, exit_cleanly, printable

COMMANDS = {
    "check": ("check", "check params.yaml and data/params.yaml without running anything"),
    "demo": ("predict", "serve a local page where all trained models answer"),
    "doctor": ("doctor", "find what is wrong here, and the command that fixes it"),
    "memory": ("estimates", "estimate the memory of a training step"),
    "needs": ("estimates", "estimate disk and memory of the runs in params.yaml"),
    "parameters": ("estimates", "count the parameters of a model, by name"),
    "plan": ("estimates", "estimate memory and time of a pretraining run"),
    "predict": ("predict", "ask fine-tuned models about a text or a question"),
    "preset": ("settings", "write the settings of a preset, such as real, into params.yaml"),
    "publish": ("publish", "send a model to the Hugging Face Hub"),
    "records": ("study", "print what was reached with fixed budgets, run by run"),
    "repro": ("repro", "run the pipeline, pulling from and pushing to a remote"),
    "review": ("review", "show what a change does to the results"),
    "score": ("score", "score a file of predictions"),
    "settings": ("settings", "print what every key of params.yaml and data/params.yaml means"),
    "spread": ("spread", "run the pipeline with its fine-tuning runs side by side"),
    "stop": ("repro", "ask running stages to save and stop"),
    "study": ("study", "run published studies, and compare their figures with Retrace's"),
}
HELP = "Train, fine-tune and compare language models in one cached pipeline."
WIDTH = 10_000  # of tables, so that no line is wrapped
SHOWN = 5  # items of a list
EXPECTED = {"float_parsing": "a number", "int_parsing": "a whole number"}  # by the type of pydantic's error


class Commands(TyperGroup):
    """The commands, imported when called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            raise InputError(f"retrace {cmd_name}: no such command; expected one of {', '.join(COMMANDS)}")
        return load_command(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def load_command(name: str) -> Any:
    """Import the file of a command."""
    module = import_module(f"retrace.cli.{COMMANDS[name][0]}")
    app = typer.Typer(name=name, add_completion=False, rich_markup_mode=None, help=module.__doc__)
    commands = {name: getattr(module, name)} if hasattr(module, name) else module.SUBCOMMANDS
    for each, function in commands.items():
        app.command(each, context_settings=getattr(module, "CONTEXT", None))(function)
    return typer.main.get_command(app)


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a header, columns of figures flush right; an empty header is left out."""
    from rich.console import Console  # here, as most commands print no table
    from rich.table import Table

    from retrace.report.blocks import Table as Cells

    texts = [tuple(printable(str(cell)) for cell in row) for row in rows]
    cells = Cells(header, texts)
    table = Table(*header, box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(header))
    for row in texts:
        table.add_row(*row)
    for number, column in enumerate(table.columns):
        column.justify = "right" if cells.is_numeric(number) else "left"
    Console(width=WIDTH, markup=False, highlight=False, emoji=False).print(table)


def some_of(items: Sequence[object]) -> str:
    """The first few items, and how many more there are."""
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(map(str, items[:SHOWN])) + more


def main() -> None:
    """The console script."""
    exit_cleanly(_main)


def _main() -> None:
    commands = Commands(name="retrace", help=HELP, rich_markup_mode=None)
    try:
        code = commands.main(sys.argv[1:] or ["--help"], prog_name="retrace", standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "retrace"
        if hasattr(error.__cause__, "errors"):  # pydantic's, which typer uses to read arguments
            error.message = _wrong_value(error.__cause__)
        raise InputError(f"{command}: {error.format_message().removesuffix('.')} (see {command} --help)") from None
    if code:
        sys.exit(code)


def _wrong_value(error: Any) -> str:
    """What pydantic finds wrong with a value, in our words."""
    found = error.errors()[0]
    if found["type"] == "value_error":  # raised by our own check or for a choice; it names the value
        return str(found["ctx"]["error"])
    expected = EXPECTED.get(found["type"], found["msg"].removeprefix("Input should be "))
    return f"{found['input']!r} is not allowed; expected {expected}"


if __name__ == "__main__":
    main()
