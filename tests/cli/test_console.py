from evengraph.cli.console import complain
from evengraph.core.errors import ArgumentError


def test_an_error_is_one_line_with_the_option_that_fixes_it(capsys):
    complain(ArgumentError("No split [here].", argument="split", value="my part"))
    assert capsys.readouterr().err == "Error: No split [here]. Option: --split-column 'my part'\n"
    complain(ValueError("Wrong."), about="GCN did not run: ")
    assert capsys.readouterr().err == "Error: GCN did not run: Wrong.\n"
