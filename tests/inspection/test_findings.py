import re
from dataclasses import replace
from pathlib import Path

import pytest

from evengraph.inspection.edges import Components, Degrees, Edges
from evengraph.inspection.features import Features
from evengraph.inspection.findings import HETEROPHILY_METHODS, find, percent, recommend
from evengraph.inspection.labels import Homophily, Labels
from evengraph.inspection.leaks import Leak
from evengraph.inspection.reach import Reach
from evengraph.methods import METHODS

PARTS = {
    "labels": Labels(
        names=("fine", "fraud"),
        labelled=(340, 12),
        hidden=(0, 0),
        num_labelled=352,
        num_unlabelled=648,
        labelled_share=0.352,
        ratio=340 / 12,
    ),
    "homophily": Homophily(
        edges=500,
        edge=0.81,
        by_chance=0.5,
        adjusted=0.62,
        per_class=(0.9, 0.5),
        neighbours=(900, 100),
    ),
    "edges": Edges(listed=4000, pairs=2000, repeated=0, to_itself=0, one_way=0, directed=False),
    "degrees": Degrees(
        median=3, mean=4.0, largest=50, isolated=0, isolated_share=0.0, bins=((1, 1, 1000),)
    ),
    "components": Components(count=1, largest=1000, unlabelled=0, unlabelled_nodes=0),
    "reach": Reach(
        hops=4,
        nodes=648,
        per_class=((600, 640, 648, 648), (100, 402, 500, 640)),
        any_class=(610, 645, 648, 648),
        beyond=0,
        never_per_class=(0, 0),
        never=0,
    ),
    "features": Features(
        count=10,
        density=0.5,
        constant=0,
        missing=0,
        empty_nodes=0,
        duplicate_nodes=0,
        conflicting_nodes=0,
    ),
    "leaks": (),
}


def told(**changes):
    """Level and text of what is found when some figures differ."""
    parts = {
        name: replace(part, **changes[name]) if isinstance(changes.get(name), dict) else part
        for name, part in PARTS.items()
    }
    parts |= {name: value for name, value in changes.items() if not isinstance(value, dict)}
    return {finding.text: finding.level for finding in find(**parts)}


def advised(**changes):
    names = ("labels", "homophily", "reach")
    parts = [replace(PARTS[name], **changes.get(name, {})) for name in names]
    return " ".join(recommend(*parts, changes.get("leaks", ()), changes.get("label")))


CLASSES = "The rarest, class 'fraud', has 12 labelled nodes, the largest, class 'fine', 340: "


@pytest.mark.parametrize(
    ("level", "text", "changes"),
    [
        ("warning", CLASSES + "28 times as many.", {}),
        ("note", CLASSES + "9.9 times as many.", {"labels": {"ratio": 9.94}}),
        (
            "good",
            "The classes are about equally large: 10 to 12 labelled nodes.",
            {"labels": {"labelled": (10, 12), "ratio": 1.2}},
        ),
        (
            "warning",
            "No node of 'fraud' is labelled: no method can learn that.",
            {"labels": {"labelled": (340, 0), "ratio": 1.0}},
        ),
        (
            "warning",
            "All labelled nodes are of 'fine'.",
            {"labels": {"labelled": (340, 0), "ratio": 1.0}},
        ),
        (
            "warning",
            "'fraud' has only 1 labelled node: scores for so few vary widely from run to run.",
            {"labels": {"labelled": (340, 1), "ratio": 340.0}},
        ),
        ("note", "352 of 1,000 nodes are labelled (35%).", {}),
        (
            "good",
            "Neighbours share a class in 81% of edges, 50% would be chance: the graph can help.",
            {},
        ),
        (
            "note",
            "Neighbours share a class in 60% of edges, 50% would be chance: the graph may help a "
            "little; compare with an MLP.",
            {"homophily": {"edge": 0.6, "adjusted": 0.2}},
        ),
        (
            "warning",
            "Neighbours share a class in only 12% of edges, and 50% would be chance: a method that "
            "trusts neighbours may mislead; compare with GraphSAGE.",
            {"homophily": {"edge": 0.12, "adjusted": -0.7}},
        ),
        (
            "warning",
            "Neighbours share a class in 95% of edges, but 94% would be chance: a method that "
            "trusts neighbours may mislead; compare with GraphSAGE.",
            {"homophily": {"edge": 0.95, "by_chance": 0.94, "adjusted": 0.05}},
        ),
        (
            "note",
            "Only 1 edge joins two labelled nodes: too few to tell whether neighbours share a "
            "class.",
            {"homophily": {"edges": 1, "edge": 1.0, "adjusted": None}},
        ),
        (
            "note",
            "Of the neighbours of class 'fraud' only 10% are of that class: what tells it apart "
            "must come from features.",
            {"homophily": {"per_class": (0.9, 0.1)}},
        ),
        (
            "note",
            "38% of the unlabelled nodes are more than 2 hops from any labelled node of class "
            "'fraud': Uni-GNN is made for that.",
            {},
        ),
        (
            "good",
            "At least 93% of the unlabelled nodes lie within 2 hops of a labelled node of every "
            "class.",
            {"reach": {"per_class": ((600, 640, 648, 648), (100, 600, 600, 640))}},
        ),
        (
            "note",
            "Less than 1% of the unlabelled nodes are more than 4 hops from every labelled node "
            "(5): edges tell next to nothing there.",
            {"reach": {"beyond": 5}},
        ),
        ("good", "All nodes hang together in one component.", {}),
        (
            "warning",
            "20% of the nodes have no neighbour (200): the graph does not help there.",
            {"degrees": {"isolated": 200, "isolated_share": 0.2}},
        ),
        (
            "note",
            "2 of 9 components hold no labelled node, 1% of all nodes: no path leads there from a "
            "label.",
            {"components": {"count": 9, "unlabelled": 2, "unlabelled_nodes": 10}},
        ),
        (
            "note",
            "50% of the edges are listed in one direction only; they are looked at in both here.",
            {"edges": {"one_way": 1000, "directed": True}},
        ),
        ("note", "1 edge leads from a node to itself.", {"edges": {"to_itself": 1}}),
        (
            "note",
            "1,234 edges are listed more than once; a repeat counts for nothing here.",
            {"edges": {"repeated": 1234}},
        ),
        (
            "warning",
            "There are no features: only edges can tell nodes apart.",
            {"features": {"count": 0}},
        ),
        (
            "warning",
            "3 entries of the features are missing or infinite: fill them in first.",
            {"features": {"missing": 3}},
        ),
        (
            "note",
            "2% of the nodes have exactly the features of another: make sure that no node is "
            "listed twice.",
            {"features": {"duplicate_nodes": 20}},
        ),
        (
            "note",
            "Features alone tell only 40 kinds of node apart.",
            {"features": {"duplicate_nodes": 960}},
        ),
        ("good", "No single feature gives the label away.", {}),
        (
            "warning",
            "Column 'y_copy' tells the label almost by itself: leave it out.",
            {"leaks": (Leak(column="y_copy", kind="label", strength=0.97),)},
        ),
        (
            "warning",
            "Feature 17 is a copy of the label: leave it out.",
            {"leaks": (Leak(column="feature 17", kind="copy", strength=1.0),)},
        ),
        (
            "note",
            "Column 'row' has another value in every row, like an id: leave it out.",
            {"leaks": (Leak(column="row", kind="id"),)},
        ),
    ],
)
def test_sentences(level, text, changes):
    assert told(**changes).get(text) == level, told(**changes)


def test_the_gravest_stand_first_and_all_are_sentences():
    findings = find(**PARTS)
    levels = [finding.level for finding in findings]
    assert levels == sorted(levels, key=("warning", "note", "good").index)
    assert {"warning", "note", "good"} == set(levels)
    for finding in findings:
        assert re.fullmatch(r"[A-Z0-9'].*\.", finding.text)
        assert "  " not in finding.text


def test_text_is_left_out_of_features_that_never_change():
    alike = "the same value for every node."
    assert f"3 of 16 features have {alike}" in told(features={"count": 16, "constant": 3})
    text = told(features={"count": 266, "hashed": 256, "constant": 1})
    assert f"1 of 10 features that are not hashed text has {alike}" in text


def test_many_leaks_are_told_together():
    leaks = tuple(Leak(column=f"c{n}", kind="class", class_name="fine") for n in range(40))
    warnings = [t for t in told(leaks=leaks) if "c5" in t or "by itself" in t]
    assert len(warnings) == 6
    assert warnings[-1].startswith("So it is with 35 more: 'c5', 'c6'")


def test_without_unlabelled_nodes_nothing_is_said_of_reach():
    text = " ".join(told(reach={"nodes": 0}, labels={"num_unlabelled": 0}))
    assert "hops" not in text
    assert "are labelled" not in text


def test_the_advice_is_that_of_the_documentation():
    assert set(HETEROPHILY_METHODS.split(",")) <= METHODS.keys()
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    page = " ".join(page.replace("\\\n", " ").split())
    command = "evengraph compare DATA --label kind"
    apart = f"{command} --methods {HETEROPHILY_METHODS} --set backbone=sage"
    assert command in page
    assert apart in page
    assert f"({command})" in advised(label="kind")
    assert f"({apart})" in advised(label="kind", homophily={"adjusted": 0.0})


def test_advice():
    plain = advised()
    assert plain.startswith(
        "There are unequal classes and far-off nodes: compare Re-weight, Uni-GNN, Double "
        "balancing and IceBerg, with GCN as the baseline (evengraph compare DATA). "
    )
    assert "right for 97% of the labelled nodes" in plain
    near = {"reach": {"per_class": ((648,) * 4,) * 2}}
    even = {"labels": {"labelled": (10, 12), "ratio": 1.2}}
    assert advised(**near, **even) == "A plain GCN may well be enough; compare Uni-GNN with it."
    assert advised(**near).startswith("There are unequal classes: compare Re-weight, ")
    assert advised(**even).startswith("There are far-off nodes: compare Re-weight, ")
    assert advised(homophily={"adjusted": 0.0}).startswith("Compare on GraphSAGE, ")
    few = {"homophily": {"adjusted": 0.0, "edges": 3}}
    assert advised(**few).startswith("There are unequal classes")
    leak = (Leak(column="y_copy", kind="copy"), Leak(column="row", kind="id"))
    assert advised(leaks=leak).startswith("First leave out 'y_copy'. There are")
    assert "compare DATA --label 'what kind')" in advised(label="what kind")
    single = {"labels": {"labelled": (3, 0), "ratio": 1.0}}
    assert advised(**single) == "Label nodes of at least two classes before training anything."


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (0.004, "less than 1%"),
        (0.5, "50%"),
        (0.996, "more than 99%"),
        (1, "100%"),
    ],
)
def test_percent_never_rounds_to_none_or_all(share, text):
    assert percent(share) == text
