import pytest

from evengraph.report.charts import ForestRow, forest_plot, padded


def row(name="GCN", **changes):
    return ForestRow(**{"name": name, "value": "70", "text": name, "mean": 70.0} | changes)


def place(node, name):
    return float(node.attributes[name].removesuffix("%"))


def test_marks_share_an_axis_that_reaches_all_of_them(parse):
    rows = [
        row(interval=(60.0, 80.0), points=[50.0, 90.0], paper=65.0),
        row("MLP", mean=40.0),
    ]
    tree = parse(forest_plot("A title", rows, axis="balanced accuracy, %"))
    first, second = tree.all("circle", "mean")
    low, high = tree.all("circle", "seed")
    (whisker,), (paper,) = tree.all("line", "whisker"), tree.all("line", "paper")
    order = [
        place(second, "cx"),
        place(low, "cx"),
        place(whisker, "x1"),
        place(paper, "x1"),
        place(first, "cx"),
        place(whisker, "x2"),
        place(high, "cx"),
    ]
    assert order == sorted(order)
    assert order[0] > 0
    assert order[-1] < 100
    assert tree.all("h3")[0].text == "A title"
    assert tree.all("span", "axis-title")[0].text == "balanced accuracy, %"


def test_zero_is_on_the_axis_if_asked_for(parse):
    tree = parse(forest_plot("", [row(mean=5.0)], axis="points", zero=True))
    (zero,), (mean,) = tree.all("line", "axis"), tree.all("circle", "mean")
    assert 0 < place(zero, "x1") < place(mean, "cx")
    assert not tree.all("h3")


def test_a_name_may_link_to_a_page(parse):
    tree = parse(forest_plot("", [row(href="gcn/report.html"), row("MLP")], axis=""))
    assert [node.attributes["href"] for node in tree.all("a")] == ["gcn/report.html"]
    assert [node.attributes["data-method"] for node in tree.all("li")[:2]] == ["GCN", "MLP"]


@pytest.mark.parametrize(("values", "limits"), [([], (-6, 106)), ([5.0, None], (4.5, 5.5))])
def test_limits_without_values(values, limits):
    assert padded(values) == limits
