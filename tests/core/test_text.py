"""Foreign text: every character that a terminal or an XML parser acts upon is written out."""

import sys
import unicodedata
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from evengraph.core.text import printable


def test_ordinary_text_stays():
    for text in ("Müller & Söhne", "日本語 العربية 🙂", "a\tb\nc", "[/b] <b> $x$ \\x1b", ""):
        assert printable(text) == text


def test_sequences_of_terminals_are_written_out():
    assert printable("\x1b]0;title\x07\x1b[2J") == r"\x1b]0;title\x07\x1b[2J"
    assert printable("a\rb\x9bc\u202ed\u2028e\udc80") == r"a\x0db\x9bc\u202ed\u2028e\udc80"


def test_what_takes_no_room_is_written_out_and_joiners_stay():
    assert printable("a\u200bb\ufeffc\u2060d\U000e0041") == r"a\u200bb\ufeffc\u2060d\U000e0041"
    for text in ("👩\u200d🔬", "می\u200cخواهم", "❤\ufe0f"):
        assert printable(text) == text


def test_no_control_character_is_left_and_everything_is_xml():
    text = printable("".join(map(chr, range(0x11000))))
    assert {sign for sign in text if unicodedata.category(sign) in ("Cc", "Cs")} == {"\t", "\n"}
    ElementTree.fromstring(f"<p>{escape(text)}</p>")
    assert printable(chr(sys.maxunicode)) == chr(sys.maxunicode)
