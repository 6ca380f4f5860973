"""PublicStep: the public split with the last classes cut."""

import pytest
import torch
from protocols import check_protocol, named_toy, with_public_split

from evengraph.splits import PublicStep


def split(**fields):
    graph = with_public_split(named_toy())
    return graph, PublicStep(**fields)(graph, seed=0)


def test_the_shared_promises():
    check_protocol(PublicStep(minority=2, ratio=0.2), with_public_split(named_toy()))


def test_the_last_classes_are_cut_and_the_rest_is_public():
    graph, task = split(minority=2, ratio=0.25)
    assert task.class_counts.tolist() == [12, 12, 3, 3]
    assert (graph.train_mask | ~task.train).all()
    assert torch.equal(task.val, graph.val_mask)
    assert torch.equal(task.test, graph.test_mask)
    assert torch.equal(task.graph.y, graph.y)
    assert task.class_names == ("ants", "bees", "crabs", "deer")


def test_no_minority_is_the_public_split():
    graph, task = split(minority=0)
    assert torch.equal(task.train, graph.train_mask)


def test_features_are_scaled_to_sum_to_one():
    graph, task = split(minority=1)
    torch.testing.assert_close(task.graph.x.sum(1), torch.ones(400))
    torch.testing.assert_close(task.graph.x * graph.x.sum(1, keepdim=True), graph.x)


def test_a_node_without_features_stays_zero():
    graph = with_public_split(named_toy())
    graph.x[3] = 0
    assert PublicStep(minority=1)(graph, seed=0).graph.x[3].tolist() == [0] * 60


def test_features_may_stay_as_they_are():
    graph, task = split(minority=1, normalise_features=False)
    assert torch.equal(task.graph.x, graph.x)


@pytest.mark.parametrize(
    ("name", "minority", "counts", "num_test"),
    [
        ("cora", 3, [20, 20, 20, 20, 2, 2, 2], 1000),
        ("citeseer", 3, [20, 20, 20, 2, 2, 2], 1000),
        ("pubmed", 1, [20, 20, 2], 1000),
    ],
)
def test_on_the_public_split_of_real_graphs(real_graph, name, minority, counts, num_test):
    task = PublicStep(minority=minority)(real_graph(name), seed=0)
    assert task.class_counts.tolist() == counts
    assert (int(task.val.sum()), int(task.test.sum())) == (500, num_test)


def test_a_graph_without_public_split_is_refused():
    with pytest.raises(ValueError, match="needs a public split"):
        PublicStep()(named_toy(), seed=0)


def test_a_class_without_public_training_node_is_refused():
    graph = with_public_split(named_toy())
    graph.train_mask &= graph.y != 1
    with pytest.raises(
        ValueError, match="Class 'bees' has 0 labelled nodes for training, 1 are needed"
    ):
        PublicStep(minority=1)(graph, seed=0)


def test_bad_arguments():
    with pytest.raises(ValueError, match="ratio must lie in"):
        PublicStep(ratio=0)
    with pytest.raises(ValueError, match="minority must lie between 0 and 3"):
        split(minority=4)
    with pytest.raises(ValueError, match=r"ratio=0\.05 would leave a minority class without"):
        split(minority=1, ratio=0.05)
