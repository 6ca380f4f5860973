"""What Uni-GNN cannot predict from disk is one line; what it can is in test_disk_model."""

import pytest

from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.disk.models import DiskGraph
from evengraph.methods import Auto, UniGNN
from evengraph.splits import Natural


@pytest.mark.parametrize("within", [False, True], ids=["alone", "within Auto"])
def test_longer_paths_need_the_graph_in_memory(tmp_path, within):
    graph = toy(60, 100, 4, 2)
    task = Natural(train=0.3, val=0.2)(graph, seed=0)
    method = UniGNN(alpha=2, clusters_per_class=2, max_epochs=1).fit(task, progress=False)
    if within:
        auto = Auto(candidates="gcn", max_epochs=1).fit(task, progress=False)
        auto.members_, method = [method], auto
    disk = DiskGraph.open(pack_graph(graph, tmp_path / "graph"), 10**7)
    with pytest.raises(ValueError, match="Uni-GNN with alpha=2 needs the whole graph in memory"):
        list(disk.predict(method))
