"""One option per column, declared once."""

import inspect
from typing import Annotated

import typer
from typer.testing import CliRunner

from evengraph.cli.options import COLUMN_HELP, column_options


def make_app(*names):
    app = typer.Typer()
    calls = []

    @app.command()
    @column_options(*names)
    def command(
        data: Annotated[str, typer.Argument()],
        columns: dict[str, str],
        count: Annotated[int, typer.Option()] = 3,
    ) -> None:
        """Do something."""
        calls.append((data, columns, count))

    return app, command, calls


def test_a_command_gets_the_columns_that_were_named():
    app, command, calls = make_app()
    done = CliRunner().invoke(
        app, ["shop", "--label", "kind", "--split-column", "part", "--count", "5"]
    )
    assert done.exit_code == 0, done.output
    assert calls == [("shop", {"label": "kind", "split": "part"}, 5)]
    assert list(inspect.signature(command).parameters) == ["data", "count", *COLUMN_HELP]
    assert command.__doc__ == "Do something."


def test_a_command_may_take_some_columns_only():
    app, _, calls = make_app("label", "id")
    runner = CliRunner()
    assert runner.invoke(app, ["shop", "--id", "account"]).exit_code == 0
    assert calls == [("shop", {"id": "account"}, 3)]
    assert runner.invoke(app, ["shop", "--weight", "amount"]).exit_code == 2


def test_every_option_is_in_the_help():
    shown = CliRunner().invoke(make_app()[0], ["--help"], env={"COLUMNS": "120"}).output
    for flag in ("--edges", "--split-column", "--time-column", "--drop"):
        assert flag in shown
    assert "--columns" not in shown
