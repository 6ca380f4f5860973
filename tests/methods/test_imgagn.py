"""ImGAGN: what generators make, worked by hand; their step; and plain where nothing is rare."""

import pytest
import torch
from oracles import dense_classify, dense_conv, dense_graph, labelled, task_with
from torch.nn.functional import cross_entropy

from evengraph.methods import ImGAGN, imgagn
from evengraph.methods.imgagn import Generator, blend
from evengraph.nn.networks import CONVS
from small_graphs import small_task


def test_features_are_a_mean_and_links_go_to_those_who_weigh_most():
    x = torch.tensor([[1.0, 0], [9, 9], [0, 1], [0, 0]])
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])
    new, starts, ends = blend(x, torch.tensor([0, 2, 3]), weights)
    torch.testing.assert_close(new, torch.tensor([[0.5, 0.3], [0.2, 0.4]]))
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [(0, 0), (1, 2), (1, 3)]


def test_the_only_node_of_a_class_is_copied_and_linked():
    x = torch.tensor([[1.0, 2], [3, 4]])
    weights = Generator(5, torch.tensor([1]), 3, 0)()
    new, starts, ends = blend(x, torch.tensor([1]), weights)
    assert new.tolist() == [[3, 4]] * 3
    assert (starts.tolist(), ends.tolist()) == ([0, 1, 2], [1, 1, 1])


def test_weights_are_shares_and_none_rules_alone():
    weights = Generator(5, torch.arange(4), 50, 0)().detach()
    assert weights.shape == (50, 4)
    torch.testing.assert_close(weights.sum(1), torch.ones(50))
    assert weights.max() / weights.min() <= torch.e + 1e-4  # scores lie between 0 and 1


def generators(task, **fields):
    nodes, labels = labelled(task)
    method = ImGAGN(**fields)
    return method._generators(task.graph.x, nodes, labels, task.class_counts)


@pytest.mark.parametrize(
    ("counts", "fields", "added"),
    [
        ((9, 9, 2), {}, [0, 0, 7]),
        ((9, 2, 2), {}, [0, 7, 7]),
        ((9, 9, 2), {"ratio": 0.5}, [0, 0, 2]),
        ((9, 5, 2), {"minority": 2}, [0, 4, 7]),
        ((5, 5, 5), {}, [0, 0, 0]),
        ((9, 9, 2), {"ratio": 0.0}, [0, 0, 0]),
    ],
)
def test_rare_classes_grow_by_their_own_nodes(counts, fields, added):
    task = task_with(*counts)
    new = generators(task, **fields)()
    assert torch.bincount(new.labels, minlength=3).tolist() == added
    assert new.x.shape == (sum(added), 64)
    nodes, labels = labelled(task)
    for start, end in zip(new.starts.tolist(), new.ends.tolist(), strict=True):
        assert end in nodes[labels == new.labels[start]].tolist()
    assert set(new.starts.tolist()) == set(range(sum(added)))  # each is linked


def judges_of(task, monkeypatch, **fields):
    """The judges of a fitted method, and all that its generators made."""
    kept = []
    real = imgagn._Judges

    def spy(*args):
        kept.append(real(*args))
        return kept[-1]

    monkeypatch.setattr(imgagn, "_Judges", spy)
    method = ImGAGN(**{"max_epochs": 0, "dropout": 0.0} | fields).fit(task, seed=0)
    return method, kept[0]


@pytest.mark.parametrize("backbone", CONVS)
def test_the_loss_is_that_of_both_heads_on_the_larger_graph(monkeypatch, backbone):
    task = task_with(9, 6, 2)
    made = []
    real = imgagn._Generators.forward
    monkeypatch.setattr(
        imgagn._Generators, "forward", lambda self: made.append(real(self)) or made[-1]
    )
    method, judges = judges_of(task, monkeypatch, backbone=backbone)
    new, size = made[-1], 150 + 7
    larger = torch.eye(size, dtype=torch.float64)
    larger[:150, :150] += dense_graph(task.graph)
    larger[150 + new.starts, new.ends] = larger[new.ends, 150 + new.starts] = 1
    matrix = larger / larger.sum(1, keepdim=True)
    hidden = dense_conv(judges.net.encoder, torch.cat([task.graph.x, new.x]), matrix)
    nodes, labels = labelled(task)
    rows = torch.cat([nodes, torch.arange(150, size)])
    every = torch.cat([labels, torch.full((7,), 2)])
    fake = torch.cat([torch.zeros(17), torch.ones(7)]).long()
    classes, kinds = (
        dense_classify(head, hidden, matrix)[rows]
        for head in (judges.net.classifier, judges.critic)
    )
    expected = cross_entropy(classes, every) + cross_entropy(kinds, fake)
    assert method.history_[0].loss[0] == pytest.approx(expected.item(), rel=1e-4)


def test_a_step_of_the_generators_leaves_the_network_alone(monkeypatch):
    task = task_with(9, 6, 3)
    _, judges = judges_of(task, monkeypatch)
    judges.zero_grad()
    forge = generators(task)
    optimizer = torch.optim.Adam(forge.parameters(), lr=0.01)
    before = [
        {key: value.clone() for key, value in module.state_dict().items()}
        for module in (judges, forge)
    ]
    imgagn.improve(forge, judges, optimizer)
    assert all(parameter.grad is None for parameter in judges.parameters())
    assert all(torch.equal(value, before[0][key]) for key, value in judges.state_dict().items())
    assert not any(torch.equal(value, before[1][key]) for key, value in forge.state_dict().items())


def test_the_critic_reaches_the_generators(monkeypatch):
    """With the distance out of the way there is a gradient still: the public code has none."""
    task = task_with(9, 6, 3)
    _, judges = judges_of(task, monkeypatch)
    forge = generators(task)
    classes, kinds = judges(forge(), dropout=False)
    loss = classes[-6:].square().sum() + kinds[-6:].square().sum()
    assert all(one.abs().sum() > 0 for one in torch.autograd.grad(loss, list(forge.parameters())))


def test_generators_step_now_and_then(monkeypatch):
    steps = []
    real = imgagn.improve
    monkeypatch.setattr(imgagn, "improve", lambda *args: steps.append(real(*args)))
    ImGAGN(max_epochs=10, generate_every=4).fit(small_task(), seed=0)
    assert len(steps) == 3  # epochs 0, 4 and 8
