"""Recommendations for graphs with given measurements."""

from pathlib import Path

from measurements import changed

from evengraph.inspection.findings import (
    HETEROPHILY_METHODS,
    HETEROPHILY_OPTIONS,
    avoids_neighbours,
    recommend,
)
from evengraph.inspection.leaks import Leak
from evengraph.methods import GCN, METHODS


def advised(**changes):
    return " ".join(recommend(changed(**changes)))


def test_the_advice_is_that_of_the_documentation():
    assert set(HETEROPHILY_METHODS.split(",")) <= METHODS.keys()
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    page = " ".join(page.replace("\\\n", " ").split())
    command = "evengraph compare DATA --label kind"
    apart = f"{command} {' '.join(HETEROPHILY_OPTIONS)}"
    assert command in page
    assert apart in page


def test_advice():
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
