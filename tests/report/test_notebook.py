"""What objects show of themselves in a notebook."""

import re

import pytest
from samples import compared, look

import evengraph as eg
from evengraph.report.notebook import comparison_html, inspection_html, model_html
from evengraph.splits import Natural

HOSTILE = "</style><script>alert(1)</script>"


@pytest.fixture(scope="module")
def graph():
    graph = eg.toy(120, 500, 12, 3, size_ratio=0.4)
    graph.class_names = ["one", "two", HOSTILE]
    return graph


@pytest.fixture(scope="module")
def task(graph):
    return Natural(train=0.4, val=0.3)(graph, seed=0)


@pytest.fixture(scope="module")
def fitted(task):
    return eg.GCN(max_epochs=2, hidden=4).fit(task, seed=0, progress=False)


def test_an_explanation_an_inspection_a_comparison_and_a_run(fitted, graph, parse):
    tree = parse(eg.explain(fitted, graph, 3)._repr_html_())
    assert tree.all("svg")
    assert not tree.all("script")
    assert parse(inspection_html(look())).all("ul", "findings")
    assert parse(eg.inspect_graph(graph)._repr_html_()).all("ul", "ladder")
    tree = parse(comparison_html(compared(80.0, 70.0)))
    assert tree.all("p", "verdict")[0].text == "Method 0 is better. Use it."


def test_a_model_shows_its_scores_and_classes(parse):
    extra = {"test": {"balanced_accuracy": 70.0}, "confusion": [[8, 2], [3, 7]]}
    tree = parse(model_html("GCN", ["a", HOSTILE], [20, 10], extra))
    assert "70.0" in tree.text
    rows = tree.all("tbody")[0].all("tr")
    assert [row.all("th")[0].text for row in rows] == ["a", HOSTILE]
    assert [cell.text for cell in rows[0].all("td")][:4] == [
        "20",
        "10",
        "72.7 (43.4 to 90.3)",
        "80.0 (49.0 to 94.3)",
    ]
    bare = parse(model_html("GCN", ["a", "b"], [20, 10], {}))
    assert [row.all("td")[0].text for row in bare.all("tbody")[0].all("tr")] == ["20", "10"]
    assert "TableModel" in eg.TableModel("gcn")._repr_html_()


def test_rules_hold_inside_of_the_output_alone():
    content = compared(80.0, 70.0)
    content["methods"][0]["title"] = HOSTILE
    text = comparison_html(content)
    assert text.count("<style>") == 1
    assert text.count("</style>") == 1
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL).group(1)
    assert style.startswith(".evengraph.evengraph { ")
    assert style.count("{") == style.count("}")
    assert ":root" not in style
    assert "@container (max-width: 42rem)" in style
    assert "@media (max-width" not in style
    assert not re.search(r"\bbody\b", style)
    assert "tbody th {" in style
    assert "<script" not in text
