"""The command `retrace`: what people do beside `dvc repro`. Each subcommand is a file of retrace/cli."""

import argparse
import sys

from retrace.core.errors import exit_cleanly
from retrace.core.registry import load_plugin, plugin_names

COMMANDS = "retrace.cli"


def main() -> None:
    """The console script."""
    exit_cleanly(_main)


def _main() -> None:
    parser = argparse.ArgumentParser(prog="retrace", description="A language-model lab that is one cached pipeline.")
    chosen = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    names = [name for name in plugin_names(COMMANDS) if name != "main"]
    for name in [name for name in names if name in sys.argv[1:2]] or names:  # a command loads no other's modules
        command = load_plugin(COMMANDS, name, "command")
        command.add_arguments(chosen.add_parser(name, help=command.HELP, description=command.__doc__))
    arguments = parser.parse_args()
    load_plugin(COMMANDS, arguments.command, "command").run(arguments)


if __name__ == "__main__":
    main()
