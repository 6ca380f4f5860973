from xml.etree import ElementTree

from evengraph.report.markup import Markup, join, tag

WRITTEN = r"\x1b[2J\x07\x00\u202e\ud800"


def test_plain_text_is_escaped_and_markup_is_not():
    assert tag("p", "a < b", Markup("<b>c</b>")) == "<p>a &lt; b<b>c</b></p>"
    assert join(["<", Markup("<br>")], " & ") == "&lt; &amp; <br>"


def test_attributes():
    element = tag("input", class_="x", aria_label='"', hidden=True, disabled=False, id=None, r=2.50)
    assert element == '<input class="x" aria-label="&quot;" hidden r="2.5">'


def test_control_characters_are_written_out():
    text = "\x1b[2J\x07\x00\u202e\ud800"
    element = tag("p", text, title=text)
    assert element == f'<p title="{WRITTEN}">{WRITTEN}</p>'
    ElementTree.fromstring(element)
