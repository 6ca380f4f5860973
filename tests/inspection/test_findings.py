"""Findings and recommendations for graphs with given measurements."""

import re
from dataclasses import replace
from typing import Any

import pytest

from evengraph.inspection.findings import (
    HETEROPHILY_METHODS,
    avoids_neighbours,
    find,
    percent,
    recommend,
)
from evengraph.inspection.inspection import Inspection
from evengraph.inspection.leaks import Leak
from evengraph.inspection.measures import (
    Components,
    Degrees,
    Edges,
    Features,
    Homophily,
    Labels,
    Reach,
)
from evengraph.methods import GCN, METHODS

GRAPH = Inspection(
    name="",
    num_nodes=1000,
    labels=Labels(
        names=("fine", "fraud"),
        labelled=(340, 12),
        hidden=(0, 0),
        num_labelled=352,
        num_unlabelled=648,
        labelled_share=0.352,
        ratio=340 / 12,
    ),
    homophily=Homophily(
        edges=500,
        edge=0.81,
        by_chance=0.5,
        adjusted=0.62,
        per_class=(0.9, 0.5),
        neighbours=(900, 100),
    ),
    edges=Edges(listed=4000, pairs=2000, repeated=0, to_itself=0, one_way=0, directed=False),
    degrees=Degrees(
        median=3, mean=4.0, largest=50, isolated=0, isolated_share=0.0, bins=((1, 1, 1000),)
    ),
    components=Components(count=1, largest=1000, unlabelled=0, unlabelled_nodes=0),
    reach=Reach(
        hops=4,
        nodes=648,
        per_class=((600, 640, 648, 648), (100, 402, 500, 640)),
        any_class=(610, 645, 648, 648),
        beyond=0,
        never_per_class=(0, 0),
        never=0,
    ),
    features=Features(
        count=10,
        density=0.5,
        **dict.fromkeys(("constant", "missing", "empty_nodes"), 0),
        **dict.fromkeys(("duplicate_nodes", "conflicting_nodes"), 0),
    ),
    leaks=(),
)


def changed(**changes: Any) -> Inspection:
    """The graph with other measurements, given as whole parts or as the values that differ."""
    parts = {
        name: replace(getattr(GRAPH, name), **change) if isinstance(change, dict) else change
        for name, change in changes.items()
    }
    return replace(GRAPH, **parts)


def told(**changes):
    """Level by text of the findings when some measurements differ."""
    return {finding.text: finding.level for finding in find(changed(**changes))}


LABELS_OF_ONE = {"labels": {"labelled": (340, 0), "ratio": 1.0}}
UNSURE = {
    "labels": {"names": ("fine", "fraud", "?"), "labelled": (340, 12, 9)},
    "homophily": {"per_class": (0.9, 0.5, 0.5), "neighbours": (900, 100, 100)},
    "reach": {"nodes": 0},
}
NEAR = {"per_class": ((600, 640, 648, 648), (100, 600, 600, 640))}
CHANCE = {"edge": 0.95, "by_chance": 0.94, "adjusted": 0.05}


@pytest.mark.parametrize(
    ("level", "text", "changes"),
    [
        ("warning", "'fraud', has 12 labelled nodes, the largest, class 'fine', has 340: 28", {}),
        ("note", "340: 9.9 times as many.", {"labels": {"ratio": 9.94}}),
        ("good", "balanced: 10 to 12 label", {"labels": {"labelled": (10, 12), "ratio": 1.2}}),
        ("warning", "No node of 'fraud' is labelled: no method can learn it.", LABELS_OF_ONE),
        ("warning", "All labelled nodes are of 'fine'.", LABELS_OF_ONE),
        ("warning", "'fraud' has only 1 labelled node: ", {"labels": {"labelled": (340, 1)}}),
        ("warning", "Class '?' may mean unlabelled, but counts as a class here", UNSURE),
        ("note", "352 of 1,000 nodes are labelled (35%).", {}),
        ("good", "share a class on 81% of edges (50% expected by chance): the graph can help.", {}),
        ("note", "on 60% of edges", {"homophily": {"edge": 0.6, "adjusted": 0.2}}),
        ("warning", "on 12% of edges", {"homophily": {"edge": 0.12, "adjusted": -0.7}}),
        ("warning", "95% of edges (94% expected by chance): a method that", {"homophily": CHANCE}),
        ("note", "Only 1 edge joins two labelled", {"homophily": {"edges": 1, "adjusted": None}}),
        (
            "note",
            "Only 10% of the neighbours of class 'fraud' are of that class (4% expected",
            {"homophily": {"per_class": (0.9, 0.1), "neighbours": (960, 40)}},
        ),
        ("note", "38% of the unlabelled nodes are more than 2 hops from any labelled node", {}),
        ("good", "At least 93% of the unlabelled nodes are within 2 hops of a", {"reach": NEAR}),
        ("note", "Less than 1% of the unlabelled nodes (5) are", {"reach": {"beyond": 5}}),
        ("good", "The graph is connected.", {}),
        (
            "warning",
            "20% of the nodes (200) have no neighbours",
            {"degrees": {"isolated": 200, "isolated_share": 0.2}},
        ),
        (
            "note",
            "2 of 9 components hold no labelled node (1% of all nodes)",
            {"components": {"count": 9, "unlabelled": 2, "unlabelled_nodes": 10}},
        ),
        ("note", "50% of the edges are listed", {"edges": {"one_way": 1000, "directed": True}}),
        ("note", "1 self-loop ignored.", {"edges": {"to_itself": 1}}),
        ("note", "1,234 edges are listed more than once", {"edges": {"repeated": 1234}}),
        ("warning", "There are no features", {"features": {"count": 0}}),
        ("warning", "3 feature values are missing or infinite", {"features": {"missing": 3}}),
        ("note", "2% of the nodes have the same features", {"features": {"duplicate_nodes": 20}}),
        ("note", "only 40 kinds of nodes.", {"features": {"duplicate_nodes": 960}}),
        ("good", "No single feature reveals the label.", {}),
        ("warning", "Column 'y' alone almost", {"leaks": (Leak(column="y", kind="label"),)}),
        ("warning", "Feature 17 is a copy", {"leaks": (Leak(column="feature 17", kind="copy"),)}),
        ("note", "Column 'row' has a different", {"leaks": (Leak(column="row", kind="id"),)}),
    ],
)
def test_sentences(level, text, changes):
    found = {sentence: of for sentence, of in told(**changes).items() if text in sentence}
    assert list(found.values()) == [level], told(**changes)


def test_the_gravest_stand_first_and_all_are_sentences():
    findings = find(GRAPH)
    levels = [finding.level for finding in findings]
    assert levels == sorted(levels, key=("warning", "note", "good").index)
    assert {"warning", "note", "good"} == set(levels)
    for finding in findings:
        assert re.fullmatch(r"[A-Z0-9'].*\.", finding.text)
        assert "  " not in finding.text


def test_text_and_leaks_are_told_together():
    alike = "the same value for every node."
    assert f"3 of 16 features have {alike}" in told(features={"count": 16, "constant": 3})
    text = told(features={"count": 266, "hashed": 256, "constant": 1})
    assert f"1 of 10 features that are not hashed text has {alike}" in text
    leaks = tuple(Leak(column=f"c{n}", kind="class", class_name="fine") for n in range(40))
    warnings = [t for t in told(leaks=leaks) if "c5" in t or "alone almost" in t]
    assert len(warnings) == 6
    assert warnings[-1].startswith("The same holds for 35 more: 'c5', 'c6'")
    text = " ".join(told(reach={"nodes": 0}, labels={"num_unlabelled": 0}))
    assert "hops" not in text
    assert "are labelled" not in text


def test_percent_never_rounds_to_none_or_all():
    assert [percent(share) for share in (0, 0.5, 1)] == ["0%", "50%", "100%"]
    assert [percent(share) for share in (0.004, 0.996)] == ["less than 1%", "more than 99%"]


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


def advised(**changes):
    return " ".join(recommend(changed(**changes)))


def test_advice():
    assert set(HETEROPHILY_METHODS.split(",")) <= METHODS.keys()
    plain = advised()
    assert plain.startswith(
        "Classes are imbalanced and many nodes are far from labels: use the default, which selects "
    )
    assert ", or compare them with GCN. " in plain
    for kind in METHODS.values():
        assert (kind.title in plain) == bool(kind.portfolio or kind is GCN), kind.title
    assert "correct for 97% of the labelled nodes" in plain
    near = {"reach": {"per_class": ((648,) * 4,) * 2}}
    even = {"labels": {"labelled": (10, 12), "ratio": 1.2}}
    assert advised(**near, **even) == "A plain GCN may be enough; compare it with the default."
    assert advised(**near).startswith("Classes are imbalanced: use the default, ")
    assert advised(**even).startswith("Many nodes are far from labels: use the default, ")
    assert advised(homophily={"adjusted": 0.0}).startswith("Compare methods on GraphSAGE, ")
    assert avoids_neighbours(changed(homophily={"adjusted": 0.0}))
    none = advised(edges={"pairs": 0})
    assert none.startswith("Without edges, use the default, which includes models of features ")
    few = {"homophily": {"adjusted": 0.0, "edges": 3}}
    assert advised(**few).startswith("Classes are imbalanced")
    assert not avoids_neighbours(changed(**few))
    leak = (Leak(column="y_copy", kind="copy"), Leak(column="row", kind="id"))
    assert advised(leaks=leak).startswith("First remove 'y_copy' from the features. Classes are")
    single = {"labels": {"labelled": (3, 0), "ratio": 1.0}}
    assert advised(**single) == "Label nodes of at least two classes before training."
