"""Which methods learn from tables on disk, and which predict them layer by layer."""

from dataclasses import replace

import pytest
import torch

from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.disk.models import DiskGraph
from evengraph.methods import GCN, METHODS
from evengraph.methods.bases.disk_model import DiskModel, DiskPredictor
from evengraph.methods.bases.row_model import RowModel
from evengraph.pipeline.model_info import load_model
from evengraph.splits import Natural

LTE4G = METHODS["lte4g"](expert_epochs=3, student_epochs=3)
UniGNN = METHODS["unignn"]
LAYERWISE = [
    GCN(),
    GCN(normalisation="symmetric", network="plain"),
    GCN(backbone="sage"),
    GCN(backbone="sage", network="plain"),
    GCN(backbone="gat"),
    GCN(backbone="gat", network="plain"),
    METHODS["pcsoftmax"](),  # whose classes shift the logits
    METHODS["doublebalancing"](),
    METHODS["embedsmote"](layers=1),
    METHODS["embedsmote"](layers=3, backbone="sage"),
    METHODS["graphens"](layers=1),
    METHODS["graphens"](layers=2, backbone="gat"),
    METHODS["unreal"](rounds=1, round_epochs=2, clusters=8),
    METHODS["unreal"](rounds=1, round_epochs=2, clusters=8, backbone="sage"),
    LTE4G,
    METHODS["labelpropagation"](),
    UniGNN(alpha=1, clusters_per_class=3),
    UniGNN(alpha=1, clusters_per_class=3, share_embeddings=False, readings="unit-rows"),
    UniGNN(alpha=1, clusters_per_class=3, encoders="semantic"),
    UniGNN(alpha=1, encoders="structural", layers=3),
    METHODS["auto"](candidates="gcn"),
]


def test_they_are_row_models():
    names = {name for name, kind in METHODS.items() if issubclass(kind, DiskModel)}
    rows = {name for name, kind in METHODS.items() if issubclass(kind, RowModel)}
    assert names < rows
    assert rows - names == {"doublebalancing"}  # its rows have neighbours in every layer
    assert {"unison", "iceberg", "mlp", "logistic", "boosting"} <= names


def test_all_methods_predict_tables():
    others = [name for name, kind in METHODS.items() if not issubclass(kind, DiskPredictor)]
    assert others == []


def changed(graph):
    """The graph with other features at some nodes, weighted edges, and more nodes."""
    size, more = graph.num_nodes, 20
    random = torch.Generator().manual_seed(1)
    graph = graph.clone()
    graph.x = torch.cat([graph.x, torch.rand(more, graph.num_features, generator=random)])
    graph.x[size // 2 : size // 2 + 50] += 1
    ends = torch.stack([torch.arange(more) + size, torch.arange(more) * 3])
    graph.edge_index = torch.cat([graph.edge_index, ends, ends.flip(0)], dim=1)
    graph.y = torch.cat([graph.y, torch.zeros(more, dtype=torch.long)])
    first, second = graph.edge_index.sort(dim=0).values
    graph.edge_weight = 0.5 + ((first * 7 + second) % 5).float()  # the same in both directions
    return graph


@pytest.mark.parametrize("method", LAYERWISE, ids=repr)
def test_prediction_layer_by_layer_is_that_of_memory(tmp_path, method):
    graph = toy(300, 900, 12, 3)
    task = Natural(train=0.3, val=0.2)(graph, seed=0)
    size = {"hidden": 16} if hasattr(method, "hidden") else {}
    method = replace(method, max_epochs=8, **size).fit(task, seed=0, progress=False)
    method.save(tmp_path / "model")
    for name, other in {"same": graph, "changed": changed(graph)}.items():
        expected = method.predict_proba(other)
        packed = pack_graph(other, tmp_path / name)
        for memory, model in ((10**7, method), (40_000, load_model(tmp_path / "model"))):
            folder = tmp_path / f"{name} {memory}"
            disk = DiskGraph.open(packed, memory, folder=folder)
            found = torch.cat([rows for _, rows in disk.predict(model)])
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_several_members_of_auto_predict_together(tmp_path):
    graph = toy(60, 100, 4, 2)
    task = Natural(train=0.3, val=0.2)(graph, seed=0)
    auto = METHODS["auto"](candidates="gcn", max_epochs=2).fit(task, progress=False)
    members = [GCN(max_epochs=2), METHODS["unison"](members=1, hidden=8, max_epochs=2)]
    auto.members_ = [member.fit(task, progress=False) for member in members]
    auto.weights_ = [0.3, 0.7]
    disk = DiskGraph.open(pack_graph(graph, tmp_path / "graph"), 10**6)
    ((_, found),) = disk.predict(auto)
    torch.testing.assert_close(found, auto.predict_proba(graph), rtol=1e-4, atol=1e-5)
