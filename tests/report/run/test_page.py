import copy
import math
import re
from itertools import pairwise

import pytest

from evengraph.metrics.registry import METRICS
from evengraph.report import render_page

HOSTILE = "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"' &amp;"


def test_the_title_says_what_was_run(result, parse):
    tree = parse(render_page(result))
    (title,) = tree.all("h1")
    assert title.text == "UniGNN on Cora, step imbalance: 3 minority classes at 10%"
    assert tree.all("title")[0].text == "UniGNN on Cora, step imbalance: 3 minority classes at 10%"
    assert tree.all("html")[0].attributes["lang"] == "en"


def test_headings_descend_one_step_at_a_time(result, parse):
    levels = [int(n.tag[1]) for n in parse(render_page(result)).walk() if re.match(r"h\d$", n.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_pictures_are_named_or_hidden(result, parse):
    pictures = [
        node
        for node in parse(render_page(result)).all("svg")
        if "viewbox" not in node.attributes  # the stretched inner picture of the curves
    ]
    assert pictures
    for node in pictures:
        named = node.attributes.get("role") == "img" and node.attributes.get("aria-label")
        assert named or node.attributes.get("aria-hidden") == "true"


def test_headline_figures_come_from_the_result(result, parse):
    cards = parse(render_page(result)).all("article", "card")
    assert len(cards) == 3
    for card, key in zip(cards, ("balanced_accuracy", "macro_f1", "g_mean"), strict=True):
        mean, std, paper = result["mean"][key], result["std"][key], result["paper"][key]
        figure, against = card.all("p", "figure")[0], card.all("p", "against")[0]
        assert figure.text == f"{mean:.1f}± {std:.1f}"
        assert f"paper {paper['mean']:.1f} ± {paper['std']:.1f}" in against.text
        difference = f"{mean - paper['mean']:+.1f}".replace("-", "−")
        assert f"{difference} points" in against.text


def test_every_seed_and_its_figures_are_listed(result, parse):
    (_, table) = parse(render_page(result)).all("table", "figures")
    lines = [
        [cell.text for cell in row.walk() if cell.tag in ("th", "td")]
        for row in table.all("tbody")[0].all("tr")
    ]
    for line, run in zip(lines[:3], result["runs"], strict=True):
        assert line == [
            str(run["seed"]),
            *(f"{value:.2f}" for value in run["metrics"].values()),
            f"{run['best_epoch']:,}",
            f"{run['epochs']:,}",
            f"{run['seconds']:.1f}",
        ]
    assert [line[0] for line in lines[3:]] == ["mean", "std", "paper"]
    assert lines[3][1:7] == [f"{value:.2f}" for value in result["mean"].values()]
    assert lines[4][1:7] == [f"{value:.2f}" for value in result["std"].values()]
    assert lines[5][1:7] == ["76.5 ± 0.5", "75.8 ± 0.4", "85.6 ± 0.3", "–", "–", "–"]


def test_of_two_classes_the_table_of_seeds_holds_what_matters(of_two, parse):
    page = parse(render_page(of_two))
    (_, table) = page.all("table", "figures")
    heads = [head.text for head in table.all("thead")[0].all("th")]
    assert heads == ["seed", *(m.heading for m in METRICS.values() if m.headline or m.binary)]
    for row in table.all("tbody")[0].all("tr"):
        assert sum(cell.tag in ("th", "td") for cell in row.walk()) == len(heads)
    left = "result.json: Accuracy, Mean average precision, AUROC, epochs, seconds."
    assert left in page.text
    assert page.text.count("Not shown") == 1


def test_classes_stand_head_to_tail_with_the_rare_ones_apart(result, parse):
    result["class_counts"] = [2, 20, 20, 2, 20, 2, 20]
    (ladder,) = parse(render_page(result)).all("ul", "ladder")
    lines = [line for line in ladder.all("li") if line.all("span", "value")]
    order = [1, 2, 4, 6, 0, 3, 5]
    names = result["dataset"]["class_names"]
    assert [line.all("span", "name")[0].text for line in lines] == [names[i] for i in order]
    assert ["rare" in line.kinds for line in lines] == [False] * 4 + [True] * 3
    for line, index in zip(lines, order, strict=True):
        recalls = [run["per_class"]["recall"][index] for run in result["runs"]]
        count, recall = (value.text for value in line.all("span", "value"))
        assert count == str(result["class_counts"][index])
        assert recall == f"{math.fsum(recalls) / 3:.1f}"
        # three seeds as rings, and the mean
        assert len(line.all("circle", "seed")) == 3
        assert len(line.all("circle", "mean")) == 1


def test_without_a_fixed_minority_the_small_half_is_rare(result, parse):
    result["imbalance"] = {"name": "longtail", "ratio": 0.01}
    result["class_counts"] = [100, 60, 50, 49, 20, 5, 1]
    text = render_page(result)
    (ladder,) = parse(text).all("ul", "ladder")
    assert len([line for line in ladder.all("li") if "rare" in line.kinds]) == 4
    assert "fewer than half the training nodes" in text
    assert ladder.all("span", "counts")[0].text == "training nodes"
    assert "labelled nodes" not in text


def test_settings_are_folded_and_complete(result, parse):
    folded = parse(render_page(result)).all("details")
    assert [node.all("summary")[0].text for node in folded] == ["Configuration", "Environment"]
    assert all("open" not in node.attributes for node in folded)
    pairs = [
        dict(zip((n.text for n in node.all("dt")), (n.text for n in node.all("dd")), strict=True))
        for node in folded
    ]
    assert pairs[0]["alpha"] == "2"
    assert pairs[0]["imbalance ratio"] == "0.1"
    assert pairs[0]["seeds"] == "5, 6, 7"
    assert pairs[1]["torch"] == "2.13.0"
    assert pairs[1]["commit"] == "–"


def test_settings_show_what_auto_stood_for(result):
    result["method"]["fields"]["alpha"] = "auto"
    for run, alpha in zip(result["runs"], (1, 2, 1), strict=True):
        run["resolved"] = {"alpha": alpha}
    assert "auto: 1, 2<" in render_page(result)


def test_hostile_text_stays_text(result, parse):
    clean = [node.tag for node in parse(render_page(result)).walk()]
    names = result["dataset"]["class_names"]
    names[0] = HOSTILE
    result["dataset"]["name"] = HOSTILE
    result["method"] |= {"title": HOSTILE, "summary": HOSTILE, "fields": {HOSTILE: HOSTILE}}
    result["environment"][HOSTILE] = HOSTILE
    result["created"] = result["evengraph"] = HOSTILE
    result["runs"][0]["seed"] = HOSTILE
    result["mean"][HOSTILE] = 1.0
    text = render_page(result)
    tree = parse(text)
    assert "<script" not in text
    assert "<img" not in text
    tags = {node.tag for node in tree.walk()}
    assert tags <= set(clean)
    assert not any(key.startswith("on") for node in tree.walk() for key in node.attributes)
    assert any(node.text == HOSTILE for node in tree.all("span", "name"))


def test_nothing_is_asked_from_outside(result, parse):
    result["method"]["summary"] = "see https://example.org"
    text = render_page(result)
    tree = parse(text)
    for node in tree.walk():
        assert node.tag not in {"script", "iframe", "img", "object", "embed", "base", "form"}
        assert not {"src", "srcset", "xlink:href", "action"} & set(node.attributes)
        assert node.attributes.get("href", "data:,") == "data:,"
    styles = "".join(node.text for node in tree.all("style"))
    styles += "".join(node.attributes.get("style") or "" for node in tree.walk())
    assert not re.search(r"url\(|@import|https?:|//", styles)
    policy = [n for n in tree.all("meta") if "http-equiv" in n.attributes]
    assert (policy[0].attributes["content"] or "").startswith("default-src 'none'")


def test_one_seed_claims_no_deviation(make, parse):
    text = render_page(make(["no", "yes"], classes=2, rare=1, seeds=(1,), paper=False))
    tree = parse(text)
    assert "±" not in tree.all("body")[0].text
    assert "std" not in tree.all("body")[0].text
    assert "paper" not in tree.all("main")[0].text
    assert not tree.all("svg", "strip")


def test_undefined_metrics_show_as_a_dash(result, parse):
    for run in result["runs"]:
        run["metrics"]["auroc"] = None
    result["mean"]["auroc"] = result["std"]["auroc"] = None
    result["mean"]["g_mean"] = math.nan
    result["runs"][1]["metrics"]["g_mean"] = math.nan
    text = render_page(result)
    tree = parse(text)
    assert tree.all("article", "card")[2].all("p", "figure")[0].text == "–"
    assert not re.search(r"\b(nan|inf|None)\b", tree.all("body")[0].text, re.IGNORECASE)
    for node in tree.walk():
        drawn = [node.attributes.get(k) or "" for k in ("d", "x", "x1", "x2", "cx", "cy", "width")]
        assert "nan" not in "".join(drawn)


def test_many_classes_many_seeds_and_long_histories_stay_light(make, parse):
    names = ["A very long name of a class, longer than any screen is wide " * 3] * 50
    text = render_page(make(names, classes=50, rare=30, seeds=tuple(range(12)), epochs=5000))
    assert len(parse(text).all("table", "matrix")[0].all("td")) == 2501
    assert len(text) < 2_000_000


@pytest.mark.parametrize("names", [None, [], ["only one"], [None] * 7, ["  "] * 7, 3])
def test_missing_names_fall_back_to_numbers(result, names):
    result["dataset"]["class_names"] = names
    assert "class 6" in render_page(result)
    del result["dataset"]["class_names"]
    assert "class 0" in render_page(result)


def _places(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield from _places(value[0], (*path, 0))


@pytest.mark.parametrize("bad", [None, math.nan, -1e308, "text", [], {}])
def test_no_single_bad_value_breaks_the_page(make, parse, bad):
    whole = make(classes=3, rare=1, seeds=(1, 2), epochs=4)
    for path in _places(whole):
        broken = copy.deepcopy(whole)
        holder = broken
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = bad
        assert len(parse(render_page(broken)).all("h1")) == 1, path
        if isinstance(holder, dict):
            del holder[path[-1]]
            assert "<h1" in render_page(broken), path


def test_an_empty_result_still_gives_a_page(parse):
    assert "no finished run" in parse(render_page({})).text


def test_notes_of_fits_are_shown_once_with_their_seeds(result, parse):
    for run, notes in zip(
        result["runs"],
        (["Most nodes are alone."], [HOSTILE], ["Most nodes are alone."] * 2),
        strict=True,
    ):
        run["notes"] = notes
    notices = [node.text for node in parse(render_page(result)).all("p", "notice")]
    assert "Seeds 5, 7: Most nodes are alone." in notices
    assert f"Seed 6: {HOSTILE}" in notices


def test_an_interrupted_run_is_announced(result, parse):
    result["runs"][1]["interrupted"] = True
    tree = parse(render_page(result))
    assert "seed 6" in tree.all("p", "notice")[0].text
    assert "6 (interrupted)" in tree.all("table", "figures")[-1].text
