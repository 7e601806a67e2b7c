"""The command `retrace`: its help, and what it loads."""

from pathlib import Path

import pytest

from retrace.cli import main as cli
from retrace.datasets.card import write_card
from retrace.report.flags import Found, flags_text
from tests.commands import python, refused, retrace
from tests.toy import copy_settings


def test_help_lists_every_command_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(cli.load_command(name).name == name for name in cli.COMMANDS)
    monkeypatch.setattr(cli, "load_command", None)
    shown = retrace("--help").out
    assert all(f"  {name} " in shown and text in shown for name, (_, text) in cli.COMMANDS.items())


def test_a_name_in_the_data_does_not_act_on_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as that of a class: it could set the window's title, or hide what follows."""
    name = "\x1b]0;title\x07\x9b8m"
    cli.print_table(("label", "probability"), [(name, 0.5)])
    write_card(tmp_path, "own", {"findings": [f"dev has no example of {name}"]})
    print(flags_text([Found("own", "full", "", "one_class_only", f"all are predicted as {name}", {})]))
    shown = capsys.readouterr().out
    assert shown.count("\\x1b]0;title\\x07\\x9b8m") == 3
    assert shown.replace("\n", "").isprintable()


def test_an_unknown_command_is_one_line() -> None:
    assert refused("skore").startswith("error: retrace skore: no such command; expected one of check, ")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("review --bse main", "retrace review: No such option: --bse (Possible options: --base, --brief)"),
        ("predict", "retrace predict: Missing argument 'task'"),
        ("study recrd", "retrace study: No such command 'recrd'. Did you mean 'record'?"),
        ("plan --tokens abc", "retrace plan: Invalid value for '--tokens': 'abc' is not allowed; expected a number"),
        (
            "study record two-cores 1 two --change x",
            "retrace study record: Invalid value for 'SEEDS': 'two' is not allowed; expected a whole number",
        ),
        (
            "study run two-cores --seed -1",
            "retrace study run: Invalid value for '--seed': '-1' is not allowed; expected greater than or equal to 0",
        ),
        (
            "publish org/name --even-if foo",
            "retrace publish: Invalid value for '--even-if': 'foo' is not one of 'dirty', 'stale', 'unlearned'",
        ),
        ("--version", "retrace: No such option: --version"),
    ],
)
def test_a_command_that_is_not_understood_is_one_line_that_says_where_help_is(command: str, said: str) -> None:
    assert refused(*command.split()) == f"error: {said} (see {said.partition(':')[0]} --help)\n"


def test_without_arguments_it_is_the_help() -> None:
    assert retrace() == retrace("--help")


QUICK = [
    ("stop", "nothing is running here", {"torch", "transformers", "pandas", "rich"}),
    ("check", "params.yaml, data/params.yaml: ok", {"torch", "transformers"}),
    ("plan --help", "memory and time of pretraining", {"torch", "transformers", "pandas"}),
    ("review --help", "how the results here differ from those of REV", {"torch", "transformers", "sklearn", "pandas"}),
    ("doctor --help", "Exit code 1 if something is wrong", {"torch", "transformers", "dvc"}),
]


@pytest.mark.parametrize(("command", "said", "slow"), QUICK)
def test_a_command_that_is_called_often_begins_at_once(tmp_path: Path, command: str, said: str, slow: set[str]) -> None:
    copy_settings(tmp_path)
    (tmp_path / "dvc.yaml").touch()
    (tmp_path / ".dvc").mkdir()
    call = "import sys; from retrace.cli.main import main\ntry: main()\n"
    call += f"finally: print(sys.modules.keys() & {slow!r})"
    done = python(call, *command.split(), folder=tmp_path)
    assert said in done.stdout
    assert done.stdout.splitlines()[-1] == "set()", done.stderr
