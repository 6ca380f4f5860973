import re

import pytest
from measurements import GRAPH, changed

from evengraph.inspection.findings import find, percent
from evengraph.inspection.leaks import Leak


def told(**changes):
    """Level by text of the findings when some measurements differ."""
    return {finding.text: finding.level for finding in find(changed(**changes))}


CLASSES = "The smallest, class 'fraud', has 12 labelled nodes, the largest, class 'fine', has 340: "


@pytest.mark.parametrize(
    ("level", "text", "changes"),
    [
        ("warning", CLASSES + "28 times as many.", {}),
        ("note", CLASSES + "9.9 times as many.", {"labels": {"ratio": 9.94}}),
        (
            "good",
            "The classes are balanced: 10 to 12 labelled nodes.",
            {"labels": {"labelled": (10, 12), "ratio": 1.2}},
        ),
        (
            "warning",
            "No node of 'fraud' is labelled: no method can learn it.",
            {"labels": {"labelled": (340, 0), "ratio": 1.0}},
        ),
        (
            "warning",
            "All labelled nodes are of 'fine'.",
            {"labels": {"labelled": (340, 0), "ratio": 1.0}},
        ),
        (
            "warning",
            "'fraud' has only 1 labelled node: scores of so few vary widely between runs.",
            {"labels": {"labelled": (340, 1), "ratio": 340.0}},
        ),
        (
            "warning",
            "Class '?' may mean unlabelled, but counts as a class here: if it does, set "
            "--unlabelled first, since every number will change.",
            {
                "labels": {"names": ("fine", "fraud", "?"), "labelled": (340, 12, 9)},
                "homophily": {"per_class": (0.9, 0.5, 0.5), "neighbours": (900, 100, 100)},
                "reach": {"nodes": 0},
            },
        ),
        ("note", "352 of 1,000 nodes are labelled (35%).", {}),
        (
            "good",
            "Neighbours share a class on 81% of edges (50% expected by chance): the graph can "
            "help.",
            {},
        ),
        (
            "note",
            "Neighbours share a class on 60% of edges (50% expected by chance): the graph may help "
            "a little; compare with a model that ignores edges.",
            {"homophily": {"edge": 0.6, "adjusted": 0.2}},
        ),
        (
            "warning",
            "Neighbours share a class on 12% of edges (50% expected by chance): a method that "
            "relies on neighbours may mislead; compare with GraphSAGE.",
            {"homophily": {"edge": 0.12, "adjusted": -0.7}},
        ),
        (
            "warning",
            "Neighbours share a class on 95% of edges (94% expected by chance): a method that "
            "relies on neighbours may mislead; compare with GraphSAGE.",
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
            "Only 10% of the neighbours of class 'fraud' are of that class (4% expected by "
            "chance): features must tell it apart.",
            {"homophily": {"per_class": (0.9, 0.1), "neighbours": (960, 40)}},
        ),
        (
            "note",
            "38% of the unlabelled nodes are more than 2 hops from any labelled node of class "
            "'fraud': a network of 2 layers sees none of its labels there.",
            {},
        ),
        (
            "good",
            "At least 93% of the unlabelled nodes are within 2 hops of a labelled node of every "
            "class.",
            {"reach": {"per_class": ((600, 640, 648, 648), (100, 600, 600, 640))}},
        ),
        (
            "note",
            "Less than 1% of the unlabelled nodes (5) are more than 4 hops from every labelled "
            "node: edges hardly help there.",
            {"reach": {"beyond": 5}},
        ),
        ("good", "The graph is connected.", {}),
        (
            "warning",
            "20% of the nodes (200) have no neighbours: the graph does not help there.",
            {"degrees": {"isolated": 200, "isolated_share": 0.2}},
        ),
        (
            "note",
            "2 of 9 components hold no labelled node (1% of all nodes): no path leads there from a "
            "label.",
            {"components": {"count": 9, "unlabelled": 2, "unlabelled_nodes": 10}},
        ),
        (
            "note",
            "50% of the edges are listed in one direction only; this inspection reads them in "
            "both.",
            {"edges": {"one_way": 1000, "directed": True}},
        ),
        ("note", "1 self-loop ignored.", {"edges": {"to_itself": 1}}),
        (
            "note",
            "1,234 edges are listed more than once; repeats are ignored.",
            {"edges": {"repeated": 1234}},
        ),
        (
            "warning",
            "There are no features: only edges can tell nodes apart.",
            {"features": {"count": 0}},
        ),
        (
            "warning",
            "3 feature values are missing or infinite: fill them in first.",
            {"features": {"missing": 3}},
        ),
        (
            "note",
            "2% of the nodes have the same features as another: check that no node is listed "
            "twice.",
            {"features": {"duplicate_nodes": 20}},
        ),
        (
            "note",
            "Features alone distinguish only 40 kinds of nodes.",
            {"features": {"duplicate_nodes": 960}},
        ),
        ("good", "No single feature reveals the label.", {}),
        (
            "warning",
            "Column 'y_copy' alone almost determines the label: remove it.",
            {"leaks": (Leak(column="y_copy", kind="label", strength=0.97),)},
        ),
        (
            "warning",
            "Feature 17 is a copy of the label: remove it.",
            {"leaks": (Leak(column="feature 17", kind="copy", strength=1.0),)},
        ),
        (
            "note",
            "Column 'row' has a different value in every row, like an id: remove it.",
            {"leaks": (Leak(column="row", kind="id"),)},
        ),
    ],
)
def test_sentences(level, text, changes):
    assert told(**changes).get(text) == level, told(**changes)


def test_the_gravest_stand_first_and_all_are_sentences():
    findings = find(GRAPH)
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
    warnings = [t for t in told(leaks=leaks) if "c5" in t or "alone almost" in t]
    assert len(warnings) == 6
    assert warnings[-1].startswith("The same holds for 35 more: 'c5', 'c6'")


def test_without_unlabelled_nodes_nothing_is_said_of_reach():
    text = " ".join(told(reach={"nodes": 0}, labels={"num_unlabelled": 0}))
    assert "hops" not in text
    assert "are labelled" not in text


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


def test_without_edges_one_finding_says_so():
    parts = {
        "edges": {"pairs": 0},
        "degrees": {"isolated": 1000, "isolated_share": 1.0},
        "homophily": {"edges": 0, "edge": None, "adjusted": None},
        "components": {"count": 1000, "unlabelled": 648, "unlabelled_nodes": 648},
    }
    found = find(changed(**parts))
    assert [finding.text for finding in found if "edge" in finding.text] == [
        "There are no edges between different nodes: use a model that ignores edges."
    ]
    assert {finding.topic for finding in found}.isdisjoint({"neighbours", "reach", "parts"})
