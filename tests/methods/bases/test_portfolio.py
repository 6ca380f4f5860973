"""The portfolio: what methods declare becomes candidates with defaults for the graph."""

from dataclasses import asdict

from evengraph.methods import METHODS, portfolio
from evengraph.methods.bases.search import method_table
from small_graphs import small_task

GRAPH = small_task().graph


def test_every_declared_setting_is_a_candidate_in_the_order_of_the_table():
    candidates = list(portfolio(GRAPH).values())
    declared = [(kind, entry) for kind in METHODS.values() for entry in kind.portfolio]
    assert [type(candidate) for candidate in candidates] == [kind for kind, _ in declared]
    for candidate, (kind, entry) in zip(candidates, declared, strict=True):
        assert asdict(candidate) == asdict(kind(**{**kind.graph_defaults(GRAPH), **entry}))


def test_it_has_models_with_and_without_the_graph_and_no_title_twice():
    candidates = portfolio(GRAPH).values()
    assert {candidate.uses_graph for candidate in candidates} == {True, False}
    titles = [candidate.full_title for candidate in candidates]
    assert len(set(titles)) == len(titles)


def test_labels_name_what_differs():
    labels = list(portfolio(GRAPH))
    assert "boosting hops=2" in labels
    assert "boosting hops=0" in labels
    assert "unison" in labels


def test_given_parameters_replace_those_of_the_portfolio():
    found = portfolio(GRAPH, {"boosting": {"columns": 3}})
    assert {found[f"boosting hops={hops}"].columns for hops in (0, 2)} == {3}
    assert found["unison"] == portfolio(GRAPH)["unison"]


def test_candidates_that_parameters_make_equal_are_one():
    found = portfolio(GRAPH, {"boosting": {"hops": 1}})
    assert [name for name in found if name.startswith("boosting")] == ["boosting"]
    assert found["boosting"].hops == 1


def test_the_table_is_the_one_that_others_extend():
    assert method_table() is METHODS
