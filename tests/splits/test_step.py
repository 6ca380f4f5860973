"""Step: the paper's splits to the node, and its rules on a generated graph."""

import pytest
import torch
from protocols import check_protocol, fingerprint, named_toy
from torch_geometric.data import Data

from evengraph.splits import Step
from evengraph.splits.paper import minority_size

# The paper's splits: graph, minority classes, ratio, seed, then the first twelve digits of the
# SHA-1 of the node ids, ascending and joined by commas, of train, validation and test.
SPLITS = [
    ("cora", 3, 0.1, 5, "9058772bc3ee", "4ced9aa91a88", "ba1fb42cc639"),
    ("cora", 3, 0.1, 6, "4ce8544311b6", "2c74b2dbe2fe", "633845991462"),
    ("cora", 3, 0.1, 7, "0fb41c795938", "922c63f055ed", "87973494ea1c"),
    ("cora", 3, 0.05, 5, "b2f21ada904a", "243113362e9c", "f7b4b913c427"),
    ("cora", 3, 0.05, 6, "dc4bcc75fcea", "38cc6a01242a", "d0f52ee70d50"),
    ("cora", 3, 0.05, 7, "7d1520881f22", "053abc31528f", "95bc4a46a447"),
    ("cora", 5, 0.1, 5, "719ad6147a20", "be0aa4fb3bcc", "52c6f61fdc4f"),
    ("cora", 5, 0.1, 6, "2365e7dfd4e2", "b92421f9f69a", "0a7728df19c3"),
    ("cora", 5, 0.1, 7, "318037792c15", "b98c350dcc6a", "b58bc86ec013"),
    ("cora", 5, 0.05, 5, "a6d2ad5f65f4", "0b8bcfe58158", "fdfb1369b806"),
    ("cora", 5, 0.05, 6, "d50bea5b3e85", "b02f28b881ab", "de4af51b141a"),
    ("cora", 5, 0.05, 7, "d4a7bff4f0c8", "30e4f7787b30", "f92cc53715ee"),
    ("citeseer", 3, 0.1, 5, "1112af0865de", "57d4d1bf6122", "1fc51f03d106"),
    ("citeseer", 3, 0.1, 6, "3a415b8c3051", "b5790d912358", "89903eaa4a82"),
    ("citeseer", 3, 0.1, 7, "c001aa8104a4", "06b0f32183d7", "975624713186"),
    ("citeseer", 3, 0.05, 5, "f85dccbf0c0f", "5c51d4e9b59d", "47ed000b1411"),
    ("citeseer", 3, 0.05, 6, "1c3db224a4c2", "63b84ff04824", "729f1e5ef0e8"),
    ("citeseer", 3, 0.05, 7, "c48f4fc1081f", "feab30031931", "433ea5a261a0"),
    ("citeseer", 5, 0.1, 5, "d0888ce6ae14", "dd7bc14dd962", "45c4c8d14021"),
    ("citeseer", 5, 0.1, 6, "23d1f8eb18e5", "ebfcb5fd2c08", "7248116bc77d"),
    ("citeseer", 5, 0.1, 7, "f5b8a65df5da", "4d755669c1e8", "4f155e5acbc2"),
    ("citeseer", 5, 0.05, 5, "63da8be6589d", "62b4c632f1c3", "30838f94cacb"),
    ("citeseer", 5, 0.05, 6, "2440a83cc311", "f62e44a7d306", "021feec57d44"),
    ("citeseer", 5, 0.05, 7, "629704a98f2b", "71ad42f15022", "176fa966905f"),
    ("pubmed", 1, 0.1, 5, "a02279cf7ec2", "716a5895cbb9", "5a987025fade"),
    ("pubmed", 1, 0.1, 6, "aaa482adac0e", "0827c4f22c8b", "b348af6aa632"),
    ("pubmed", 1, 0.1, 7, "bb5f90847961", "8edee5639869", "da854c1f2e46"),
    ("pubmed", 1, 0.05, 5, "9738a8ae5b91", "cf5b7891582b", "b90144c94aac"),
    ("pubmed", 1, 0.05, 6, "6de6f4ce83fa", "cd10b47c10f3", "acda40bb57d2"),
    ("pubmed", 1, 0.05, 7, "bb9cd1ebcf0b", "40e4b755265d", "8ab8649e44b5"),
    ("pubmed", 2, 0.1, 5, "3ada330f4bd6", "442b3cc13464", "3cb172cab265"),
    ("pubmed", 2, 0.1, 6, "2d715a5cbcd4", "acbb0cfe32a5", "a0577c1cbb39"),
    ("pubmed", 2, 0.1, 7, "588f5480280c", "ed721f095508", "7ed82efa6e97"),
    ("pubmed", 2, 0.05, 5, "4b8e0922dc71", "61ab4943c961", "5970fd105d6a"),
    ("pubmed", 2, 0.05, 6, "f0546acf9ca9", "804f334c6185", "30e01c64ab6c"),
    ("pubmed", 2, 0.05, 7, "baa835ed4d46", "5e9eb50596de", "dff6cb8e784e"),
]

# Training nodes of each class in the paper's appendix.
COUNTS = {
    ("cora", 3, 0.1): [20, 20, 20, 20, 2, 2, 2],
    ("cora", 3, 0.05): [20, 20, 20, 20, 1, 1, 1],
    ("cora", 5, 0.1): [20, 20, 2, 2, 2, 2, 2],
    ("cora", 5, 0.05): [20, 20, 1, 1, 1, 1, 1],
    ("citeseer", 3, 0.1): [20, 20, 20, 2, 2, 2],
    ("citeseer", 3, 0.05): [20, 20, 20, 1, 1, 1],
    ("citeseer", 5, 0.1): [20, 2, 2, 2, 2, 2],
    ("citeseer", 5, 0.05): [20, 1, 1, 1, 1, 1],
    ("pubmed", 1, 0.1): [20, 20, 2],
    ("pubmed", 1, 0.05): [20, 20, 1],
    ("pubmed", 2, 0.1): [20, 2, 2],
    ("pubmed", 2, 0.05): [20, 1, 1],
}


@pytest.mark.parametrize(("name", "minority", "ratio", "seed", "train", "val", "test"), SPLITS)
def test_the_papers_splits(real_graph, name, minority, ratio, seed, train, val, test):
    task = Step(minority=minority, ratio=ratio)(real_graph(name), seed=seed)
    assert fingerprint(task) == (train, val, test)
    assert task.class_counts.tolist() == COUNTS[name, minority, ratio]


def test_every_row_of_the_appendix_is_there():
    assert len(SPLITS) == 36
    assert {row[:3] for row in SPLITS} == set(COUNTS)


def test_the_shared_promises():
    check_protocol(
        Step(minority=2, ratio=0.1, train_per_class=20, val_per_class=5, test_per_class=10)
    )


def test_counts():
    protocol = Step(minority=2, ratio=0.2, train_per_class=10, val_per_class=7, test_per_class=11)
    task = protocol(named_toy(), seed=3)
    assert task.class_counts.tolist() == [10, 10, 2, 2]
    assert torch.bincount(task.graph.y[task.val]).tolist() == [7] * 4
    assert torch.bincount(task.graph.y[task.test]).tolist() == [11] * 4
    assert task.num_classes == 4


def test_classes_are_renamed_by_size():
    graph = named_toy()
    sizes = torch.bincount(graph.y)
    order = sizes.argsort(descending=True, stable=True)
    assert order.tolist() != [0, 1, 2, 3]
    task = Step(minority=1, val_per_class=5, test_per_class=5)(graph, seed=0)
    assert torch.bincount(task.graph.y).tolist() == sizes[order].tolist()
    assert torch.equal(order[task.graph.y], graph.y)
    assert task.class_names == tuple(graph.class_names[old] for old in order)
    assert list(task.graph.class_names) == list(task.class_names)


def test_classes_of_equal_size_keep_their_order():
    graph = Data(x=torch.ones(12, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    graph.y = torch.tensor([0, 1, 2] * 4)
    task = Step(minority=1, ratio=1, train_per_class=1, val_per_class=1, test_per_class=1)(
        graph, seed=0
    )
    assert torch.equal(task.graph.y, graph.y)
    assert task.class_names == ()


def test_sets_of_a_smaller_ratio_are_nested():
    graph = named_toy()
    small = Step(minority=2, ratio=0.05, val_per_class=5, test_per_class=5)(graph, seed=0)
    large = Step(minority=2, ratio=0.1, val_per_class=5, test_per_class=5)(graph, seed=0)
    assert (large.train | ~small.train).all()


def test_nodes_without_label_are_in_no_set():
    graph = named_toy()
    graph.y[::3] = -1
    task = Step(minority=1, ratio=0.5, train_per_class=4, val_per_class=3, test_per_class=3)(
        graph, seed=0
    )
    assert not (task.train | task.val | task.test)[::3].any()
    assert (task.graph.y[::3] == -1).all()


def test_minority_size_is_the_whole_part():
    """In whole numbers, whatever floating point makes of it: 100 x 0.29 is 28.999999999999996."""
    for per_class in range(1, 120):
        for percent in range(1, 101):
            if per_class * percent >= 100:
                assert minority_size(per_class, percent / 100) == per_class * percent // 100


def test_a_class_that_is_too_small_is_refused():
    protocol = Step(minority=1, train_per_class=10, val_per_class=20, test_per_class=50)
    sizes = torch.bincount(named_toy().y)
    smallest = int(sizes.argmin())  # the caller's id, not ours
    size, called = int(sizes.min()), named_toy().class_names[smallest]
    message = (
        f"Class {called!r} has {size} labelled nodes for train, validation and test, 71 are needed"
    )
    with pytest.raises(ValueError, match=message):
        protocol(named_toy(), seed=0)
    nameless = named_toy()
    del nameless.class_names
    with pytest.raises(ValueError, match=f"Class {smallest} has {size} labelled nodes"):
        protocol(nameless, seed=0)


@pytest.mark.parametrize("minority", [-1, 4, 9])
def test_bad_number_of_minority_classes(minority):
    message = f"minority must lie between 0 and 3 on a graph with 4 classes, got {minority}"
    with pytest.raises(ValueError, match=message):
        Step(minority=minority)(named_toy(), seed=0)


@pytest.mark.parametrize("ratio", [0, -0.1, 1.1, float("nan")])
def test_bad_ratio(ratio):
    with pytest.raises(ValueError, match=rf"ratio must lie in \(0, 1\], got {ratio}"):
        Step(ratio=ratio)


def test_a_ratio_that_leaves_no_node_is_refused():
    with pytest.raises(ValueError, match=r"ratio=0\.04 .* without a labelled node.* 0\.05"):
        Step(ratio=0.04)
    assert Step(ratio=0.05).ratio == 0.05


@pytest.mark.parametrize(
    ("field", "value"), [("train_per_class", 0), ("val_per_class", -1), ("test_per_class", -1)]
)
def test_bad_set_sizes(field, value):
    with pytest.raises(ValueError, match=f"{field} must be .* got {value}"):
        Step(**{field: value})


def test_a_graph_without_labels_is_refused():
    graph = Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    with pytest.raises(ValueError, match=r"graph\.y must hold the labels"):
        Step()(graph, seed=0)


def test_nodes_without_label_count_for_no_class():
    """Were they taken for the first class, it would be the largest."""
    y = torch.tensor([0] * 100 + [1] * 150 + [-1] * 200)
    graph = Data(x=torch.zeros(450, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)
    task = Step(minority=1, ratio=0.1)(graph, seed=5)
    assert torch.equal(task.graph.y, torch.tensor([1] * 100 + [0] * 150 + [-1] * 200))
    assert task.class_counts.tolist() == [20, 2]
