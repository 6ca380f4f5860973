"""Names of others on their way through the commands: folders, classes, ids, columns."""

from xml.etree import ElementTree

import pytest
from command_line import call, write

ODD = "\x1b]0;t\x07\x1b[2J[/b][@a=b(]"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "x[@a=b(]y"
    folder.mkdir()
    rows = [[f"{ODD}{i}", i % 7, f"{ODD}{i % 2}", f"{'ab'[i % 2]}{ODD}"] for i in range(40)]
    write(folder / "nodes.csv", ["id", "age", f"{ODD}colour", "label"], *rows)
    edges = [[f"{ODD}{i}", f"{ODD}{(i * 3 + 1) % 40}"] for i in range(40)]
    write(folder / "edges.csv", ["source", "target"], *edges)
    return folder


def test_no_command_acts_upon_names(folder, tmp_path, capsys):
    fast = ["--method", "gcn", "--set", "max_epochs=2", "--splits", "1-1"]
    commands = [
        ["inspect", folder.name],
        ["run", folder.name, *fast, "--out", "out[/]", "--save", "model[/b]"],
        ["predict", "model[/b]", folder.name, "--out", "p[/].csv"],
        ["explain", "model[/b]", f"{ODD}3", "--out", "figure.svg"],
    ]
    for command in commands:
        status = call(*command)
        text = "".join(capsys.readouterr())
        assert status == 0, text
        assert not {"\x1b", "\x07"} & set(text), command
        assert "Traceback" not in text
    ElementTree.parse(tmp_path / "figure.svg")
    page = (tmp_path / "out[/]" / "report.html").read_text(encoding="utf-8")
    assert not {"\x1b", "\x07"} & set(page)


def test_errors_are_one_line_whatever_they_quote(folder, capsys):
    assert call("inspect", f"none{ODD}") == 2
    text = capsys.readouterr().err
    assert r"Error: none\x1b]0;t\x07\x1b[2J[/b][@a=b(] does not exist" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "command", [["inspect"], ["results"], ["reproduce"], ["predict", "model"], ["run"]]
)
def test_a_newline_in_a_path_keeps_errors_on_one_line(command, tmp_path, capsys):
    name = "a\nb.toml" if command == ["reproduce"] else "a\nb"
    assert call(*command, tmp_path / name) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Traceback" not in line
