import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evengraph.datasets import load, toy


def assert_proper(data, num_nodes, num_edges):
    row, col = data.edge_index
    assert data.edge_index.dtype == torch.int64
    assert data.edge_index.shape == (2, num_edges)
    assert not (row == col).any()
    keys = row * num_nodes + col
    assert (keys[1:] > keys[:-1]).all(), "sorted and without repeats"
    assert torch.equal((col * num_nodes + row).sort().values, keys), "both directions"


def test_default_graph():
    data = toy()
    assert_proper(data, 2000, 8000)
    assert data.name == "toy"
    assert data.x.shape == (2000, 256)
    assert data.x.dtype == torch.float32
    assert set(data.x.unique().tolist()) == {0.0, 1.0}
    assert data.y.dtype == torch.int64
    sizes = data.y.bincount()
    assert sizes.tolist() == sorted(sizes.tolist(), reverse=True)
    assert sizes[-1] / sizes[0] == pytest.approx(0.2, abs=0.01)
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_isolated_nodes()


def test_edges_follow_classes_and_hubs():
    data = toy(homophily=0.8, num_nodes=3000, num_edges=20000)
    row, col = data.edge_index
    assert (data.y[row] == data.y[col]).float().mean().item() == pytest.approx(0.8, abs=0.03)
    degrees = row.bincount(minlength=3000)
    assert degrees.max() > 8 * degrees.float().mean()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_size_is_exact(draw):
    num_classes = draw.draw(st.integers(2, 6))
    num_nodes = draw.draw(st.integers(num_classes, 40))
    num_edges = 2 * draw.draw(st.integers(0, num_nodes * (num_nodes - 1) // 2))
    num_features, seed = draw.draw(st.integers(1, 30)), draw.draw(st.integers(0, 2**40))
    shares = {"homophily": st.floats(0, 1), "size_ratio": st.floats(0.001, 1)}
    shares = {name: draw.draw(values) for name, values in shares.items()}
    data = toy(num_nodes, num_edges, num_features, num_classes, seed, **shares)
    assert_proper(data, num_nodes, num_edges)
    assert data.y.bincount(minlength=num_classes).min() >= 1
    assert len(data.y) == num_nodes


def test_full_homophily_without_room_takes_other_pairs():
    data = toy(400, 60000, 8, 2, homophily=1.0, size_ratio=1.0)
    assert_proper(data, 400, 60000)
    sparse = toy(2000, 4000, 4, 1000, homophily=1.0, size_ratio=1.0)  # room for 1000 pairs only
    assert_proper(sparse, 2000, 4000)
    data = toy(100_000, 1_000_000, 16, 10)
    assert_proper(data, 100_000, 1_000_000)


def test_seed_decides_and_global_state_is_left_alone():
    np.random.seed(3)
    torch.manual_seed(3)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()
    first, again, other = toy(seed=1), toy(seed=1), toy(seed=2)
    assert torch.equal(first.edge_index, again.edge_index)
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.y, again.y)
    assert not torch.equal(first.edge_index, other.edge_index)
    assert np.array_equal(before[0], np.random.get_state()[1])
    assert torch.equal(before[1], torch.get_rng_state())
    data = load("toy", num_nodes=50, num_edges=100, num_features=9, num_classes=3, seed=4)
    assert data.x.shape == (50, 9)
    assert torch.equal(data.edge_index, toy(50, 100, 9, 3, 4).edge_index)


def test_difficulty_lies_between_trivial_and_hopeless():
    sklearn = pytest.importorskip("sklearn.linear_model")
    data = toy(seed=0)
    labels, x = data.y.numpy(), data.x
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.permutation(np.flatnonzero(labels == c))[:20] for c in range(5)])
    test = np.setdiff1d(np.arange(len(labels)), train)
    eye = torch.arange(data.num_nodes).repeat(2, 1)
    index = torch.cat([data.edge_index, eye], dim=1)
    degree = index[0].bincount().float()
    smooth = torch.sparse_coo_tensor(index, 1 / degree[index[0]], check_invariants=False)

    def accuracy(features):
        model = sklearn.LogisticRegression(max_iter=2000, C=10)
        model.fit(features[train], labels[train])
        return (model.predict(features[test]) == labels[test]).mean()

    majority = np.bincount(labels).max() / len(labels)
    words, graph = accuracy(x.numpy()), accuracy((smooth @ (smooth @ x)).numpy())
    assert majority + 0.05 < words < 0.7
    assert words + 0.1 < graph < 0.97


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_classes": 1}, "num_classes must be at least 2, got 1"),
        ({"num_nodes": 4}, "num_nodes must be at least num_classes, which is 5, got 4"),
        ({"num_features": 0}, "num_features must be at least 1, got 0"),
        ({"num_nodes": 10, "num_edges": 92}, r"num_edges must lie in \[0, 90\] .* got 92"),
        ({"num_edges": -2}, "num_edges must lie in .* got -2"),
        ({"num_edges": 7}, "num_edges must be even, .* got 7"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"homophily": 1.5}, r"homophily must lie in \[0, 1\], got 1.5"),
        ({"size_ratio": 0.0}, r"size_ratio must lie in \(0, 1\], got 0.0"),
        ({"size_ratio": float("nan")}, "size_ratio must lie .* got nan"),
    ],
)
def test_bad_arguments_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        toy(**options)
