"""What a scorer says of new rows: as predictions on the whole graph, to rounding."""

import numpy as np
import pandas as pd
import pytest
import torch

import evengraph as eg
from evengraph.tables import UnknownNodeError

SIZE = 300
NAMES = {
    "plain": {"label": "kind", "id": "id"},
    "rich": {"label": "kind", "id": "id", "weight": "weight", "type": "type", "directed": True},
}
METHODS = {
    "logistic": eg.Logistic(hops=2, degree=True),
    "boosting": eg.Boosting(hops=2, degree=True, context=True, max_epochs=10),
    "unison": eg.Unison(max_epochs=10, members=2, hidden=8, components=8),
    "labelpropagation": eg.LabelPropagation(),
    "gcn": eg.GCN(max_epochs=10, normalisation="symmetric"),
    "auto": eg.Auto(candidates="logistic,boosting,unison,labelpropagation", folds=2, max_epochs=5),
    "unignn": eg.UniGNN(max_epochs=3),
}


def known_tables(kind):
    draw = np.random.default_rng(0)
    fraud = draw.random(SIZE) < 0.3
    nodes = pd.DataFrame({"id": [f"a{place}" for place in range(SIZE)]})
    nodes["amount"] = draw.normal(size=SIZE) + fraud
    nodes["country"] = draw.choice(["DE", "FR"], SIZE)
    nodes["kind"] = np.where(draw.random(SIZE) < 0.5, "", np.where(fraud, "fraud", "honest"))
    ends = draw.integers(0, SIZE, (2, 3 * SIZE))
    ends[1] = np.where(fraud[ends[0]], draw.choice(np.flatnonzero(fraud), 3 * SIZE), ends[1])
    return nodes, edge_table(kind, [f"a{end}" for end in ends[0]], [f"a{end}" for end in ends[1]])


def edge_table(kind, source, target):
    draw, edges = np.random.default_rng(1), pd.DataFrame({"source": source, "target": target})
    if kind == "rich":
        edges["weight"] = draw.exponential(size=len(edges)) + 0.1
        edges["type"] = draw.choice(["pays", "calls"], len(edges))
        edges["day"] = [f"2024-0{month}-10" for month in draw.integers(1, 9, len(edges))]
    return edges


def new_tables(kind):
    """Six rows with edges to known nodes and to each other, in both directions and twice."""
    draw, nodes = np.random.default_rng(2), pd.DataFrame({"id": [f"n{row}" for row in range(6)]})
    nodes["amount"] = np.linspace(-2, 3, 6)
    nodes["country"] = ["DE", "FR", "IT", None, "DE", "FR"]
    pairs = [(f"n{row % 5}", f"a{draw.integers(SIZE)}") for row in range(30)]
    pairs += [("n0", "n1"), ("n1", "n0"), pairs[3], pairs[4][::-1], ("n2", "n2")]  # none of n5
    pairs += [("n3", end) for end in known_tables(kind)[1].iloc[0, :2]]  # a triangle
    return nodes, edge_table(kind, *zip(*pairs, strict=True))


@pytest.fixture(scope="module", params=NAMES)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def models(kind):
    fitted = {}

    def get(name):
        if name not in fitted:
            model = eg.TableModel(METHODS[name], refit=False)
            fitted[name] = model.fit(*known_tables(kind), progress=False, **NAMES[kind])
        return fitted[name]

    return get


@pytest.mark.parametrize("name", METHODS)
def test_new_rows_are_scored_as_they_are_predicted(name, kind, models):
    model, known, new = models(name), known_tables(kind), new_tables(kind)
    scorer = eg.Scorer(model, known)
    assert bool(scorer.whole) == (name == "unignn" or (name == "gcn" and kind == "rich"))
    found, table = scorer.score(*new), model.predict(*new, known=known)
    expected = model.predict_proba(*new, known=known)
    rows = np.array([list(one["probabilities"].values()) for one in found])
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-6)
    assert [one["class"] for one in found] == table["class"].tolist()
    assert [one["flagged"] for one in found] == table["flagged"].tolist()
    assert [one["id"] for one in found] == new[0]["id"].tolist()


def test_payments_are_scored_beside_those_that_share_a_value():
    """A table with links and times: as by the whole table, also where most rows share a value."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame(
        {"card": draw.integers(0, 60, SIZE), "amount": draw.exponential(size=SIZE)}
    )
    table["device"] = [f"d{device}" for device in draw.integers(0, 40, SIZE)]
    table["at"] = pd.Timestamp("2024-05-01") + pd.to_timedelta(
        draw.integers(0, 999, SIZE), unit="h"
    )
    table["kind"] = np.where(table["card"] % 5 + table["amount"] > 4, "fraud", "honest")
    new = table.iloc[-9:].assign(card=[1, 2, 3, 4, 5, 99, None, 7, 7]).drop(columns="kind")
    new["at"] += pd.Timedelta(days=60)
    options = {"label": "kind", "link": "card,card+device", "time": "at"}
    for some in (table, table.assign(device=["d1"] * 200 + ["d2"] * (SIZE - 200))):
        model = eg.TableModel(eg.Boosting(max_epochs=10, smallest_leaf=5), refit=False)
        scorer = eg.Scorer(model.fit(some, progress=False, **options), some)
        assert not scorer.whole
        for rows in (new, new.iloc[:1], new.iloc[5:6]):
            expected = model.predict_proba(rows, known=some)
            found = [list(one["probabilities"].values()) for one in scorer.score(rows)]
            np.testing.assert_array_equal(np.float32(found), np.float32(expected))
    shared = {**options, "link": "device"}  # which most rows share
    assert eg.Scorer(model.fit(some, progress=False, **shared), some).whole


def test_walks_are_exact_before_calibration(kind, models):
    """Calibration may flatten differences; these are of the methods themselves."""
    known, new = known_tables(kind), new_tables(kind)
    for name in ("labelpropagation", "unison", *["gcn"] * (kind == "plain")):
        scorer = eg.Scorer(models(name), known)
        expected = models(name).predict_proba(*new, known=known, calibrated=False)
        found = scorer._predict(scorer._near(*new)).detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        assert expected.std(0).min() > 1e-3, name


def test_ranks_triangles_and_labels_around_new_rows_are_exact(kind, models, monkeypatch):
    model, known, new = models("boosting"), known_tables(kind), new_tables(kind)
    seen = []
    scorer, grow = eg.Scorer(model, known), type(model.method_).tree_logits
    monkeypatch.setattr(
        type(model.method_),
        "tree_logits",
        lambda self, read: seen.append(read(every)) or grow(self, read),
    )
    graph, first = model.open(*new, known=known).tables.graph, SIZE
    width = model.method_.context_width
    every = torch.arange(model.method_._table(graph, torch.arange(1)).shape[1])
    scorer.score(*new)
    model.predict_proba(*new, known=known)
    found, expected = seen[0], seen[1][first:]
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)  # rounded to 16 bits
    assert expected[:, -width:].std(0).min() > 1e-3


def test_lists_of_dicts_are_scored_like_tables(models, kind):
    scorer, (nodes, edges) = eg.Scorer(models("gcn"), known_tables(kind)), new_tables(kind)
    rows = nodes.astype(object).where(nodes.notna(), None).to_dict("records")
    assert scorer.score(rows, edges.to_dict("records")) == scorer.score(nodes, edges)
    assert scorer.score(rows[:1])[0]["id"] == "n0"


def test_known_nodes_and_edges_between_them_take_the_whole_graph(models, kind):
    model, known = models("logistic"), known_tables(kind)
    again = known[0].iloc[[4]].drop(columns="kind").assign(amount=5.0)
    edges = edge_table(kind, ["a4", "a7"], ["a9", "a8"])
    found = eg.Scorer(model, known).score(again, edges)[0]["probabilities"]
    expected = model.predict_proba(again, edges, known=known)[0]
    np.testing.assert_allclose(list(found.values()), expected, rtol=0, atol=1e-6)


def test_reasons_are_predictions_without_a_cell_or_the_edges(models, kind):
    model, known, (nodes, edges) = models("logistic"), known_tables(kind), new_tables(kind)
    scorer, nodes = eg.Scorer(model, known), nodes.iloc[:5]
    place = model.classes_.index("fraud")
    tries = {"amount": nodes.assign(amount=None), "country": nodes.assign(country=None)}
    proba = {name: model.predict_proba(table, edges, known=known) for name, table in tries.items()}
    proba["edges"] = model.predict_proba(nodes, edges.iloc[:0], known=known)
    told = 0
    for row, one in enumerate(scorer.score(nodes, edges, reasons=3)):
        here = place if one["class"] == "fraud" else 1 - place
        lower = {k: rows[row, here] for k, rows in proba.items()}
        lower = {k: v for k, v in lower.items() if v < one["probability"] - 1e-6}
        found = {reason["column"]: reason["without"] for reason in one["reasons"]}
        assert found == pytest.approx(lower, abs=1e-6)
        told += len(found)
    assert told > 5


def test_wrong_rows_are_refused_by_name(models, kind):
    scorer = eg.Scorer(models("gcn"), known_tables(kind))
    row = {"id": "n", "amount": 1.0, "country": "DE"}
    edge = {"source": "n", "target": "nobody"}
    edge |= {"weight": 1, "type": "pays", "day": "2024-01-01"} if kind == "rich" else {}
    with pytest.raises(ValueError, match="amount"):
        scorer.score([{"id": "n", "country": "DE"}])
    with pytest.raises(UnknownNodeError, match="nobody"):
        scorer.score([row], [edge])
    with pytest.raises(ValueError, match="repeats the id"):
        scorer.score([row, row])
    with pytest.raises(ValueError, match="at least one"):
        scorer.score([])
