"""Help: a flag takes no value, and none is shown."""

import pytest
from command_line import call


@pytest.mark.parametrize("words", [["run"], ["data"], ["data", "list"], []])
def test_a_flag_has_no_type(words, capsys):
    assert call(*words, "--help") == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert "bool" not in shown.lower()


def test_an_option_with_a_value_has_one(capsys):
    call("results", "--help")
    line = next(line for line in capsys.readouterr().out.splitlines() if "--seed" in line)
    assert "int" in line.lower()
