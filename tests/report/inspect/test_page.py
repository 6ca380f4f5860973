import copy
import re
from itertools import pairwise

import pytest
from looks import LONG, look

from evengraph.report.inspect_page import STYLE as EXTRA
from evengraph.report.inspect_page import render_inspection, write_inspection
from evengraph.report.page import STYLE as SHARED


def test_title_and_facts(parse):
    page = parse(render_inspection(look()))
    (h1,) = page.all("h1")
    assert h1.text == "Inspection of toy120 of 600 nodes are labelled (20%), in 4 classes"
    facts = [fact.text for fact in page.all("ul", "facts")[0].all("li")]
    count = look()["components"]["count"]
    assert facts == ["600 nodes", "900 edges", "30 features", f"{count} components"]


def test_findings_with_their_levels(parse):
    found = look()
    page = parse(render_inspection(found))
    lines = page.all("ul", "findings")[0].all("li")
    assert [line.kinds for line in lines] == [{f["level"]} for f in found["findings"]]
    for line, finding in zip(lines, found["findings"], strict=True):
        assert line.text.endswith(f"{finding['level']}: {finding['text']}")
    (advice,) = page.all("p", "advice")
    assert advice.text.startswith("Recommendation. First remove 'topic 3' from the features.")


def test_classes_stand_head_to_tail(parse):
    found = look()
    page = parse(render_inspection(found))
    rows = page.all("ul", "ladder")[0].all("li")[1:-1]
    counts = [int(row.all("span", "value")[0].text) for row in rows]
    assert counts == sorted(found["labels"]["labelled"], reverse=True)
    assert [("rare" in row.kinds) for row in rows] == [count < counts[0] / 2 for count in counts]


def test_each_class_has_its_own_chance_and_colour(parse):
    found = look() | {
        "homophily": {"per_class": [0.9, 0.67, 0.5, 0.5], "neighbours": [80, 10, 5, 5]}
    }
    page = parse(render_inspection(found))
    rows = {row.all("span")[0].text: row for row in page.all("ul", "ladder")[0].all("li")[1:-1]}
    lines = [rows[name].all("line", "reference")[0] for name in found["labels"]["names"]]
    assert [line.attributes["x1"] for line in lines] == ["80%", "10%", "5%", "5%"]
    legend = {entry.text: entry.kinds for entry in page.all("li") if entry.text in rows}
    assert all(legend[name] <= row.kinds for name, row in rows.items())
    assert len({frozenset(kinds) for kinds in legend.values()}) == len(rows)


def test_the_table_of_reach(parse):
    found = look()
    page = parse(render_inspection(found))
    (table,) = page.all("table", "shares")
    lines = {line.all("th")[0].text: line.all("td") for line in table.all("tbody")[0].all("tr")}
    nodes = found["reach"]["nodes"]
    near = dict(zip(found["labels"]["names"], found["reach"]["per_class"], strict=True))
    near["any class"] = found["reach"]["any_class"]
    for name, counts in near.items():
        assert [cell.text for cell in lines[name]] == [f"{100 * c / nodes:.0f}%" for c in counts]


def test_nothing_to_reach_is_said(parse):
    page = parse(render_inspection(look(labelled=600)))
    assert not page.all("table")
    assert "Every node is labelled" in page.text


def test_headings_descend_and_pictures_are_named(parse):
    page = parse(render_inspection(look()))
    levels = [int(node.tag[1]) for node in page.walk() if re.fullmatch("h[1-6]", node.tag)]
    assert levels[0] == 1
    assert all(new <= old + 1 for old, new in pairwise(levels))
    for picture in page.all("svg"):
        attributes = picture.attributes
        named = attributes.get("aria-label") and attributes.get("role") == "img"
        inner = "viewbox" in attributes  # the stretched part of a named picture
        assert named or attributes.get("aria-hidden") == "true" or inner


def test_hostile_names_stay_text(parse):
    found = copy.deepcopy(look())
    found["name"] = found["labels"]["names"][0] = "<script>alert(1)</script>\ud800"
    found["findings"][0]["text"] = "<img src=x>"
    page = parse(render_inspection(found))
    assert not page.all("script")
    assert not page.all("img")


def test_nothing_is_asked_from_outside():
    text = render_inspection(look())
    assert "default-src &#x27;none&#x27;" in text
    assert not re.search(r"https?:|url\(|@import", text)


def test_every_variable_used_is_defined():
    used = set(re.findall(r"var\(--([\w-]+)\)", EXTRA))
    assert used <= set(re.findall(r"--([\w-]+):", SHARED + EXTRA)) | {"share"}


@pytest.mark.parametrize("bad", [None, "text", float("nan"), [], {}])
def test_no_missing_part_breaks_the_page(parse, bad):
    whole = look()
    pages = [whole | {key: bad} for key in whole if key != "findings"]
    for key in ("labels", "homophily", "degrees", "reach", "edges"):
        for inner in whole[key]:
            if isinstance(whole[key][inner], list) and bad not in (None, []):
                continue  # a list of something else is not what a missing figure looks like
            pages.append(whole | {key: whole[key] | {inner: bad}})
    for content in (*pages, {}):
        assert len(parse(render_inspection(content)).all("h1")) == 1


def test_the_file_appears_whole(tmp_path):
    write_inspection(look(word=LONG) | {"name": "\ud800"}, tmp_path / "a" / "inspect.html")
    assert (tmp_path / "a" / "inspect.html").read_bytes().endswith(b"</html>\n")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["inspect.html"]
