from evengraph.core.text import LONGEST, html_table


def test_everything_is_escaped():
    text = html_table("<b>", ["<i>", "n"], [["<script>", 1234], ["a\x1b[2J", True]])
    for piece in ("<i>", "<script>", "\x1b"):
        assert piece not in text
    assert "<td>1,234</td>" in text
    assert "<td>True</td>" in text


def test_columns_without_names_have_no_head():
    assert "<thead>" not in html_table("a", ["", ""], [["b", 1]])
    assert "<thead>" in html_table("a", ["", "n"], [["b", 1]])


def test_a_long_table_counts_its_rest():
    text = html_table("", ["a", "b"], [[n, n] for n in range(LONGEST + 5)])
    assert text.count("<tr>") == LONGEST + 2
    assert "… 5 more" in text
