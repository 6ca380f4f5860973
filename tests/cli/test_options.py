"""Options and their values: columns, settings, splits and help."""

import inspect
import subprocess
import sys
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from command_line import call
from evengraph.cli import options
from evengraph.cli.commands import COMMANDS
from evengraph.cli.options import (
    COLUMN_HELP,
    column_options,
    parse_methods,
    parse_seconds,
    parse_settings,
)
from evengraph.datasets import DATASETS
from evengraph.methods import METHODS


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("10m", 600), (" 2 h ", 7200)]
)
def test_durations(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "soon", "5d", "m", "1e3", "inf"])
def test_durations_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="90, 10m or 2h"):
        parse_seconds(text)


def test_methods():
    assert parse_methods("gcn") == ["gcn"]
    assert parse_methods("lte4g, gcn,lte4g") == ["lte4g", "gcn"]
    assert parse_methods("all") == list(METHODS)


def test_settings_go_to_the_methods_that_have_them():
    params, sentences = parse_settings(["gcn", "reweight"], ["scale=2", "hidden=8"])
    assert params == {"gcn": {"hidden": 8}, "reweight": {"scale": 2, "hidden": 8}}
    assert sentences == ["scale=2 applied to Re-weight only."]
    with pytest.raises(ValueError, match="alpha"):
        parse_settings(["gcn", "reweight"], ["alpha=2"])


def test_a_setting_may_be_for_one_method():
    names = ["gcn", "iceberg"]
    params, sentences = parse_settings(names, ["IceBerg.learning_rate=0.1", "hidden=8"])
    assert params == {"gcn": {"hidden": 8}, "iceberg": {"hidden": 8, "learning_rate": 0.1}}
    assert sentences == ["learning_rate=0.1 applied to IceBerg only."]
    both = ["iceberg.hidden=4", "hidden=8"]  # what is set for one method wins, in any order
    assert parse_settings(names, both)[0] == {"gcn": {"hidden": 8}, "iceberg": {"hidden": 4}}
    assert parse_settings(["gcn"], [" gcn.hidden = 8"]) == ({"gcn": {"hidden": 8}}, [])
    for wrong in ("smote.hidden=8", "nonsense.hidden=8"):
        with pytest.raises(ValueError, match="method"):
            parse_settings(names, [wrong])


def test_parameters_of_methods_that_are_not_run_are_refused():
    with pytest.raises(ValueError, match=r"boosting is not among the methods to run: auto\."):
        parse_settings(["auto"], ["boosting.leaves=7"])


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


def test_names_are_those_of_the_tables():
    assert options.data_sets() == list(DATASETS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run nowhere --label x", "There is no folder nowhere and no such data set"),
        ("inspect ./nodes.csv", "./nodes.csv does not exist."),
        ("predict nowhere t.csv", "give the folder that a model was saved in."),
        ("compare coro", "Did you mean 'cora'?"),
    ],
)
def test_a_wrong_name_is_found_before_torch_is_imported(words, message):
    code = f"""
import sys
from evengraph.cli import main
try:
    main({words.split()!r})
finally:
    print("torch" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == "False\n"


@pytest.mark.parametrize("words", [["run"], ["data"], ["data", "list"], []])
def test_a_flag_has_no_type(words, capsys):
    assert call(*words, "--help") == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert "bool" not in shown.lower()


@pytest.mark.parametrize("name", COMMANDS)
def test_everyday_options_come_first_on_one_screen(name, capsys):
    assert call(name, "--help") == 0
    everyday = capsys.readouterr().out.partition("─ Advanced ─")[0]
    assert len(everyday.splitlines()) <= 41
    assert name not in ("inspect", "run", "compare", "suggest") or "Your own files" in everyday
