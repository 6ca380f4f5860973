"""UNREAL: overlaps and orders by hand, who joins in a round, and plain without any."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import dense_propagation, task_with

from evengraph.methods import UNREAL
from evengraph.methods.unreal import cluster_classes, joint_order, rank_biased_overlap
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import CONVS
from small_graphs import small_task

# Two orders.


def overlap(one, other, persistence=0.5):
    return rank_biased_overlap(torch.tensor(one), torch.tensor(other), persistence)


def test_overlap_by_hand():
    assert overlap([0, 1, 2], [0, 1, 2]) == pytest.approx(1)
    # in common: none of the first one, both of the first two, all three; weights 1, 1/2, 1/4
    assert overlap([0, 1, 2], [1, 0, 2]) == pytest.approx((0 + 1 / 2 + 1 / 4) / 1.75)
    assert overlap([0, 1], [1, 0], persistence=0.0) == 0  # the top alone counts
    assert rank_biased_overlap(*[torch.empty(0, dtype=torch.long)] * 2, 0.5) == 1


@given(st.permutations(range(6)), st.permutations(range(6)), st.floats(0.05, 0.95))
def test_overlap_against_sets(one, other, persistence):
    lists = [sorted(range(6), key=ranks.__getitem__) for ranks in (one, other)]
    shares = [len(set(lists[0][:d]) & set(lists[1][:d])) / d for d in range(1, 7)]
    weights = [persistence**d for d in range(6)]
    expected = sum(w * s for w, s in zip(weights, shares, strict=True)) / sum(weights)
    assert overlap(one, other, persistence) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("confidence", "persistence", "expected"),
    [
        ([0.6, 0.7, 0.8, 0.9], 0.5, [0, 1, 2, 3]),  # the other way round: distance decides
        ([0.9, 0.8, 0.7, 0.6], 0.5, [0, 1, 2, 3]),
        # ranks 0 1 2 3 and 3 0 1 2; r = 0.488, so 0.512 of the one and 0.488 of the other:
        # 1.46, 0.51, 1.51, 2.51
        ([0.6, 0.9, 0.8, 0.7], 0.9, [1, 0, 2, 3]),
    ],
)
def test_confidence_has_its_say_where_the_orders_agree_by_half(confidence, persistence, expected):
    distance = torch.tensor([0.1, 0.2, 0.3, 0.4])
    assert joint_order(distance, torch.tensor(confidence), persistence).tolist() == expected


# Who joins. Class 0 lives at (1, 0), class 1 at (0, 1).

X = torch.tensor([[1.0, 0], [0, 1], [0.9, 0], [0.8, 0.1], [0, 0.9], [0.5, 0.45], [0.1, 0.8]])
LABELS = torch.tensor([0, 1, -1, -1, -1, -1, -1])
PROBABILITIES = torch.tensor(
    [[1, 0], [0, 1], [0.7, 0.3], [0.9, 0.1], [0.2, 0.8], [0.99, 0.01], [0.6, 0.4]]
)


def retrieved(probabilities=PROBABILITIES, **fields):
    found = UNREAL(**{"clusters": 7} | fields)._retrieve(X, probabilities, LABELS)
    return dict(zip(found.nodes.tolist(), found.labels.tolist(), strict=True))


def test_a_cluster_is_of_the_class_whose_mean_is_nearest():
    assert cluster_classes(X, LABELS, 2, 7, seed=0)[2:].tolist() == [0, 0, 1, 0, 1]
    assert set(cluster_classes(X, LABELS, 2, 1, seed=0).tolist()) <= {0, 1}


@pytest.mark.parametrize(
    ("probabilities", "fields", "expected"),
    [
        # 6 is at class 1 but predicted otherwise; 5 is about as near to either
        (PROBABILITIES, {}, {2: 0, 3: 0, 4: 1}),
        (PROBABILITIES, {"margin": 0.0}, {2: 0, 3: 0, 5: 0, 4: 1}),
        (PROBABILITIES, {"quota": 1}, {2: 0, 4: 1}),  # the nearest one
        # predictions turned round: 6 alone is now where it is predicted to be
        (PROBABILITIES.flip(1), {}, {6: 1}),
    ],
)
def test_those_join_that_both_agree_on(probabilities, fields, expected):
    assert retrieved(probabilities, **fields) == expected


# All of it.


def test_rounds_add_labels_until_none_is_left(monkeypatch):
    task = task_with(6, 4, 2)
    sizes = []
    real = UNREAL._learn

    def spy(self, task, inputs, labels, length=None):
        sizes.append(torch.bincount(labels[labels >= 0], minlength=3))
        known = task.graph.y[task.train]
        assert torch.equal(labels[task.train], known)  # labels are never replaced
        return real(self, task, inputs, labels, length)

    monkeypatch.setattr(UNREAL, "_learn", spy)
    UNREAL(rounds=4, round_epochs=20, quota=3, clusters=20).fit(task, seed=0)
    assert len(sizes) == 5
    gains = torch.stack(sizes).diff(dim=0)
    assert ((gains >= 0) & (gains <= 3)).all()
    assert gains.sum() > 0


def test_each_round_starts_afresh_and_the_last_stage_goes_on():
    task = small_task()
    method = UNREAL(rounds=2, round_epochs=5, max_epochs=10).fit(task, seed=0)
    rounds, last = method.history_[:-1], method.history_[-1]
    assert [history.epochs for history in rounds] == [5, 5]
    assert not any(history.main for history in rounds)
    assert last.main
    assert rounds[1].loss[0] > rounds[0].loss[-1]  # another network
    assert last.loss[0] < rounds[1].loss[0]  # the same network


@pytest.mark.parametrize("fields", [{"rounds": 0}, {"quota": 0}])
def test_without_rounds_it_is_plain_training(fields):
    task = small_task()
    method = UNREAL(max_epochs=30, **fields).fit(task, seed=0)
    (history,) = method.history_
    assert history.loss[-1] < history.loss[0]
    score = validation_score(method.predict_proba(task.graph), task)
    assert history.best_score == pytest.approx(float(score))


@pytest.mark.parametrize("backbone", CONVS)
def test_the_network_is_of_the_kind_that_is_asked_for(backbone):
    task = small_task()
    method = UNREAL(backbone=backbone, rounds=0, max_epochs=3).fit(task, seed=0)
    net, hidden = method.net_, task.graph.x
    assert all(type(conv) is CONVS[backbone] for conv in net.convs)
    propagation = method._inputs(task.graph).propagation
    for conv, norm, activation in zip(net.convs, net.norms, net.activations, strict=True):
        rows = conv(hidden, propagation)
        rows = (rows - norm.running_mean) / (norm.running_var + 1e-5).sqrt()
        rows = rows * norm.weight + norm.bias
        hidden = torch.where(rows > 0, rows, activation.weight * rows)
    expected = net.linear(hidden).softmax(1)
    torch.testing.assert_close(method.predict_proba(task.graph), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("backbone", "how"), [("gcn", "symmetric"), ("sage", "row")])
def test_sage_takes_means(backbone, how):
    graph = small_task().graph
    matrix = UNREAL(backbone=backbone)._inputs(graph).propagation.matrix.to_dense()
    torch.testing.assert_close(matrix.double(), dense_propagation(graph, how))


@pytest.mark.parametrize("backbone", CONVS)
def test_rounds_find_true_labels_whatever_the_backbone(monkeypatch, backbone):
    task, seen = task_with(6, 4, 2), []
    real = UNREAL._retrieve

    def spy(self, *args):
        seen.append(real(self, *args))
        return seen[-1]

    monkeypatch.setattr(UNREAL, "_retrieve", spy)
    fields = {"rounds": 3, "round_epochs": 30, "quota": 3, "clusters": 20, "max_epochs": 0}
    UNREAL(backbone=backbone, **fields).fit(task, seed=0)
    right = torch.cat([task.graph.y[found.nodes] == found.labels for found in seen])
    assert right.numel() > 5
    assert right.float().mean() > 0.6


def test_normalisation_by_the_whole_graph_is_that_of_the_weights():
    task = small_task()
    method = UNREAL(rounds=0, max_epochs=3).fit(task, seed=0)
    net, inputs = method.net_, method._inputs(task.graph)
    before = method.predict_proba(task.graph)
    net.train()(*inputs)  # notes the statistics of these weights once more: nothing changes
    net.eval()
    torch.testing.assert_close(method.predict_proba(task.graph), before)
