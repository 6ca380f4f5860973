"""Saved, loaded, and the same: every method, on the graph of training and on others."""

import json
from functools import cache

import pytest
import torch
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.methods import GCN, LTE4G, METHODS, UniGNN
from evengraph.methods.bases.saving import seal, write_model
from evengraph.pipeline.model_info import load_model, saved_info
from small_graphs import QUICK, small_task

TASK = small_task()
GRAPH = TASK.graph
VARIANTS = [
    *((name, {}) for name in METHODS),
    ("oversampling", {"sound": True}),
    ("embedsmote", {"layers": 2}),
    ("graphens", {"layers": 1}),
    ("graphens", {"backbone": "gat"}),
    ("unreal", {"backbone": "sage"}),
    ("doublebalancing", {"backbone": "gat"}),
    ("unignn", {"encoders": "structural"}),
    ("unignn", {"encoders": "semantic", "layers": 3}),
    ("unignn", {"share_embeddings": False, "recluster_every": 2}),
    ("unignn", {"layers": 1, "alpha": 1}),
]
over_variants = pytest.mark.parametrize(("name", "fields"), VARIANTS)


def grown(graph=GRAPH, seed=0):
    """The graph with five new nodes and an edge between known ones."""
    stream = torch.Generator().manual_seed(seed)
    size = graph.num_nodes
    near = torch.randint(size, (5,), generator=stream)
    x = torch.cat([graph.x, graph.x[near] * (torch.rand(5, 1, generator=stream) + 0.5)])
    new = torch.stack([torch.arange(size, size + 5), near])
    edge_index = torch.cat([graph.edge_index, new[:, :4], torch.tensor([[0], [9]])], dim=1)
    return Data(x=x, edge_index=edge_index)


def shuffled(graph=GRAPH):
    """The same graph, its edges in another order and each in one direction."""
    order = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(0))
    edges = graph.edge_index[:, order]
    return Data(x=graph.x.clone(), edge_index=edges[:, edges[0] < edges[1]])


GRAPHS = {"training": GRAPH, "grown": grown(), "other": toy(90, 200, 64, 3, seed=9)}


@cache
def fitted(name, **fields):
    settings = {"max_epochs": 6, "patience": 6} | QUICK.get(name, {}) | fields
    return METHODS[name](**settings).fit(TASK, seed=0)


def largest_gap(one, other):
    return float((one - other).abs().max())


@over_variants
def test_a_loaded_model_predicts_as_the_fitted_one(name, fields, tmp_path):
    method = fitted(name, **fields)
    method.save(tmp_path / "model", extra={"columns": ["a", "b"]})
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(method)
    assert loaded == method
    assert loaded.extra_ == {"columns": ["a", "b"]}
    assert loaded.history_ == method.history_
    for graph in GRAPHS.values():
        assert largest_gap(loaded.predict_proba(graph), method.predict_proba(graph)) <= 1e-6
    loaded.save(tmp_path / "again")  # without the graph, and with the extra of before
    again = load_model(tmp_path / "again")
    assert again.extra_ == loaded.extra_
    for graph in GRAPHS.values():
        assert torch.equal(again.predict_proba(graph), loaded.predict_proba(graph))


@over_variants
def test_the_graph_of_training_is_known_again(name, fields, tmp_path):
    """Whatever the order of its edges, and with features that lost their last digits."""
    method = fitted(name, **fields)
    method.save(tmp_path / "model")
    loaded, expected = load_model(tmp_path / "model"), method.predict_proba(GRAPH)
    wobbled = Data(x=GRAPH.x * (1 + 1e-7), edge_index=GRAPH.edge_index)
    for graph in (shuffled(), wobbled):
        assert largest_gap(loaded.predict_proba(graph), expected) <= 1e-5


@pytest.mark.parametrize("name", METHODS)
def test_graphs_of_no_and_of_one_node(name):
    for size in (0, 1):
        graph = Data(x=GRAPH.x[:size], edge_index=torch.zeros(2, 0, dtype=torch.long))
        assert fitted(name).predict_proba(graph).shape == (size, 3)


@pytest.mark.parametrize("name", METHODS)
def test_new_nodes_far_away_leave_the_others_alone(name):
    """Except through clusters and similar nodes, which they join, and copies of training nodes."""
    fields = {"sound": True} if name in ("oversampling", "smote") else {}
    if name == "unignn":
        fields = {"encoders": "structural"}
    if name == "unison":
        fields = {"views": "structural,ego"}
    method = fitted(name, **fields)
    larger = Data(x=torch.cat([GRAPH.x, GRAPH.x[:7]]), edge_index=GRAPH.edge_index)
    values = method.predict_proba(larger)
    assert largest_gap(values[:150], method.predict_proba(GRAPH)) <= 1e-5


# Uni-GNN's clusters.


def seen_clusters(method, graph):
    """Clusters and inputs of every layer while a graph is predicted."""
    inputs, find = method._inputs_and_clusters(method.model_input(graph))
    seen = []

    def watched(layer, embeddings):
        found = find(layer, embeddings)
        seen.append((embeddings, found.assignment))
        return found

    with torch.no_grad():
        method.net_(inputs, watched)
    return seen


@pytest.mark.parametrize("loaded", [False, True])
def test_new_nodes_join_the_nearest_mean_and_known_ones_stay(loaded, tmp_path):
    fit = fitted("unignn", recluster_every=0, max_epochs=30, patience=30)
    net, inputs = fit.net_, fit.inputs_
    rows = [GRAPH.x, net.activate(net.first_layer(inputs, net.stored), False).detach()]
    method = fit
    if loaded:
        fit.save(tmp_path / "model")
        method = load_model(tmp_path / "model")
    graph = grown()
    touched = torch.ones(155, dtype=torch.bool)
    touched[:150] = False
    touched[graph.edge_index[:, GRAPH.num_edges :].flatten()] = True
    for layer, (embeddings, found) in enumerate(seen_clusters(method, graph)):
        stored = net.get_buffer(f"clusters_{layer}")
        means = torch.stack([rows[layer][stored == k].mean(0) for k in range(net.num_clusters)])
        assert torch.equal(found[:150][~touched[:150]], stored[~touched[:150]])
        here = embeddings if layer else graph.x  # the network may hold features as sparse
        distance = torch.cdist(here[touched].double(), means.double())
        own = distance.gather(1, found[touched, None]).squeeze(1)
        torch.testing.assert_close(own, distance.min(1).values, rtol=1e-4, atol=1e-4)
    # the weights have moved on since they were clustered: some stay though others are nearer
    assert (torch.cdist(rows[1], means).argmin(1) != stored).any()


def test_nothing_is_trained_and_nothing_forgotten():
    method = fitted("unignn")
    before = {name: value.clone() for name, value in method.net_.state_dict().items()}
    expected = method.predict_proba(GRAPH)
    method.predict_proba(grown())
    assert torch.equal(method.predict_proba(GRAPH), expected)
    for name, value in method.net_.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_fitting_again_forgets_the_clusters_of_before():
    other = small_task(seed=2)
    method = UniGNN(max_epochs=3).fit(other, seed=1)
    method.predict_proba(grown())
    again = method.fit(TASK, seed=0).predict_proba(grown())
    assert torch.equal(again, UniGNN(max_epochs=3).fit(TASK, seed=0).predict_proba(grown()))


def test_embeddings_of_a_loaded_model(tmp_path):
    method = fitted("unignn")
    method.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for one, other in zip(method.embeddings(), loaded.embeddings(GRAPH), strict=True):
        torch.testing.assert_close(one, other)
    with pytest.raises(ValueError, match=r"call embeddings\(graph\)"):
        loaded.embeddings()


# What is kept, and what is refused.


def test_an_interrupted_lte4g(tmp_path):
    def stop(history):
        if history.epochs == 3:
            raise KeyboardInterrupt

    method = LTE4G(max_epochs=6, pretrain_epochs=0).fit(TASK, seed=0, on_epoch=stop)
    assert not method.students_
    method.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(GRAPH), method.predict_proba(GRAPH))


def test_class_names_and_labelled_nodes_are_kept(tmp_path):
    from dataclasses import replace

    names = ("Äpfel", "Birnen, reife", "Quitten")
    GCN(max_epochs=2).fit(replace(TASK, class_names=names), seed=0).save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.class_names_ == names
    assert torch.equal(loaded.labelled_.nodes, TASK.train.nonzero().squeeze(1))
    assert torch.equal(loaded.labelled_.labels, GRAPH.y[TASK.train])


def test_neither_features_nor_edges_are_kept(tmp_path):
    for name in METHODS:
        fitted(name).save(tmp_path / name)
        tensors = load_model(tmp_path / name)._state()
        assert all(value.shape != GRAPH.x.shape for value in tensors.values()), name
        assert all(value.shape != GRAPH.edge_index.shape for value in tensors.values()), name


def test_the_callers_random_state_is_left_alone(tmp_path, random_state):
    fitted("unignn").save(tmp_path / "model")
    before = random_state()
    load_model(tmp_path / "model").predict_proba(GRAPH)
    assert random_state() == before


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(RuntimeError, match="GCN is not fitted yet; call fit first"):
        GCN().save(tmp_path / "model")
    method = GCN(max_epochs=1).fit(TASK, seed=0).set_params(hidden=8, dropout=0.1)
    with pytest.raises(ValueError, match="dropout, hidden changed after fitting: fit again"):
        method.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_devices_that_are_not_here(tmp_path):
    fitted("gcn").save(tmp_path / "model")
    assert load_model(tmp_path / "model", device=torch.device("cpu")).device_.type == "cpu"
    with pytest.raises(ValueError, match="device must be auto, cpu, cuda or cuda:N, got 'toaster'"):
        load_model(tmp_path / "model", device="toaster")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="There is no device cuda"):
            load_model(tmp_path / "model", device="cuda")


@pytest.mark.cuda
def test_a_model_trained_on_a_gpu_loads_without_one(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    for name in METHODS:
        method = METHODS[name](max_epochs=6, **QUICK.get(name, {})).fit(TASK.to("cuda"), seed=0)
        method.save(tmp_path / name)
        for device in ("cpu", "cuda"):
            loaded = load_model(tmp_path / name, device=device)
            for graph in GRAPHS.values():
                gap = largest_gap(loaded.predict_proba(graph), method.predict_proba(graph))
                assert gap <= 1e-3, (name, device)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "gnc"}, "holds the method 'gnc' of evengraph 0.0.7.*; it has gcn, "),
        (
            {"fields": {"hiden": 3}},
            "evengraph 0.0.7 with hiden, which GCN does not have in this version",
        ),
        ({"fields": {"hidden": -3}}, "is damaged: hidden must be at least 1, got -3"),
        ({"fields": {"hidden": 3}}, "its tensors do not fit GCN of this version"),
        ({"method": "lte4g", "fields": {}}, "is damaged: 'head' is missing"),
        ({"fields": None}, "is damaged: 'fields' is missing or has the wrong type"),
        ({"num_classes": "3"}, "is damaged: 'num_classes' is missing or has the wrong type"),
        ({"history": [{"colour": 1}]}, "is damaged: .*colour"),
    ],
)
def test_models_that_do_not_fit(tmp_path, changes, message):
    fitted("gcn").save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    about = json.loads(path.read_text()) | {"evengraph": "0.0.7"} | changes
    del about["seal"]
    path.write_text(json.dumps(about | {"seal": seal(about)}))
    with pytest.raises(ValueError, match=message) as caught:
        load_model(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def resealed(folder, **changes):
    """Change the description of a model as somebody would who wants it to be opened."""
    main = folder / "model.json"
    about = json.loads(main.read_text())
    about.pop("seal")
    about |= changes
    main.write_text(json.dumps({**about, "seal": seal(about)}))


@pytest.mark.parametrize("names", [["a"], ["a"] * 9])
def test_as_many_names_as_classes(tmp_path, names):
    fitted("gcn").save(tmp_path / "model")
    resealed(tmp_path / "model", class_names=names)
    with pytest.raises(ValueError, match=r"model is damaged: class_names must be \d names"):
        saved_info(load_model(tmp_path / "model"), tmp_path / "model")


@pytest.mark.parametrize(
    "changes",
    [
        {"num_features": 10**9},
        {"num_features": -1},
        {"num_features": 10**400},
        {"num_classes": 10**9},
        {"num_classes": 0},
        {"fields": {"hidden": 10**9}},
        {"method": ["gcn"]},
        {"num_relations": "many"},
        {"history": [{"odd": 1}]},
    ],
    ids=str,
)
def test_sizes_that_a_folder_states_are_not_believed(tmp_path, changes):
    fitted("gcn").save(tmp_path / "model")
    resealed(tmp_path / "model", **changes)
    with pytest.raises(ValueError, match=r"model .*(is damaged|do not fit|not have)") as caught:
        load_model(tmp_path / "model")
    assert "\n" not in str(caught.value)


def test_layers_of_a_folder_are_not_believed(tmp_path):
    fitted("embedsmote", layers=2).save(tmp_path / "model")
    fields = {**fitted("embedsmote", layers=2).get_params(), "layers": 10**9}
    resealed(tmp_path / "model", fields=fields)
    with pytest.raises(ValueError, match="do not fit Embed-SMOTE"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("name", ["logistic", "boosting", "labelpropagation", "gcn"])
def test_tensors_of_other_shapes_are_refused(tmp_path, name):
    method = fitted(name)
    about, tensors = method.packed()
    for key in tensors:
        odd = tensors | {key: torch.ones(2, 2, 2, dtype=torch.float16)}
        write_model(tmp_path / "model", about, odd)
        with pytest.raises(ValueError, match=r"model .*(is damaged|do not fit)"):
            load_model(tmp_path / "model")
