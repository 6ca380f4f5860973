"""What every protocol promises, and graphs to hold it to that."""

import hashlib

import torch

from evengraph.datasets import toy


def fingerprint(task):
    """First twelve digits of the SHA-1 of the node ids of train, validation and test."""
    return tuple(_digest(mask) for mask in (task.train, task.val, task.test))


def _digest(mask):
    ids = ",".join(map(str, mask.nonzero().flatten().tolist()))
    return hashlib.sha1(ids.encode()).hexdigest()[:12]


def named_toy(seed=4):
    """A graph of 400 nodes whose classes are not in order of size and have names."""
    graph = toy(400, 1600, 60, 4, seed=seed, size_ratio=0.4)
    graph.y = torch.tensor([2, 0, 3, 1])[graph.y]
    graph.class_names = ["ants", "bees", "crabs", "deer"]
    return graph


def with_public_split(graph):
    """The same with public sets: 12 training, 10 validation and 15 test nodes of each class."""
    for name in ("train_mask", "val_mask", "test_mask"):
        graph[name] = torch.zeros(graph.num_nodes, dtype=torch.bool)
    for label in graph.y.unique():
        nodes = (graph.y == label).nonzero().flatten()
        graph.train_mask[nodes[:12]] = True
        graph.val_mask[nodes[12:22]] = True
        graph.test_mask[nodes[22:37]] = True
    return graph


def _frozen(graph):
    return {
        name: value.clone() if isinstance(value, torch.Tensor) else list(value)
        for name, value in graph.to_dict().items()
    }


def _equal(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    return one == other


def check_protocol(protocol, graph=None):
    """Disjoint sets with every class in them; the same seed, the same task; nothing touched."""
    import random

    graph = named_toy() if graph is None else graph
    before = _frozen(graph)
    random.seed(1)
    torch.manual_seed(1)
    state, torch_state = random.getstate(), torch.get_rng_state()
    task = protocol(graph, seed=0)
    assert random.getstate() == state
    assert torch.equal(torch.get_rng_state(), torch_state)
    after = _frozen(graph)
    assert after.keys() == before.keys()
    assert all(_equal(after[name], before[name]) for name in before)

    shared = task.train.int() + task.val.int() + task.test.int()
    assert shared.max() == 1
    for mask in (task.train, task.val, task.test):
        assert (task.graph.y[mask] >= 0).all()
        assert torch.bincount(task.graph.y[mask], minlength=task.num_classes).min() > 0
    assert len(task.class_names) == task.num_classes == len(graph.class_names)

    random.seed(2)  # what the caller draws makes no difference
    again, other = protocol(graph, seed=0), protocol(graph, seed=1)
    assert fingerprint(again) == fingerprint(task)
    assert torch.equal(again.graph.y, task.graph.y)
    assert torch.equal(again.graph.edge_index, task.graph.edge_index)
    assert fingerprint(other) != fingerprint(task)
