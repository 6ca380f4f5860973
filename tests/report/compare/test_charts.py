from compared import compared

from evengraph.report.compare_page import cost_section, difference_plot, score_plot


def test_a_published_mean_has_a_mark(parse):
    content = compared(80.0, 70.0)
    assert not parse(score_plot(content, {})).all("line", "paper")
    content["methods"][1]["paper"] = {"balanced_accuracy": {"mean": 71.5, "std": None}}
    tree = parse(score_plot(content, {}))
    assert len(tree.all("line", "paper")) == 1
    assert "published 71.5" in [n.text for n in tree.all("title")][1]


def test_of_equal_means_either_may_be_first(parse):
    content = compared(70.0, 70.0)
    (pair,) = content["pairs"]
    pair["ahead"], pair["behind"] = pair["behind"], pair["ahead"]
    pair |= {"wide_low": -1.0, "wide_high": 3.0}
    (title,) = parse(difference_plot(content)).all("title")
    assert "95% interval −1.0 to +3.0" in title.text


def test_the_longest_fit_has_the_longest_bar(parse):
    bars = parse(cost_section(compared(80.0, 70.0, 60.0))).all("rect", "bar")
    widths = [float(node.attributes["width"][:-1]) for node in bars]
    assert widths == [50.0, 75.0, 100.0]
