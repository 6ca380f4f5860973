"""What a saved model holds, and reading it again: every method, damaged files, drift."""

import dataclasses
import json
import math
from functools import cache
from types import SimpleNamespace

import pandas
import pytest
import torch
from torch_geometric.data import Data

import evengraph as eg
from evengraph.datasets import toy
from evengraph.fast.unignn import inputs_and_clusters
from evengraph.methods import GCN, LTE4G, METHODS
from evengraph.methods.bases.method import model_input, pack_method
from evengraph.methods.bases.saving import seal, write_model
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.decisions import BEST_F1, Costs, Decision, Rule
from evengraph.pipeline.model_info import (
    ModelInfo,
    NewNodes,
    Refit,
    TrainedOn,
    TrainingStatistics,
    all_labels,
    as_arguments,
    build_new_nodes,
    load_model,
    open_new_nodes,
    saved_info,
    training_paths,
)
from evengraph.tables import TableColumns, UnknownNodeError, from_frames
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
    net, inputs, find = inputs_and_clusters(method, model_input(method, graph))
    seen = []

    def watched(layer, embeddings):
        found = find(layer, embeddings)
        seen.append((embeddings, found.assignment))
        return found

    with torch.no_grad():
        net(inputs, watched)
    return seen


@pytest.mark.parametrize("loaded", [False, True])
def test_new_nodes_join_the_nearest_mean_and_known_ones_stay(loaded, tmp_path):
    fit = fitted("unignn", recluster_every=0, max_epochs=30, patience=30)
    net, inputs, _ = inputs_and_clusters(fit, model_input(fit, GRAPH))
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
        stored = fit.net_.get_buffer(f"clusters_{layer}")
        means = torch.stack([rows[layer][stored == k].mean(0) for k in range(net.num_clusters)])
        assert torch.equal(found[:150][~touched[:150]], stored[~touched[:150]])
        here = embeddings if layer else graph.x  # the network may hold features as sparse
        distance = torch.cdist(here[touched].double(), means.double())
        own = distance.gather(1, found[touched, None]).squeeze(1)
        torch.testing.assert_close(own, distance.min(1).values, rtol=1e-4, atol=1e-4)
    # the weights have moved on since they were clustered: some stay though others are nearer
    assert (torch.cdist(rows[1], means).argmin(1) != stored).any()


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
        ({"fields": None}, "is damaged: fields must be an object, got None"),
        ({"num_classes": "3"}, "is damaged: num_classes must be a valid integer, got '3'"),
        ({"history": [{"colour": 1}]}, r"is damaged: history\[0\].colour is unknown"),
        # sizes that a folder states are not believed
        ({"num_features": 10**9}, "do not fit"),
        ({"num_features": -1}, "is damaged"),
        ({"num_features": 10**400}, "is damaged"),
        ({"num_classes": 10**9}, "do not fit"),
        ({"num_classes": 0}, "is damaged"),
        ({"fields": {"hidden": 10**9}}, "do not fit"),
        ({"method": ["gcn"]}, "method must be a valid string"),
        ({"num_relations": "many"}, "is damaged"),
        ({"class_names": ["a"]}, r"is damaged: class_names must be \d names"),
        ({"class_names": ["a"] * 9}, r"is damaged: class_names must be \d names"),
    ],
    ids=str,
)
def test_models_that_do_not_fit(tmp_path, changes, message):
    fitted("gcn").save(tmp_path / "model")
    resealed(tmp_path / "model", **{"evengraph": "0.0.7"} | changes)
    with pytest.raises(ValueError, match=message) as caught:
        saved_info(load_model(tmp_path / "model"), tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_layers_of_a_folder_are_not_believed(tmp_path):
    fitted("embedsmote", layers=2).save(tmp_path / "model")
    resealed(
        tmp_path / "model", fields={**fitted("embedsmote", layers=2).get_params(), "layers": 10**9}
    )
    with pytest.raises(ValueError, match="do not fit Embed-SMOTE"):
        load_model(tmp_path / "model")


def resealed(folder, **changes):
    """Change the description of a model as somebody would who wants it to be opened."""
    main = folder / "model.json"
    about = json.loads(main.read_text())
    about.pop("seal")
    about |= changes
    main.write_text(json.dumps({**about, "seal": seal(about)}))


@pytest.mark.parametrize("name", ["logistic", "boosting", "labelpropagation", "gcn"])
def test_tensors_of_other_shapes_are_refused(tmp_path, name):
    method = fitted(name)
    about, tensors = pack_method(method)
    for key in tensors:
        odd = tensors | {key: torch.ones(2, 2, 2, dtype=torch.float16)}
        write_model(tmp_path / "model", about, odd)
        with pytest.raises(ValueError, match=r"model .*(is damaged|do not fit)"):
            load_model(tmp_path / "model")


STORED = {
    "calibrator": {"temperature": 2.0, "shift": [0.5, -0.5], "counts": [30, 10]}
    | {"shares": [], "nodes": 40},
    "test": {"balanced_accuracy": 50.0, "auroc": None},
    "trained_on": {"data": "/shop", "columns": {"label": "kind", "drop": "a,b"}},
    "columns": {"id": "account", "label": "kind", "source": "from", "target": "to"}
    | {"features": ["amount"], **dict.fromkeys(("split", "time", "weight"))},
    "encoder": {"version": 2, "plain": [["amount", 1.5]]}
    | {"columns": [], "structural": [], "notes": []},
}


def test_stored_keys_are_read_and_written_as_before():
    info = ModelInfo.from_dict(STORED)
    assert info.calibrator == Calibrator(
        temperature=2.0, shift=(0.5, -0.5), counts=(30, 10), nodes=40
    )
    assert info.trained_on == TrainedOn("/shop", {"label": "kind", "drop": "a,b"})
    assert info.columns.source == "from"
    assert info.encoder.input_columns == ("amount",)
    written = info.as_dict()
    for name, part in STORED.items():
        if name in ("columns", "encoder"):  # later versions add keys
            assert written[name].items() >= part.items()
        else:
            assert written[name] == part
    assert list(info.as_dict()) == list(STORED)


OLD = {
    "calibrator": {"temperature": 4.0, "shift": [], "nodes": 40, "note": ""},
    "flag": {"class": 1, "from": 0.25},
    "prior": {
        "calibrator": {"temperature": 2.0, "shift": [1.0, 0.0], "nodes": 40, "note": ""},
        "shares": [0.8, 0.2],
    },
    "cost_curve": {
        "base_rate": 0.2,
        "points": [[0.9, 0.0, 0.0], [0.4, 0.5, 0.1], [0.1, 1.0, 0.6]],
        "costs": [5.0, 1.0],
    },
    "calibration": {"calibration_error": 17.6, "calibrated_error": 7.7, "brier": 137.3},
}


def test_models_of_version_0_2_predict_as_before():
    info = ModelInfo.from_dict(OLD)
    raw = torch.tensor([[0.7, 0.3], [0.8, 0.2], [0.2, 0.8]])
    assert not info.calibrates
    assert torch.equal(info.calibrated(raw), raw)
    assert info.flags(raw).tolist() == [True, False, True]
    assert info.classes(raw, info.flags(raw)).tolist() == [0, 0, 1]  # the argmax
    assert info.decision.rule.costs == (5, 1)
    cheap, dear = (info.by(Rule.of(Costs(*pair))).decision.threshold for pair in ((1, 50), (50, 1)))
    assert (cheap, dear) == (0.9, 0.1)
    assert info.decision.outcome is None  # of how many nodes is not known
    assert info.calibrator == Calibrator(temperature=2, shift=(1, 0), shares=(0.8, 0.2), nodes=40)
    again = ModelInfo.from_dict(json.loads(json.dumps(info.as_dict())))
    assert again == info
    without = ModelInfo.from_dict(OLD | {"cost_curve": OLD["cost_curve"] | {"costs": None}})
    assert (without.decision.rule, without.decision.curve) == (BEST_F1, info.decision.curve)
    plain = ModelInfo.from_dict({name: OLD[name] for name in ("calibrator", "flag")})
    assert plain.decision == Decision(1, 0.25)
    with pytest.raises(ValueError, match="does not hold what thresholds do"):
        plain.by(Rule.of(recall=0.5))


def test_a_model_without_a_record_has_an_empty_one():
    assert ModelInfo.from_dict({}) == ModelInfo()
    assert ModelInfo().as_dict() == {"test": {}}
    assert ModelInfo.from_dict({"columns": ["a", "b"]}) == ModelInfo()  # of somebody's own


@pytest.mark.parametrize(
    "bad", [[], [[], [1, 2]], [[1]], [[1, 2], [3]], [1, 2], "text", [[1.5, 2], [3, 4]]]
)
def test_a_confusion_matrix_has_a_row_for_each_class(bad):
    good = [[3, 1], [0, 4]]
    extra = {"test": {}, "confusion": good, "counts": {"nodes": 9}, "calibration": {}}
    info = ModelInfo.from_dict(extra)
    info.check(3, 2)
    assert info.as_dict() == extra
    with pytest.raises(ValueError, match="confusion"):
        ModelInfo.from_dict(extra | {"confusion": bad}).check(3, 2)


def decided(**curve):
    """What a model holds about its threshold, with some of it changed."""
    rule = {"goal": "f1", "value": 0.0, "costs": None}
    points = [[1.5, 0, 0, 0], [0.5, 2, 1, 1.0]]
    whole = {"nodes": 9, "positives": 3, "points": points}
    return {"decision": {"positive": 1, "threshold": 0.5, "rule": rule, "curve": whole | curve}}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"flag": {"class": 1}}, "extra is not that of a model"),
        ({"trained_on": "/shop"}, "extra.trained_on must .* got '/shop'"),
        ({"columns": {"hue": "x"}}, "extra.columns.hue is unknown"),
        ({"flag": {"class": 1, "from": [0.5]}}, r"decision.threshold must .* got \[0.5\]"),
        ({"flag": {"class": 5, "from": 0.5}}, "decision.positive must be below 2"),
        (decided(points=[[0.5, 1, 1]]), r"decision.curve.points\[0\]\[3\] is missing"),
        *(
            (decided(points=bad), "decision.curve must have points")
            for bad in ([], [[0.5, 1, 2, 1]], [[0.5, -1, 0, 1]], [[0.5, 1, 0, -1]], [[0, 10, 0, 0]])
        ),
        (decided(nodes=math.nan), "decision.curve.nodes must be a finite number, got nan"),
        (decided(points=None), "decision.curve.points must .* got None"),
        ({"sets": [[0.5], ["a"]]}, r"extra.sets\[1\]\[0\] must .* got 'a'"),
        ({"sets": [[0.5]]}, "sets must have 2 entries, got 1"),
        ({"made": {"interval": [1.0]}}, "made.interval must have two ends"),
        (
            {"sets": [[0.5]] * 2, "calibrator": {**STORED["calibrator"], "counts": []}},
            "sets need the counts of a calibrator",
        ),
        ({"calibrator": {**STORED["calibrator"], "counts": [3]}}, "calibrator.counts must have 2"),
        ({"columns": STORED["columns"] | {"relations": [{"a": 1}]}}, r"relations\[0\] must"),
        ({"flag": {"class": 1.5, "from": 0.5}}, "decision.positive must .* got 1.5"),
        ({"columns": STORED["columns"] | {"relations": ["a", "b"]}}, "relations need the column"),
        (
            {"columns": STORED["columns"] | {"relations": [1, 2]}},
            r"columns.relations\[0\] must be a valid string, got 1",
        ),
        ({"columns": STORED["columns"] | {"relations": ["a", "a"]}}, "must be distinct names"),
        (
            {"columns": STORED["columns"] | {"features": "amount"}},
            "columns.features must be a valid array",
        ),
        ({"made": {"seeds": [5, True]}}, r"extra.made.seeds\[1\] must .* got True"),
        ({"made": {"hue": 1}}, "extra.made.hue is unknown"),
        ({"made": {"interval": [101, 5.0]}}, r"made.interval\[0\] must be less .* got 101"),
        ({"made": {"ranking": {"value": 5.0}}}, "extra.made.ranking.ends is missing"),
        ({"calibration": {"lines": "ab"}}, "calibration.lines must be a valid array"),
        (
            {"calibration": {"reliability": {"before": [], "after": [[0.5, 1.5, 9]]}}},
            r"reliability.after\[0\]\[1\] must .* got 1.5",
        ),
        ({"test": {"accuracy": -1}}, "extra.test.accuracy must be greater .* got -1"),
        ({"counts": {"nodes": -1}}, "extra.counts.nodes must be greater .* got -1"),
        ({"confusion": [[3, -1], [0, 4]]}, r"confusion\[0\]\[1\] must .* got -1"),
        ({"sets": [[0.5], [1.5]]}, r"extra.sets\[1\]\[0\] must .* got 1.5"),
        ({"calibrator": {**STORED["calibrator"], "shares": [2, -1]}}, r"shares\[0\] must .* got 2"),
        ({"refit": {"train": -5, "validation": 1, "train_before": 1}}, "refit.train must .* -5"),
    ],
)
def test_parts_of_another_kind_are_refused(changed, told):
    with pytest.raises(ValueError, match=told) as raised:
        ModelInfo.from_dict(STORED | changed).check(1, 2)
    assert "\n" not in str(raised.value)


def graph_of(nodes, *, shift=0.0, edges=3, seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, 2, generator=draw) + torch.tensor([shift, 0.0])
    ends = torch.randint(nodes, (2, edges * nodes), generator=draw)
    y = torch.where(torch.arange(nodes) % 2 == 0, 0, -1)
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=y)


def predictions(first, nodes):
    rows = torch.tensor([[0.9, 0.1]] * int(first * nodes))
    return torch.cat([rows, torch.tensor([[0.1, 0.9]] * (nodes - len(rows)))])


TRAIN = graph_of(1000)
STATISTICS = TrainingStatistics.of(
    TRAIN, torch.zeros(1000, dtype=torch.bool), predictions(0.45, 1000)
)


def lines(graph, first):
    rows = predictions(first, graph.num_nodes)
    return STATISTICS.compare(
        graph, slice(None), rows, features=["views", "age"], classes=["False", "True"]
    )


def test_nothing_has_changed():
    assert lines(graph_of(500, seed=1), 0.45) == []
    assert lines(graph_of(5, seed=1, shift=0.5), 0.6) == []  # too few to tell


def test_other_classes_are_predicted():
    (line,) = lines(graph_of(500, seed=1), 0.79)
    assert line.startswith("79% are predicted False; in the training graph 45% were")
    assert "100% of the labels" in line


def test_features_and_degrees_have_moved():
    (line,) = lines(graph_of(500, seed=1, shift=-1.5, edges=20), 0.45)
    assert "views is 1.5 standard deviations lower" in line
    assert "age" not in line
    assert "neighbours, " in line


def test_a_feature_that_was_constant_moves_by_no_deviation():
    constant = dataclasses.replace(STATISTICS, means=(1.0, 2.0), deviations=(0.0, 2.0))
    assert constant.steps(torch.tensor([[1.0, 4.0], [5.0, 4.0]])).tolist() == [0.0, 1.0]


def test_a_change_that_does_not_show_is_not_told():
    regular = dataclasses.replace(STATISTICS, log_degree=(math.log1p(4.0), 1e-6))
    rows = torch.arange(400)
    ring = torch.cat([torch.stack([rows, (rows + step) % 400]) for step in (1, 2)], dim=1)
    graph = graph_of(400, seed=1)
    graph.edge_index = torch.cat([ring, ring.flip(0)], dim=1)[:, 1:]  # one edge end is missing
    classes = {"features": ["views", "age"], "classes": ["False", "True"]}
    assert regular.compare(graph, slice(None), predictions(0.45, 400), **classes) == []


def test_labels_outside_validation_are_for_training():
    task = small_task()
    task.graph.y[3] = -1
    full = all_labels(task)
    assert full.val.equal(task.val)
    assert not full.test.any()
    assert full.train.equal((task.graph.y >= 0) & ~task.val)
    train, val, before = int(full.train.sum()), int(task.val.sum()), int(task.train.sum())
    assert Refit.of(task, task.val) == (train, val, before)
    assert Refit.of(task, task.train | task.val) == (train + val, 0, before + val)  # of folds


NODES = pandas.DataFrame(
    {"id": [f"n{i}" for i in range(12)], "kind": list("aabb") * 3, "size": [1.0, 2.0, 5.0, 6.0] * 3}
)
EDGES = pandas.DataFrame({"source": ["n0", "n1", "n2"], "target": ["n1", "n4", "n3"]})


@pytest.fixture(scope="module")
def info():
    tables = eg.open_graph(NODES, edges=EDGES, label="kind")
    return ModelInfo(encoder=tables.encoder, columns=tables.columns)


def test_new_nodes_are_encoded_as_in_training(info):
    new = open_new_nodes(info, ("a", "b"), NODES, EDGES, columns={})
    assert new.tables.graph.x.equal(eg.open_graph(NODES, edges=EDGES, label="kind").graph.x)
    some = NODES.assign(kind=["a"] * 10 + [""] * 2)
    left = open_new_nodes(info, ("a", "b"), some, EDGES, only_unlabelled=True, columns={})
    assert left.ids.tolist() == ["n10", "n11"]


def test_a_column_may_have_another_name(info):
    renamed = EDGES.rename(columns={"source": "from"})
    new = open_new_nodes(info, ("a", "b"), NODES, renamed, columns={"source": "from"})
    assert new.tables.graph.num_edges == 6


def test_training_tables_are_found_or_asked_for(info, tmp_path):
    with pytest.raises(ValueError, match="known must be given"):
        training_paths(info)
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    info = ModelInfo(trained_on=TrainedOn(str(nodes), {"edges": str(edges)}))
    with pytest.raises(ValueError, match=r"nodes.csv no longer exists"):
        training_paths(info)
    nodes.touch()
    edges.touch()
    found = {"data": str(nodes), "edges": str(edges), "tables": None}
    assert training_paths(info) == found
    comma = tmp_path / "a,b.csv"
    comma.touch()
    info = ModelInfo(trained_on=TrainedOn(str(nodes), {"edges": str(comma)}))
    assert training_paths(info)["edges"] == str(comma)
    with pytest.raises(ValueError, match="known must be given"):
        training_paths(ModelInfo(trained_on=TrainedOn(str(nodes), {"edges": ""})))
    assert as_arguments("folder") == {"data": "folder", "edges": None, "tables": None}


@pytest.mark.parametrize("options", [{"directed": True}, {"type": "way"}, {"weight": "strength"}])
def test_edges_of_graphml_are_read_as_in_training(options, tmp_path):
    import networkx

    network = networkx.DiGraph()
    for i in range(12):
        network.add_node(f"n{i}", size=float(i % 5), kind="ab"[i % 2])
        network.add_edge(f"n{i}", f"n{(i + 1) % 12}", way="pq"[i % 2], strength=1.0 + i % 3)
    networkx.write_graphml(network, tmp_path / "g.graphml")
    own = eg.open_graph(tmp_path / "g.graphml", label="kind", **options)
    info = ModelInfo(encoder=own.encoder, columns=own.columns)
    new = open_new_nodes(info, ("a", "b"), tmp_path / "g.graphml", columns={}).tables.graph
    assert new.x.equal(own.graph.x)
    for name in ("edge_weight", "relation_index"):
        assert (name in new) == (name in own.graph)
        assert name not in new or new[name].equal(own.graph[name])


KNOWN = (
    pandas.DataFrame({"id": ["a", "b", "c", "d"], "age": [1.0, 2.0, 3.0, 4.0]}),
    pandas.DataFrame({"source": ["a", "b"], "target": ["b", "c"]}),
)
NEW = (
    pandas.DataFrame({"id": ["x", "y", "z"], "age": [2.0, 5.0, 6.0]}),
    pandas.DataFrame({"source": ["x", "y"], "target": ["a", "x"]}),
)
COLUMNS = TableColumns(id="id", source="source", target="target")


@pytest.fixture
def encoder():
    return from_frames(*KNOWN, id="id").encoder


def test_new_nodes_stand_below_known_ones(encoder):
    new = build_new_nodes(NEW, KNOWN, COLUMNS, encoder)
    assert new.ids.tolist() == ["x", "y", "z"]
    assert new.tables.ids.tolist() == ["a", "b", "c", "d", "x", "y", "z"]
    known = from_frames(*KNOWN, id="id").graph
    assert torch.equal(new.tables.graph.x[:4], known.x)
    assert new.num_isolated == 1  # z; d is known and does not count
    assert not any("edge" in note and "no " in note for note in new.notes)


def test_new_nodes_may_stand_alone(encoder):
    edges = NEW[1].iloc[1:]
    new = build_new_nodes((NEW[0], edges), None, COLUMNS, encoder)
    beside = build_new_nodes(NEW, KNOWN, COLUMNS, encoder)
    assert torch.equal(new.tables.graph.x, beside.tables.graph.x[4:])
    assert new.num_isolated == 1


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"age": [1.0]}, {}, "nodes has no column 'id'"),
        ({"id": ["x"]}, {}, "nodes has no column 'age'"),
        ({"id": [], "age": []}, {}, "nodes has no rows"),
        ({"id": ["x"], "age": ["old"]}, {}, "row 1 holds 'old'"),
        ({}, {"source": ["x", "q"], "target": ["a", "a"]}, "row 2 names 'q'"),
        ({}, {"source": ["x"]}, "edges has no column 'target'"),
    ],
)
def test_errors_name_rows_of_the_new_tables(nodes, edges, message, encoder):
    tables = tuple(
        pandas.DataFrame(changed) if changed else table
        for changed, table in zip((nodes, edges), NEW, strict=True)
    )
    with pytest.raises(ValueError, match=message) as raised:
        build_new_nodes(tables, KNOWN, COLUMNS, encoder)
    assert isinstance(raised.value, UnknownNodeError) == ("names" in message)


@pytest.mark.parametrize(
    ("column", "expected"), [("new_id", "new_id"), (None, "id"), ("class", "id"), ("p_fraud", "id")]
)
def test_predictions_call_ids_as_the_table_does_unless_the_name_is_taken(column, expected):
    tables = SimpleNamespace(columns=TableColumns(id=column))
    assert NewNodes(tables=tables, rows=slice(None)).id_name == expected
