"""ONNX: what onnxruntime computes from the exported file is what the method predicts."""

import json

import numpy as np
import pandas
import pytest
import torch
from torch_geometric.data import Data

import evengraph as eg
from evengraph.pipeline.onnx_export import can_export, export_onnx, onnx_inputs
from evengraph.testing.contract import with_graph
from small_graphs import small_task

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

HOPS = {"hops": 2, "degree": True}
QUICK = {
    "unison": [
        {"hidden": 7, "members": 2, "max_epochs": 12},
        {"views": "ego", "members": 1, "hidden": 5, "max_epochs": 6},
    ],
    "mlp": [{"hidden": 9, "max_epochs": 12}],
    "boosting": [
        {"max_epochs": 25},
        {"max_epochs": 25, **HOPS},
        {"max_epochs": 25, "columns": 5, **HOPS},
        {"max_epochs": 0, "hops": 0},
    ],
    "logistic": [{"max_epochs": 12}, {"max_epochs": 12, **HOPS}, {"max_epochs": 6, "hops": 1}],
}
CASES = [(name, params) for name, several in QUICK.items() for params in several]


def run(path, inputs):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


def plain(num_classes=3, seed=0):
    """A task with features of different sizes: spread, constant, rare and large."""
    task = small_task(num_classes, num_nodes=157, num_features=37, seed=seed)
    stream = torch.Generator().manual_seed(seed)
    x = task.graph.x + torch.randn(task.graph.x.shape, generator=stream) * torch.logspace(-3, 3, 37)
    x[:, 3], x[:, 4] = 2.0, 0.0
    x[5, 4] = 1e4
    x[6, 5] = 5.0  # beyond what scaling lets through
    x[:, 7:20] = task.graph.y[:, None] + torch.randn(157, 13, generator=stream) / 2
    return with_graph(task, x=x)


def weighted(task):
    weight = torch.arange(task.graph.num_edges) % 5 + 0.5
    return with_graph(task, edge_weight=weight)


def related(task):
    source, target = task.graph.edge_index
    kind = (source + target) % 3
    return with_graph(task, relation_index=torch.stack([kind, source, target]), num_relations=3)


def check(method, graph, path):
    export_onnx(method, path)
    expected = method.predict_proba(graph).numpy()
    got = run(path, onnx_inputs(method, graph))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=2e-6, rtol=1e-5)
    assert expected.std(axis=0).max() > 1e-3 or method.max_epochs == 0
    return got


def test_every_method_that_can_be_exported_is_tested():
    assert set(QUICK) == {name for name, kind in eg.METHODS.items() if can_export(kind)}


@pytest.mark.parametrize("num_classes", [2, 3, 5])
@pytest.mark.parametrize(("name", "params"), CASES)
def test_the_file_gives_what_the_method_predicts(name, params, num_classes, tmp_path):
    task = plain(num_classes)
    method = eg.METHODS[name](**params).fit(task, seed=0)
    check(method, task.graph, str(tmp_path / "model.onnx"))


@pytest.mark.parametrize("change", [weighted, related])
@pytest.mark.parametrize(("name", "params"), CASES)
def test_weights_and_relations_change_the_inputs(name, params, change, tmp_path):
    task = change(plain())
    method = eg.METHODS[name](**params).fit(task, seed=0)
    check(method, task.graph, str(tmp_path / "model.onnx"))


def test_relations_are_inputs_of_their_own(tmp_path):
    task = related(plain())
    method = eg.Boosting(max_epochs=3, **HOPS).fit(task, seed=0)
    inputs = export_onnx(method, tmp_path / "model.onnx")
    names = ["features", "log_degree", "mean_1", "mean_2", "relation_1", "relation_2", "relation_3"]
    assert list(inputs) == names
    assert [item.width for item in inputs.values()] == [37, 1, *[38] * 5]
    rows = onnx_inputs(method, task.graph)
    source, target = task.graph.edge_index
    others = target[(source == 8) & ((source + target) % 3 == 1)]
    mean = task.graph.x[others].mean(0).numpy()
    np.testing.assert_allclose(rows["relation_2"][8, :37], mean, rtol=1e-4)
    np.testing.assert_array_equal(rows["features"], task.graph.x.numpy())
    np.testing.assert_allclose(rows["log_degree"][8], np.log1p(int((source == 8).sum())), rtol=1e-6)


def test_values_that_boosting_rounds_are_compared_with_the_same_result(tmp_path):
    """Rows at the very thresholds, and one bit beside them."""
    task = plain(2)
    method = eg.Boosting(max_epochs=20, hops=0).fit(task, seed=0)
    path = str(tmp_path / "model.onnx")
    export_onnx(method, path)
    trees = method.trees_
    inner = (trees.left != torch.arange(trees.left.numel())).nonzero().flatten()
    x = task.graph.x[:1].repeat(3 * inner.numel(), 1)
    for index, node in enumerate(inner.tolist()):
        value = np.float32(trees.threshold[node] * (1 + 2.0**-17 * (index % 3 - 1)))
        for step, to in enumerate((-np.inf, None, np.inf)):
            beside = value if to is None else np.nextafter(value, np.float32(to))
            x[3 * index + step, trees.feature[node]] = float(beside)
    graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
    expected = method.predict_proba(graph).numpy()
    np.testing.assert_allclose(run(path, onnx_inputs(method, graph)), expected, atol=2e-6)


def average(task, *methods):
    """An average as `auto` makes it, of given methods."""
    method = eg.Auto(candidates="mlp", max_epochs=1).fit(task, seed=0)
    method.members_, method._predicted = [one.fit(task, seed=0) for one in methods], None
    method.weights_ = [0.5] + [0.5 / (len(methods) - 1)] * (len(methods) - 1)
    return method


def test_an_average_shares_inputs_that_are_the_same(tmp_path):
    task = weighted(plain())
    fast = {"members": 1, "hidden": 5, "max_epochs": 6}
    method = average(
        task,
        eg.Boosting(max_epochs=10, hops=0),
        eg.Boosting(max_epochs=10, **HOPS),
        eg.Boosting(max_epochs=10, hops=1),
        eg.Logistic(max_epochs=6, **HOPS),
        eg.Unison(views="structural", **fast),
        eg.Unison(views="structural", steps=3, **fast),
    )
    inputs = export_onnx(method, tmp_path / "model.onnx")
    assert " ".join(inputs) == (
        "features log_degree mean_1 mean_2 mean_1_3 scaled_mean_1 scaled_mean_2 structural "
        "structural_6"
    )
    check(method, task.graph, str(tmp_path / "model.onnx"))


def test_what_auto_chooses_is_exported(tmp_path):
    task = plain()
    method = eg.Auto(candidates="boosting,logistic", time_limit=20).fit(task, seed=0)
    check(method, task.graph, str(tmp_path / "model.onnx"))


def test_other_methods_say_which_can_be_exported(tmp_path):
    task = plain()
    gcn = eg.GCN(max_epochs=2).fit(task, seed=0)
    names = ", ".join(QUICK)
    with pytest.raises(ValueError, match=rf"^GCN cannot be exported: .*: {names}, and averages"):
        export_onnx(gcn, tmp_path / "model.onnx")
    both = average(task, eg.MLP(max_epochs=2), eg.GCN(max_epochs=2))
    with pytest.raises(ValueError, match=r"^GCN \(in the average of Auto\) cannot"):
        export_onnx(both, tmp_path / "model.onnx")
    with pytest.raises(RuntimeError, match="not fitted"):
        export_onnx(eg.MLP(), tmp_path / "model.onnx")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("method", [eg.Logistic(max_epochs=6, **HOPS), "boosting"])
def test_tables_go_in_and_the_file_says_what_it_holds(method, tmp_path):
    number = np.arange(90)
    kinds = np.where(number % 3, "a", "b")
    nodes = pandas.DataFrame({"id": [f"n{i}" for i in number], "age": number % 31, "kind": kinds})
    edges = pandas.DataFrame({"source": nodes["id"], "target": np.roll(nodes["id"], 3)})
    model = eg.TableModel(method).fit(nodes, edges, label="kind")
    path = tmp_path / "below" / "model.onnx"
    inputs = model.export_onnx(path)
    rows = model.onnx_inputs(nodes, edges)
    assert {name: table.shape for name, table in rows.items()} == {
        name: (90, item.width) for name, item in inputs.items()
    }
    got = run(str(path), rows)
    np.testing.assert_allclose(got, model.predict_proba(nodes, edges), atol=2e-6)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    about = {k: json.loads(v) for k, v in session.get_modelmeta().custom_metadata_map.items()}
    assert about["classes"] == ["a", "b"]
    assert about["features"] == list(model.info.encoder.names)
    assert about["threshold"] == {"class": "b", "from": model.threshold.value}
    new = pandas.DataFrame({"id": ["x"], "age": [7]})
    link = pandas.DataFrame({"source": ["x"], "target": ["n4"]})
    one = model.onnx_inputs(new, link, known=(nodes, edges))
    expected = model.predict_proba(new, link, known=(nodes, edges))
    np.testing.assert_allclose(run(str(path), one), expected, atol=2e-6)
