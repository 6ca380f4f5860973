"""Text for people: messages of errors, names that were meant, characters that are not printed."""

import io
import sys
import unicodedata
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pandas as pd
import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import evengraph as eg
from evengraph.core import errors
from evengraph.core.text import make_console, printable
from evengraph.lab.spec import read_spec
from evengraph.lab.store import Store


def test_the_nearest_name_is_offered():
    assert "Did you mean beta?" in errors.unknown("letter", "bta", ["alpha", "beta"])
    assert "Did you mean" not in errors.unknown("letter", "qqq", ["alpha", "beta"])


@pytest.mark.parametrize("name", ["trees", "Tree", "xg-boost", "XGBOOST", "boosting"])
def test_names_that_others_use_lead_to_ours(name):
    others = {"trees": "boosting", "xgboost": "boosting"}
    assert "Did you mean boosting?" in errors.unknown("method", name, ["gcn", "boosting"], others)


def test_texts_in_messages_are_short_and_on_one_line():
    assert errors.first_line(ValueError("one.\ntwo")) == "one"
    assert errors.first_line(EOFError()) == "EOFError"
    assert errors.listed(["a", 2]) == "a, 2"
    assert errors.listed([]) == "none"
    assert len(errors.listed(range(100_000))) == 1000
    assert errors.short("a\nb") == "'a\\nb'"
    assert errors.short("x" * 500) == "'" + "x" * 76 + "..."
    assert errors.short(10**5000) == "a number of more than 4300 digits"
    assert len(errors.unknown("key", "x" * 10**6, ["title"])) < 200


def test_names_in_messages_do_not_break_the_line():
    with pytest.raises(errors.ArgumentError) as found, errors.one_line_errors():
        raise errors.ArgumentError("a\nb\x1b[2J.csv is empty.\r", argument="edges")
    assert str(found.value) == r"a\nb\x1b[2J.csv is empty.\x0d"
    assert found.value.argument == "edges"

    @errors.one_line_errors()
    def open_folder():
        raise FileNotFoundError(2, "none", "a\nb")

    with pytest.raises(FileNotFoundError) as missing:
        open_folder()
    assert (missing.value.errno, missing.value.filename) == (2, "a\nb")


HOSTILE = "a\nb\x1b]0;t\x07\x1b[2J\u202e"


def _fail(kind, folder):
    """Open a damaged file of some kind in a folder with a hostile name."""
    if kind == "store":
        (folder / "s.sqlite").write_text("x" * 600)
        Store(folder / "s.sqlite")
    elif kind == "store below a file":
        (folder / "s").write_text("")
        Store(folder / "s" / "s.sqlite")
    elif kind == "spec":
        (folder / "s.toml").write_text("seeds = [")
        read_spec(str(folder / "s.toml"))
    elif kind == "model":
        (folder / "model.json").write_text("{")
        eg.TableModel.load(folder)
    elif kind == "packed":
        (folder / "graph.json").write_text("{")
        eg.open_graph(folder)
    elif kind == "tables":
        (folder / "nodes.csv").write_text("id,id\n1,2\n")
        eg.open_graph(folder)
    elif kind == "columns":
        table = pd.DataFrame({f"{HOSTILE}": [1.0, 2.0], "id": [1, 2]})
        eg.from_frames(table, pd.DataFrame({"source": [1]}), label=f"{HOSTILE}x")
    else:
        (folder / f"g{kind}").write_text("<")
        eg.open_graph(folder / f"g{kind}")


KINDS = [".npz", ".pt", ".graphml", "tables", "columns", "store", "store below a file", "spec"]


@pytest.mark.parametrize("kind", [*KINDS, "model", "packed"])
def test_foreign_names_are_printable_in_errors_of_the_library(tmp_path, kind):
    (folder := tmp_path / HOSTILE).mkdir()
    with pytest.raises((ValueError, OSError)) as found:
        _fail(kind, folder)
    text = str(found.value)
    assert text.isprintable(), text
    assert r"\x1b" in text


def test_ordinary_text_stays():
    for text in ("Müller & Söhne", "日本語 العربية 🙂", "a\tb\nc", "[/b] <b> $x$ \\x1b", ""):
        assert printable(text) == text


def test_sequences_of_terminals_and_what_takes_no_room_are_written_out():
    assert printable("\x1b]0;title\x07\x1b[2J") == r"\x1b]0;title\x07\x1b[2J"
    assert printable("a\rb\x9bc\u202ed\u2028e\udc80") == r"a\x0db\x9bc\u202ed\u2028e\udc80"

    assert printable("a\u200bb\ufeffc\u2060d\U000e0041") == r"a\u200bb\ufeffc\u2060d\U000e0041"
    for text in ("👩\u200d🔬", "می\u200cخواهم", "❤\ufe0f"):
        assert printable(text) == text


def test_no_control_character_is_left_and_everything_is_xml():
    text = printable("".join(map(chr, range(0x11000))))
    assert {sign for sign in text if unicodedata.category(sign) in ("Cc", "Cs")} == {"\t", "\n"}
    ElementTree.fromstring(f"<p>{escape(text)}</p>")
    assert printable(chr(sys.maxunicode)) == chr(sys.maxunicode)


NASTY = "\x1b]0;title\x07\x1b[2Ja"


def printed(*renderables):
    file = io.StringIO()
    console = make_console(file=file, width=60, force_terminal=True, color_system=None)
    for renderable in renderables:
        console.print(renderable)
    return file.getvalue()


def test_whatever_is_printed_holds_no_control_character():
    table = Table(NASTY)
    table.add_row(NASTY, Text(NASTY))
    text = printed(NASTY, Text(NASTY), table, Panel(NASTY, title=NASTY))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count(r"\x1b[2Ja") >= 4


def test_a_bar_may_still_move_the_cursor():
    file = io.StringIO()
    console = make_console(file=file, width=60, force_terminal=True)
    console.print("[red]red[/]")
    console.show_cursor(False)
    assert "\x1b[31mred\x1b[0m" in file.getvalue()
    assert file.getvalue().endswith("\x1b[?25l")
