from evengraph.cli.console import print_error
from evengraph.core.errors import ArgumentError


def test_an_error_is_one_line_with_the_option_that_fixes_it(capsys):
    print_error(ArgumentError("No split [here].", argument="split", value="my part"))
    assert capsys.readouterr().err == "Error: No split [here]. Option: --split-column 'my part'\n"
    print_error(ValueError("Wrong."), prefix="GCN did not run: ")
    assert capsys.readouterr().err == "Error: GCN did not run: Wrong.\n"
