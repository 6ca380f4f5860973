import numpy as np
import pytest

from evengraph.datasets import toy
from evengraph.disk import unpack_graph
from evengraph.disk.packing import pack_toy
from evengraph.inspection import inspect_graph


def test_a_generated_graph_is_like_the_one_in_memory(tmp_path):
    packed = pack_toy(tmp_path / "toy", num_nodes=3000, degree=8, num_features=32, num_classes=4)
    other = toy(3000, 24_000, 32, 4)
    assert packed.header["class_counts"] == np.bincount(other.y).tolist()
    assert 0.95 < packed.num_edges / 24_000 <= 1
    assert 0.9 < packed.x.mean() / float(other.x.mean()) < 1.1
    graph = unpack_graph(packed)
    assert graph.validate()
    assert not graph.has_self_loops()
    assert graph.is_undirected()
    shares = [inspect_graph(g).homophily.edge for g in (graph, other)]
    assert abs(shares[0] - shares[1]) < 0.03


def test_the_graph_depends_on_the_seed_and_not_on_memory(tmp_path, monkeypatch):
    def generate(name, **options):
        return pack_toy(tmp_path / name, num_nodes=500, degree=6, **options).content_hash

    first = generate("a")
    assert generate("b", memory=60_000) == first
    assert generate("c", seed=1) != first


def test_a_killed_run_resumes(tmp_path, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    whole = pack_toy(tmp_path / "a", num_nodes=500)
    with monkeypatch.context() as patch:
        patch.setattr("evengraph.disk.packing.word_features", kill)
        with pytest.raises(KeyboardInterrupt):
            pack_toy(tmp_path / "b", num_nodes=500)
    stages = []
    resumed = pack_toy(tmp_path / "b", num_nodes=500, progress=lambda s, _: stages.append(s))
    assert "drawing edges" not in stages
    assert resumed.content_hash == whole.content_hash


@pytest.mark.parametrize(
    "options",
    [{"num_classes": 1}, {"num_nodes": 3}, {"degree": 500}, {"seed": -1}, {"memory": 100}],
)
def test_wrong_sizes_are_errors(tmp_path, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must"):
        pack_toy(tmp_path / "toy", **{"num_nodes": 500} | options)
