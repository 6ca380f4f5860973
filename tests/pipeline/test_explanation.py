"""explain(): parts that sum to the margin; suspects, pictures and maps of nodes."""

import dataclasses
import json
import math
from functools import cache
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from evengraph.methods import GCN, METHODS, Auto, Boosting, Logistic
from evengraph.pipeline.explanation import (
    MAX_NODES,
    Contributions,
    Distances,
    Influence,
    Reason,
    ego_graph,
    explain,
    gradient_times_input,
    margin_slope,
    reasons_for,
    suspects,
    vote_shares,
    weighted_sum,
)
from evengraph.pipeline.model_info import load_model
from evengraph.tables import FeatureEncoder
from small_graphs import QUICK, edge_lists, edges, normal, small_task

TASK = small_task()
GRAPH = TASK.graph
CENTRED = Data(x=GRAPH.x - GRAPH.x.mean(0), edge_index=GRAPH.edge_index)
NAMES = [f"c{index}" for index in range(GRAPH.num_features)]


@cache
def fitted(name, **fields):
    settings = {"max_epochs": 25, "patience": 25} | QUICK.get(name, {}) | fields
    return METHODS[name](**settings).fit(TASK, seed=0)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("node", [0, 7, 140])
def test_the_parts_sum_to_the_margin(name, node):
    method = fitted(name)
    values = method.predict_proba(GRAPH)[node]
    found = explain(method, GRAPH, node)
    assert found.predicted == int(values.argmax())
    assert found.probability == pytest.approx(float(values.max()))
    assert found.probabilities == pytest.approx(values.tolist())
    if found.runner_up is not None:
        best = values.double().sort(descending=True).values
        margin = float(best[0].log() - best[1].log())
        assert found.margin == pytest.approx(margin, abs=1e-3, rel=1e-3)
    total = found.from_itself + found.from_labelled + found.from_unlabelled + found.bias
    assert total == pytest.approx(found.margin, abs=1e-6)


@pytest.mark.parametrize("name", ["gcn", "unignn", "unison", "logistic", "boosting"])
def test_reasons_and_nodes_have_the_same_sum(name):
    found = explain(fitted(name), GRAPH, 7, top=1000, feature_names=NAMES)
    total = sum(one.contribution for one in found.reasons)
    assert total + found.bias == pytest.approx(found.margin, abs=1e-4)
    own = [one for one in found.reasons if one.of == "own"]
    assert sum(one.contribution for one in own) == pytest.approx(found.from_itself, abs=1e-4)
    assert {one.name for one in found.reasons} <= set(NAMES)


@pytest.mark.parametrize("name", ["boosting", "logistic"])
def test_the_degree_is_a_reason_with_a_name(name):
    method = fitted(name, hops=2, degree=True)
    found = explain(method, GRAPH, 7, top=1000, feature_names=NAMES)
    values = method.predict_proba(GRAPH)[7].double().sort(descending=True).values.log()
    assert found.margin == pytest.approx(float(values[0] - values[1]), abs=1e-4)
    assert {one.name for one in found.reasons} <= {*NAMES, "number of neighbours"}


def test_without_a_split_trees_have_their_baseline_alone():
    found = explain(fitted("boosting", max_epochs=0), GRAPH, 7)
    assert found.reasons == ()
    assert found.margin == pytest.approx(found.bias)


def test_labels_that_are_spread_leave_no_bias():
    found = explain(fitted("labelpropagation"), GRAPH, 7, top=1000)
    assert found.bias == pytest.approx(0, abs=1e-4)
    assert found.from_unlabelled == pytest.approx(0, abs=1e-9)
    assert all((one.contribution > 0) == (one.label == found.predicted) for one in found.labelled)


@pytest.mark.parametrize("epochs", [0, 20])
@pytest.mark.parametrize("name", ["gcn", "graphens", "unignn", "unison"])
def test_without_biases_nothing_is_left_over(name, epochs):
    method = METHODS[name](max_epochs=epochs).fit(TASK, seed=0)
    for key, value in [*method.net_.named_parameters(), *method.net_.named_buffers()]:
        if "bias" in key or "centre" in key:
            value.data.zero_()
    for node in (0, 7, 80):
        found = explain(method, CENTRED, node)
        assert found.bias == pytest.approx(0, abs=1e-5 * abs(found.margin) + 1e-6)


def test_a_constant_in_the_features_belongs_to_the_bias():
    moved = Data(x=GRAPH.x + 0.05, edge_index=GRAPH.edge_index)
    method = fitted("logistic")
    one, other = (explain(method, graph, 7, top=99) for graph in (GRAPH, moved))
    expected = [(part.title, pytest.approx(part.contribution, abs=1e-5)) for part in one.reasons]
    assert [(part.title, part.contribution) for part in other.reasons] == expected
    assert other.bias != pytest.approx(one.bias, abs=0.002)


def test_labelled_nodes_are_those_of_training():
    graph = nx.Graph(GRAPH.edge_index.t().tolist())
    found = explain(fitted("unignn"), GRAPH, 7, top=1000)
    nodes = [one.node for one in found.labelled]
    assert set(nodes) <= set(TASK.train.nonzero().squeeze(1).tolist()) - {7}
    sizes = [abs(one.contribution) for one in found.labelled]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(one.contribution for one in found.labelled) == pytest.approx(found.from_labelled)
    for one in found.labelled:
        assert one.label == GRAPH.y[one.node]
        assert one.distance == nx.shortest_path_length(graph, 7, one.node)
        assert (one.label == found.about) == (one.contribution > 0)  # no other class supports it


def test_a_plain_network_hears_two_steps_far():
    found = explain(fitted("gcn"), GRAPH, 7, top=1000)
    assert found.labelled
    assert all(one.distance <= 2 for one in found.labelled)


@pytest.mark.parametrize("name", ["unignn", "oversampling", "lte4g"])
def test_a_loaded_model_explains_the_same(name, tmp_path):
    method = fitted(name)
    method.save(tmp_path / "model")
    one, other = (explain(m, GRAPH, 7).as_dict() for m in (method, load_model(tmp_path / "model")))
    assert one["labelled"] == other["labelled"]
    assert one["margin"] == other["margin"]
    json.dumps(one, allow_nan=False)


def test_a_new_node():
    x = torch.cat([GRAPH.x, GRAPH.x[:1]])
    edges = torch.cat([GRAPH.edge_index, torch.tensor([[150], [7]])], dim=1)
    graph = Data(x=x, edge_index=edges)
    found = explain(fitted("unignn"), graph, 150)
    assert found.label is None
    assert found.labelled


def test_the_label_of_a_training_node_is_told():
    method = fitted("gcn")
    labelled = int(TASK.train.nonzero()[0])
    assert explain(method, GRAPH, labelled).label == int(GRAPH.y[labelled])


def test_an_isolated_node_and_names():
    keep = (GRAPH.edge_index != 7).all(0)
    graph = Data(x=GRAPH.x, edge_index=GRAPH.edge_index[:, keep], y=GRAPH.y)
    names = ("ants", "bees", "crabs")
    task = dataclasses.replace(TASK, graph=graph, class_names=names)
    found = explain(GCN(max_epochs=5).fit(task, seed=0), graph, 7)
    assert found.labelled == ()
    assert found.class_names == names
    assert found.neighbourhood.node_id.tolist() == [7]
    assert found.from_itself + found.bias == pytest.approx(found.margin, abs=1e-6)


def test_nodes_are_named_by_their_ids():
    ids = tuple(f"n{index}" for index in range(GRAPH.num_nodes))
    method = GCN(max_epochs=5).fit(TASK, seed=0)
    found, plain = explain(method, GRAPH, 7, ids=ids), explain(method, GRAPH, 7)
    assert (found.id, plain.id) == ("n7", "7")
    assert found.as_dict()["id"] == "n7"
    for one, other in zip(found.labelled, plain.labelled, strict=True):
        assert (one.id, other.id) == (ids[one.node], str(one.node))


def test_the_picture_has_what_it_needs():
    found = explain(fitted("unignn"), GRAPH, 7)
    picture = found.neighbourhood
    assert picture.node_id[0] == 7
    assert {one.node for one in found.labelled} <= set(picture.node_id.tolist())
    assert torch.equal(picture.y, torch.where(TASK.train, GRAPH.y, -1)[picture.node_id])
    assert torch.equal(picture.predicted, fitted("unignn").predict(GRAPH)[picture.node_id])
    for one in found.labelled:
        place = picture.node_id.tolist().index(one.node)
        assert float(picture.contribution[place]) == one.contribution
        assert int(picture.distance[place]) == one.distance


def test_nothing_is_changed(random_state):
    method, before = fitted("unignn"), random_state()
    expected = method.predict_proba(GRAPH)
    explain(method, GRAPH, 7)
    assert random_state() == before
    assert torch.equal(method.predict_proba(GRAPH), expected)
    assert all(value.grad is None for value in method.net_.parameters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"node": 150}, "node must lie between 0 and 149, got 150"),
        ({"node": -1}, "node must lie between 0 and 149, got -1"),
        ({"node": "a"}, "node must lie between 0 and 149, got 'a'"),
        ({"top": -1}, "top must be at least 0"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        explain(fitted("gcn"), GRAPH, **{"node": 0} | arguments)


def test_another_graph_has_no_labelled_nodes():
    other = small_task(seed=5)
    alone = explain(fitted("gcn"), other.graph, 0)
    assert (alone.labelled, alone.from_labelled, sum(alone.class_counts)) == ((), 0, 0)
    assert alone.from_itself + alone.from_unlabelled + alone.bias == pytest.approx(alone.margin)
    with pytest.raises(RuntimeError, match="not fitted"):
        explain(GCN(), GRAPH, 0)


def as_networkx(edge_index, num_nodes):
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edge_index.t().tolist())
    return graph


@given(edge_lists(), st.data())
def test_distances_and_paths(drawn, data):
    edge_index, num_nodes = drawn
    node = data.draw(st.integers(0, num_nodes - 1))
    distances, graph = Distances(edge_index, num_nodes, node), as_networkx(*drawn)
    lengths = nx.single_source_shortest_path_length(graph, node)
    for other in range(num_nodes):
        assert distances.to(other) == lengths.get(other)
        if other in lengths:
            path = distances.path(other)
            assert (path[0], path[-1]) == (other, node)
            assert len(path) == lengths[other] + 1
            assert nx.is_path(graph, path)


@given(edge_lists(), st.data())
def test_the_picture(drawn, data):
    edge_index, num_nodes = drawn
    any_node = st.integers(0, num_nodes - 1)
    node, listed = data.draw(any_node), data.draw(st.lists(any_node, max_size=4))
    distances, weight = Distances(edge_index, num_nodes, node), normal(num_nodes)
    picture = ego_graph(distances, listed, weight, value=weight)
    nodes = picture.node_id.tolist()
    assert nodes[0] == node
    assert len(set(nodes)) == len(nodes) == picture.num_nodes
    assert set(listed) <= set(nodes)
    assert torch.equal(picture.value, weight[picture.node_id])
    graph = as_networkx(edge_index, num_nodes)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    found = {frozenset(pair) for pair in picture.node_id[picture.edge_index].t().tolist()}
    assert found == {frozenset(pair) for pair in graph.subgraph(nodes).edges}


def test_a_crowd_is_cut_to_the_weightiest():
    star = edges([(0, other) for other in range(1, 200)])
    weight = torch.arange(200.0)
    picture = ego_graph(Distances(star, 200, 0), [3], weight)
    assert sorted(picture.node_id.tolist()) == [0, 3, *range(200 - MAX_NODES + 2, 200)]


def test_a_node_far_away_is_there_without_the_way():
    line = edges([(node, node + 1) for node in range(9)])
    picture = ego_graph(Distances(line, 10, 0), [3, 9], torch.zeros(10))
    assert sorted(picture.node_id.tolist()) == [0, 1, 2, 3, 9]
    assert sorted(picture.distance.tolist()) == [0, 1, 2, 3, 9]


def reason(name, contribution, of="own"):
    words = {"value": "5", "typical": "3", "features": ()}
    return Reason(name=name, of=of, contribution=contribution, **words)


def explanation(reasons, labelled=()):
    ids = {"ids": tuple(f"n{index}" for index in range(10)), "about": 1}
    return SimpleNamespace(
        reasons=reasons, labelled=labelled, name=lambda c: ["ok", "fraud"][c], **ids
    )


def test_reasons_in_a_few_words():
    parts = [reason("amount", 2.0), reason("age", -3.0), reason("score", 1.0, "others")]
    near = [Influence(node=8, id="n8", label=1, distance=2, contribution=0.5)]
    found = reasons_for(explanation([*parts, reason("small", 0.01)], near))
    assert found[0] == "amount 5 (usually 3)"
    assert found[1:] == ["score of its neighbours 5 (usually 3)", "n8 (fraud, 2 steps away)"]
    assert reasons_for(explanation([reason("age", -1.0)])) == []
    unusual = SimpleNamespace(title="labels", value="none", typical="", contribution=1.0)
    assert reasons_for(explanation([unusual])) == ["labels none"]


@pytest.mark.parametrize("about", [0, 1, 2])
def test_any_class_can_be_explained(about):
    method = fitted("logistic")
    values = method.predict_proba(GRAPH)[7].double()
    found = explain(method, GRAPH, 7, about=about)
    others = [float(value) for c, value in enumerate(values) if c != about]
    assert found.margin == pytest.approx(math.log(float(values[about]) / max(others)), abs=1e-3)
    assert found.probability == pytest.approx(float(values[about]))
    assert found.predicted == int(values.argmax())


def test_taking_the_largest_reason_away_does_what_it_states_in_a_linear_model():
    graph = Data(x=GRAPH.x, edge_index=GRAPH.edge_index, y=(GRAPH.y > 0).long())
    task = dataclasses.replace(TASK, graph=graph, num_classes=2)
    found = explain(METHODS["logistic"](max_epochs=20, hops=0).fit(task, seed=0), graph, 7)
    assert found.reasons[0].of == "own"
    assert found.check.measured == pytest.approx(found.check.stated, abs=1e-3)
    assert found.check.measured != pytest.approx(found.probability, abs=1e-3)


def test_hiding_labels_near_a_node_shows_what_they_do():
    method = fitted("labelpropagation")
    before = method.predict_proba(GRAPH)
    found = explain(method, GRAPH, 7)
    assert [one.of for one in found.reasons] == ["labels"]
    near = Distances(GRAPH.edge_index, GRAPH.num_nodes, 7).steps
    kept = (near[TASK.train.nonzero().squeeze(1).numpy()] > 2) | (near[TASK.train] == 0)
    assert kept.any()
    assert found.check.measured < found.probability
    assert torch.equal(method.predict_proba(GRAPH), before)
    counts = torch.bincount(GRAPH.y[(torch.from_numpy(near) == 1) & TASK.train], minlength=3)
    assert found.neighbour_labels == tuple(counts.tolist())
    assert found.neighbours == int((near == 1).sum())


def test_values_are_those_of_the_table():
    rng = np.random.default_rng(0)
    heavy = rng.lognormal(3, 2, 150)
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 9, 150),
            "money": heavy,
            "spread": np.where(rng.random(150) < 0.5, heavy, -heavy) + 1e9,
            "country": rng.choice(["de", "fr"], 150),
            "open": pd.date_range("2020-01-01", periods=150).astype(str),
            "paid": rng.choice(["true", "false"], 150),
        }
    )
    encoder = FeatureEncoder.fit(frame, list(frame), edge_index=GRAPH.edge_index)
    graph = Data(x=encoder.transform(frame), edge_index=GRAPH.edge_index, y=GRAPH.y)
    task = dataclasses.replace(TASK, graph=graph)
    method = METHODS["logistic"](max_epochs=20, hops=1).fit(task, seed=0)
    names = {"feature_names": encoder.names, "encoder": encoder}
    found = explain(method, graph, 7, top=99, **names)
    own = {one.name: one for one in found.reasons if one.of == "own"}
    assert own["country"].value == frame.country[7]
    assert own["country"].typical == f"{(frame.country == frame.country[7]).mean():.0%} of all"
    assert own["open"].value == frame.open[7]
    assert own["paid"].value == frame.paid[7]
    for name in ("size", "money", "spread"):
        values = [
            float(own[name].value.replace(",", "")),
            float(own[name].typical.replace(",", "")),
        ]
        expected = [frame[name][7], frame[name].median()]
        assert values == pytest.approx(expected, rel=0.01), name
    near = Distances(graph.edge_index, 150, 7).steps == 1
    around = next(one for one in found.reasons if one.of == "others" and one.name == "size")
    assert float(around.value) == pytest.approx(frame["size"][near].median(), rel=0.01)


def test_the_highest_come_first_and_are_explained(monkeypatch):
    asked = []

    class Asked:
        def __init__(self, *_, **__):
            pass

        def explain(self, node, positive, check):
            asked.append((node, positive))
            return explanation([])

    monkeypatch.setattr("evengraph.pipeline.explanation.Explainer", Asked)
    tables = SimpleNamespace(
        graph=SimpleNamespace(num_nodes=4),
        ids=np.array(["a", "b", "c", "d"]),
        encoder=SimpleNamespace(names=("amount",)),
    )
    nodes = SimpleNamespace(tables=tables, rows=np.array([1, 2, 3]))
    found = suspects(None, nodes, np.array([0.2, 0.9, 0.9]), positive=1, count=2)
    assert [one.id for one in found] == ["c", "d"]
    assert asked == [(2, 1), (3, 1)]
    assert len(suspects(None, nodes, np.array([0.2, 0.9, 0.9]), positive=1, count=9)) == 3
    with pytest.raises(ValueError, match="top must be at least 1, got 0"):
        suspects(None, nodes, np.array([0.2, 0.9, 0.9]), positive=1, count=0)


@pytest.mark.parametrize("scale", [1e-9, 0.1, 3.0, 60.0])
def test_margins_times_shares_are_the_margin_of_the_mean(scale):
    draw = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(5, 3, dtype=torch.float64, generator=draw)
    weights = torch.rand(5, dtype=torch.float64, generator=draw)
    weights = weights / weights.sum()
    direction = torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64)
    rows, margins = logits.softmax(1), logits @ direction
    mean = weights @ rows
    expected = float(mean[1].log() - mean[2].log())
    shares = vote_shares(rows, margins, weights, direction)
    assert float(shares @ margins) == pytest.approx(expected, abs=1e-12, rel=1e-9)
    assert (shares > 0).all()


def test_the_slope_of_equal_values():
    one = torch.tensor(0.5, dtype=torch.float64)
    assert float(margin_slope(one, one)) == 2
    assert float(margin_slope(one, one + 1e-7)) == pytest.approx(2)


def test_origins_of_several_parts_are_joined():
    first = Contributions(torch.tensor(1.0), torch.ones(2), columns={"own": torch.ones(3)})
    second = Contributions(torch.tensor(2.0), torch.ones(2), columns={"others": torch.ones(3)})
    both = weighted_sum([first, second], [0.5, 0.25])
    assert float(both.value) == 1
    assert both.total.tolist() == [0.75, 0.75]
    assert both.columns["own"].tolist() == [0.5] * 3
    assert both.columns["others"].tolist() == [0.25] * 3


def test_gradient_times_input_by_hand():
    weight = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    x = torch.tensor([[-1.5, 2.0], [1.5, -2.0]])  # its mean is zero
    mix = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    direction = torch.tensor([1.0, -1.0])
    parts = gradient_times_input(lambda x: (mix @ x @ weight + 7)[0] @ direction, x, 0)
    assert parts.total.tolist() == [-3 - 6, 3 + 6]
    assert float(parts.value) == 0
    assert parts.columns["own"].tolist() == [-3, -6]
    assert parts.columns["others"].tolist() == [3, 6]
    moved = gradient_times_input(lambda x: (mix @ x @ weight)[0] @ direction, x + 9, 0)
    assert moved.total.tolist() == parts.total.tolist()


@pytest.mark.parametrize("node", [3, 120])
def test_an_average_is_explained_by_all_its_members(node):
    task = small_task()
    method = Auto(candidates="mlp", max_epochs=6).fit(task, seed=0)
    kinds = Boosting(context=True), GCN(), Logistic()
    method.members_ = [kind.set_params(max_epochs=6).fit(task, seed=0) for kind in kinds]
    method.weights_, method._predicted = [0.5, 0.3, 0.2], None
    found = explain(method, task.graph, node, top=99)
    rows = method.predict_proba(task.graph)[node].double().log()
    assert found.margin == pytest.approx(float(rows[found.predicted] - rows[found.runner_up]))
    assert {"own", "others"} <= {one.of for one in found.reasons}
