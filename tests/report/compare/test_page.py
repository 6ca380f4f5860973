import re

import pytest
from compared import compared

from evengraph.report.compare_page import render_comparison, write_comparison_page
from evengraph.report.page import Link

HOSTILE = "</svg><script>alert(1)</script>\"'&amp;"


def section(tree, heading):
    (found,) = [node for node in tree.all("section") if node.all("h2")[0].text == heading]
    return found


def test_the_verdict_comes_first(parse):
    tree = parse(render_comparison(compared(80.0, 70.0)))
    (header,) = tree.all("header")
    texts = [node for node in header.walk() if node.tag == "p"]
    assert texts[0].text == "Method 0 is better. Use it."
    assert tree.all("h1")[0].text.startswith("Methods compared on Cora")


def test_every_method_has_its_page_interval_difference_and_cost(parse):
    pages = {f"m{place}": f"m{place}/report.html" for place in range(3)}
    tree = parse(render_comparison(compared(80.0, 70.0, 60.0), pages=pages))
    scores, differences = section(tree, "Balanced accuracy").all("ul", "dots")
    links = [node.attributes["href"] for node in scores.all("a")]
    assert links == list(pages.values())
    assert len(scores.all("line", "whisker")) == 3
    assert len(scores.all("circle", "seed")) == 3 * 5
    assert len(differences.all("line", "whisker")) == 2
    assert all(n.text.endswith("significant") for n in differences.all("span", "value")[:2])
    seconds = [node.text for node in section(tree, "Cost").all("span", "value")]
    assert seconds == ["2.0 s", "3.0 s", "4.0 s"]
    assert len(section(tree, "All pairs of methods").all("tr")) == 1 + 3


def test_a_difference_is_negative_where_a_method_is_behind(parse):
    tree = parse(render_comparison(compared(80.0, 60.0)))
    _, differences = section(tree, "Balanced accuracy").all("ul", "dots")
    (row,) = [node for node in differences.all("li") if "data-method" in node.attributes]
    assert re.match(r"−(1|2)\d\.\d, significant", row.all("span", "value")[0].text)
    (zero,), (mean,) = row.all("line", "axis"), row.all("circle", "mean")
    place = [float(node.attributes[name][:-1]) for node, name in ((mean, "cx"), (zero, "x1"))]
    assert place[0] < place[1]


def test_rare_classes_come_last_and_are_marked(parse):
    table = section(
        parse(render_comparison(compared(80.0, 70.0))), "Recall per class, head to tail"
    )
    rows = table.all("tr")[1:]
    assert [row.all("th")[0].text for row in rows] == ["Theory", "Neural Networks", "Rule Learning"]
    assert [row.attributes.get("class") for row in rows] == [None, None, "rare"]
    assert [row.all("td")[0].text for row in rows] == ["20", "20", "2"]


def test_two_splits_have_no_interval(parse):
    tree = parse(render_comparison(compared(80.0, 70.0, splits=2)))
    scores = section(tree, "Balanced accuracy")
    assert not scores.all("line", "whisker")
    assert "too few splits" in scores.text
    assert "95% interval" not in scores.text


def test_the_command_and_what_differs_from_the_defaults(parse):
    content = compared(80.0, 70.0)
    links = [Link("comparison.csv", "Results as CSV")]
    tree = parse(render_comparison(content, links=links))
    found = section(tree, "Command and next steps")
    commands = [node.text for node in found.all("code")]
    assert commands == [content["command"], *content["commands"]]
    assert [node.text for node in found.all("dd")] == ["patience = 100", "none"]
    assert found.all("a")[-1].attributes["href"] == "comparison.csv"


def test_an_older_file_without_recall_and_commands_still_has_a_page(parse):
    content = compared(80.0, 70.0)
    for name in ("command", "commands"):
        del content[name]
    for method in content["methods"]:
        del method["changed"]
        for run in method["runs"]:
            del run["per_class"], run["train_counts"]
    tree = parse(render_comparison(content))
    headings = [node.text for node in tree.all("h2")]
    assert "Recall per class, head to tail" not in headings
    assert "Command and next steps" not in headings
    assert not tree.all("script")


@pytest.mark.parametrize("place", ["title", "class", "sentence", "command", "failed"])
def test_hostile_text_stays_text(parse, place):
    content = compared(80.0, 70.0)
    if place == "title":
        content["methods"][0]["title"] = HOSTILE
    elif place == "class":
        content["classes"][0] = HOSTILE
    elif place == "sentence":
        content["verdict"]["sentences"] = [HOSTILE]
    elif place == "command":
        content["command"] = HOSTILE
    else:
        content["failed"] = {HOSTILE: HOSTILE}
    tree = parse(render_comparison(content, pages={"m0": "javascript:alert(1)"}))
    assert len(tree.all("script")) == 1
    assert all(not n.attributes["href"].startswith("javascript:") for n in tree.all("a"))


def test_writing_it(tmp_path):
    write_comparison_page(compared(80.0, 70.0), tmp_path / "deep" / "comparison.html")
    assert "default-src" in (tmp_path / "deep" / "comparison.html").read_text(encoding="utf-8")
