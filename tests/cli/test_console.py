from io import StringIO
from pathlib import Path

from rich.console import Console

from evengraph.cli.console import err, print_error, print_notes, print_written
from evengraph.core.errors import ArgumentError


def test_an_error_is_one_line_with_the_option_that_fixes_it(capsys):
    print_error(ArgumentError("No split [here].", argument="split", value="my part"))
    assert capsys.readouterr().err == "Error: No split [here]. Option: --split-column 'my part'\n"
    print_error(ValueError("Wrong."), prefix="GCN did not run: ")
    assert capsys.readouterr().err == "Error: GCN did not run: Wrong.\n"


def test_notes_and_paths_are_lines_of_any_length(capsys):
    print_notes(["a [b] " * 40, "second"])
    assert capsys.readouterr().out == f"{'a [b] ' * 40}\nsecond\n"
    print_written(Path("a[b].csv"), Path("c.json"), console=err)
    assert capsys.readouterr() == ("", "wrote a[b].csv\nwrote c.json\n")


def test_a_terminal_breaks_sentences_between_words():
    terminal = Console(file=StringIO(), width=20, force_terminal=True, color_system=None)
    print_notes(["averages of several splits"], terminal)
    lines = terminal.file.getvalue().splitlines()
    assert [line.strip() for line in lines] == ["averages of several", "splits"]


def test_no_error_is_empty_and_those_of_files_name_them(capsys):
    print_error(MemoryError())
    print_error(ValueError())
    print_error(OSError(28, "No space left on device", "out/result.json"))
    assert capsys.readouterr().err.splitlines() == [
        "Error: Out of memory.",
        "Error: ValueError.",
        "Error: out/result.json: No space left on device.",
    ]
