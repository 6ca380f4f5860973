"""Foreign text: every character that a terminal or an XML parser acts upon is written out."""

import io
import sys
import unicodedata
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evengraph.core.text import LONGEST, html_table, make_console, printable


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


def test_everything_is_escaped():
    text = html_table("<b>", ["<i>", "n"], [["<script>", 1234], ["a\x1b[2J", True]])
    for piece in ("<i>", "<script>", "\x1b"):
        assert piece not in text
    assert "<td>1,234</td>" in text
    assert "<td>True</td>" in text


def test_columns_without_names_have_no_head_and_a_long_table_counts_its_rest():
    assert "<thead>" not in html_table("a", ["", ""], [["b", 1]])
    assert "<thead>" in html_table("a", ["", "n"], [["b", 1]])
    text = html_table("", ["a", "b"], [[n, n] for n in range(LONGEST + 5)])
    assert text.count("<tr>") == LONGEST + 2
    assert "… 5 more" in text


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
