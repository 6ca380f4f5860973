from evengraph.report.svg.markup import Markup, join, tag


def test_plain_text_is_escaped_and_markup_is_not():
    assert tag("p", "a < b", Markup("<b>c</b>")) == "<p>a &lt; b<b>c</b></p>"
    assert join(["<", Markup("<br>")], " & ") == "&lt; &amp; <br>"


def test_attributes():
    element = tag("input", class_="x", aria_label='"', hidden=True, disabled=False, id=None, r=2.50)
    assert element == '<input class="x" aria-label="&quot;" hidden r="2.5">'
