"""Pages of runs, comparisons and inspections: safe, whole, readable, whatever they are made of."""

import copy
import math
import re
from itertools import pairwise

import pytest
from samples import HOSTILE, compared, look, make_fraud, make_result, stored_look

from contrasts import DARK, LIGHT, colours, contrast
from evengraph.metrics.registry import METRICS
from evengraph.report import render_page, write_page
from evengraph.report.compare_page import render_comparison
from evengraph.report.inspect_page import STYLE as INSPECT
from evengraph.report.inspect_page import render_inspection
from evengraph.report.page import (
    FLIP,
    STYLE,
    command_block,
    copy_script,
    html_page,
    origin_section,
    page_links,
    write_html,
)

PAGES = {
    "run": lambda: render_page(make_result(epochs=5)),
    "fraud": lambda: render_page(make_fraud()),
    "compare": lambda: render_comparison(compared(80.0, 70.0, 60.0), pages={"m0": "a.html"}),
    "inspect": lambda: render_inspection(stored_look()),
}
every_page = pytest.mark.parametrize("name", PAGES)


def section(tree, heading):
    (found,) = [n for n in tree.all("section") if n.all("h2") and n.all("h2")[0].text == heading]
    return found


@every_page
def test_headings_descend_and_pictures_are_named(name, parse):
    page = parse(PAGES[name]())
    levels = [int(node.tag[1]) for node in page.walk() if re.fullmatch("h[1-6]", node.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(new <= old + 1 for old, new in pairwise(levels))
    assert page.all("html")[0].attributes["lang"] == "en"
    for picture in page.all("svg"):
        attributes = picture.attributes
        named = attributes.get("aria-label") and attributes.get("role") == "img"
        inner = "viewbox" in attributes or "nodes" in picture.kinds  # part of a named picture
        assert named or attributes.get("aria-hidden") == "true" or inner


@every_page
def test_nothing_is_asked_from_outside(name, parse):
    tree = parse(PAGES[name]())
    for node in tree.walk():
        assert node.tag not in {"iframe", "img", "object", "embed", "base", "form"}
        assert not {"src", "srcset", "xlink:href", "action"} & set(node.attributes)
        assert not (node.attributes.get("href") or "").startswith(("http", "//", "javascript"))
    styles = "".join(node.text for node in tree.all("style"))
    styles += "".join(node.attributes.get("style") or "" for node in tree.walk())
    assert not re.search(r"url\(|@import|https?:|//", styles)
    policy = [n for n in tree.all("meta") if "http-equiv" in n.attributes]
    assert (policy[0].attributes["content"] or "").startswith("default-src 'none'")


def _places(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield from _places(value[0], (*path, 0))


def changed(content, path, value):
    """A copy with another value at a place."""
    whole = copy.deepcopy(content)
    holder = whole
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return whole


@every_page
def test_hostile_text_stays_text(name, parse):
    contents = {
        "run": make_result([*"abcdefg"], epochs=3),
        "fraud": make_fraud(),
        "compare": compared(80.0, 70.0) | {"failed": {"x": "y"}},
        "inspect": look(),
    }
    render = {"compare": render_comparison, "inspect": render_inspection}.get(name, render_page)
    clean = parse(render(contents[name]))
    tags = {node.tag for node in clean.walk()}
    scripts = [node.text for node in clean.all("script")]
    found = 0
    for path in _places(contents[name]):
        value = contents[name]
        for key in path:
            value = value[key]
        keys = ("metric", "label", "ahead", "behind", "level")  # which are looked up
        if not isinstance(value, str) or path[-1] in (*keys, "created"):
            continue
        text = render(changed(contents[name], path, HOSTILE))
        tree = parse(text)
        assert {node.tag for node in tree.walk()} <= tags, path
        assert [node.text for node in tree.all("script")] == scripts, path
        assert not any(key.startswith("on") for node in tree.walk() for key in node.attributes)
        found += any(HOSTILE in node.text for node in tree.walk())
    assert found >= 5


def test_undefined_metrics_show_as_a_dash(result, parse):
    for run in result["runs"]:
        run["metrics"]["auroc"] = None
    result["mean"]["auroc"] = result["std"]["auroc"] = None
    result["mean"]["g_mean"] = result["runs"][1]["metrics"]["g_mean"] = math.nan
    tree = parse(render_page(result))
    assert tree.all("article", "card")[2].all("p", "figure")[0].text == "–"
    assert not re.search(r"\b(nan|inf|None)\b", tree.all("body")[0].text, re.IGNORECASE)
    for node in tree.walk():
        drawn = [node.attributes.get(k) or "" for k in ("d", "x", "x1", "x2", "cx", "cy", "width")]
        assert "nan" not in "".join(drawn)


def test_one_seed_claims_no_deviation(parse):
    one = make_result(["no", "yes"], classes=2, rare=1, seeds=(1,), paper=False)
    tree = parse(render_page(one))
    assert not re.search("±|std", tree.all("body")[0].text)
    assert "paper" not in tree.all("main")[0].text
    assert not tree.all("svg", "strip")


def test_many_classes_many_seeds_and_long_histories_stay_light(parse):
    names = ["A very long name of a class, longer than any screen is wide " * 3] * 50
    text = render_page(make_result(names, classes=50, rare=30, seeds=tuple(range(12)), epochs=5000))
    assert len(parse(text).all("table", "matrix")[0].all("td")) == 2501
    assert len(text) < 2_000_000
    result = make_result(classes=301, rare=1, seeds=(1,), epochs=1)
    assert "more than 300 classes is not drawn" in render_page(result)


def test_without_a_matrix_that_is_said():
    result = make_result(["common", "rare"], classes=2, rare=1, seeds=(1,), epochs=1, paper=False)
    result["runs"][0]["confusion_matrix"] = []
    assert "no confusion matrix" in render_page(result)


def test_errors_are_best_where_they_are_lowest(parse):
    content = compared(80.0, 70.0)
    errors = [name for name, metric in METRICS.items() if metric.calibration]
    for method, value in zip(content["methods"], (9.0, 1.0), strict=True):
        method["figures"] |= {name: {"mean": value} for name in errors}
    rows = section(parse(render_comparison(content)), "All metrics").all("tr")
    heads = [node.text for node in rows[0].all("th")]
    bold = [
        [head for head, cell in zip(heads[1:], row.all("td"), strict=True) if cell.all("b")]
        for row in rows[1:]
    ]
    assert "balanced accuracy" in bold[0]
    assert bold[1] == [METRICS[name].title for name in errors if METRICS[name].column]


def test_several_rare_classes_have_a_mean(parse):
    content = compared(80.0, 70.0, protocol={"name": "step", "minority": 2, "ratio": 0.1})
    for method in content["methods"]:
        for run in method["runs"]:
            run["per_class"] = {"recall": [90.0, 40.0, None if run["seed"] else 60.0]}
    table = section(parse(render_comparison(content)), "Recall per class, head to tail")
    last = table.all("tr")[-1]
    assert last.all("th")[0].text == "mean of rare classes"
    assert [cell.text for cell in last.all("td")[1:]] == ["50", "50"]


def test_a_comparison_without_commands_has_no_script(parse):
    content = compared(80.0, 70.0)
    for name in ("command", "commands"):
        del content[name]
    tree = parse(render_comparison(content))
    assert "Command and next steps" not in [node.text for node in tree.all("h2")]
    assert not section(tree, "Differences on the same splits").all("details")
    assert not tree.all("script")


def test_an_inspection_of_a_labelled_graph_says_that_nothing_is_to_reach(parse):
    page = parse(render_inspection(look(labelled=600)))
    assert not page.all("table")
    assert "Every node is labelled" in page.text


def test_parts_that_are_missing(parse):
    assert origin_section({}) == page_links([]) == copy_script({}) == ""
    assert origin_section({"command": 3, "commands": [None]}) == ""
    (button,) = parse(command_block("a <b>")).all("button")
    assert "hidden" in button.attributes  # without its script


def test_a_page_allows_its_own_script_only(parse):
    plain = parse(html_page("Plain", style=".extra { margin: 0; }"))
    with_script = parse(html_page("Script", script="let a = 1"))
    assert not plain.all("script")
    assert plain.all("style")[0].text == STYLE + ".extra { margin: 0; }"
    assert [node.text for node in with_script.all("script")] == ["let a = 1"]
    for page, allowed in ((plain, False), (with_script, True)):
        (policy,) = [n for n in page.all("meta") if "http-equiv" in n.attributes]
        assert ("script-src 'sha256-" in policy.attributes["content"]) is allowed


def test_writing_replaces_the_old_page_and_survives_broken_unicode(result, tmp_path):
    path = tmp_path / "deep" / "report.html"
    write_page(result, path)
    path.write_text("old", encoding="utf-8")
    before = copy.deepcopy(result)
    write_page(result, path)
    assert result == before
    assert path.read_text(encoding="utf-8") == render_page(result)
    write_html("broken \ud800 name", path)
    assert path.read_text(encoding="utf-8") == "broken &#55296; name"
    assert list(path.parent.iterdir()) == [path]


themes = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


@themes
def test_text_and_marks_reach_their_contrast(theme):
    found = colours(theme)
    for ground in ("page", "surface"):
        for text in ("ink", "muted", "rare", "accent"):
            assert contrast(found[text], found[ground]) >= 4.5, (text, ground)
    for mark in ("common", "rare", *(f"colour-{index}" for index in range(6))):
        assert contrast(found[mark], found["surface"]) >= 3, mark


@themes
def test_counts_stay_readable_on_every_shade(theme):
    found = colours(theme)
    for step in range(1001):
        share = step / 1000
        ground = tuple(
            share * dark + (1 - share) * light
            for dark, light in zip(found["shade"], found["surface"], strict=True)
        )
        text = found["on-strong" if share >= FLIP else "on-weak"]
        assert contrast(text, ground) >= 4.5, share


def test_styles_are_whole():
    assert colours(LIGHT).keys() == colours(DARK).keys()
    both = STYLE + INSPECT
    defined = set(re.findall(r"(--[\w-]+):", both)) | {"--share", "--columns"}  # set by the pages
    assert set(re.findall(r"var\((--[\w-]+)\)", both)) <= defined
    assert both.count("{") == both.count("}")
    for medium in ("prefers-color-scheme: dark", "@media (max-width:", "@media print"):
        assert medium in STYLE
