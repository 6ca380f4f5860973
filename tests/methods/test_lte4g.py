"""LTE4G: head and tail, the four sets, every stage's loss against the formulas, routing."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    dense_conv,
    dense_graph,
    dense_linear,
    dense_logits,
    dense_propagation,
    labelled,
    task_with,
)
from torch.nn.functional import cross_entropy, normalize

from evengraph.core.rng import seeded
from evengraph.methods import GCN, LTE4G, Reweight, lte4g
from evengraph.methods.lte4g import head_classes, prototype_size
from evengraph.splits import Step
from small_graphs import graph_of, normal, small_task, task_of

# Head and tail.

CORA_TAIL = [341, 158, 73, 34, 15, 7, 3]
CITESEER_TAIL = [371, 147, 58, 23, 9, 3]


def heads(counts, tenths=7, seed=0):
    with seeded(seed):
        return head_classes(torch.tensor(counts), tenths).tolist()


@pytest.mark.parametrize(
    ("counts", "tenths", "head", "size"),
    [
        *(([20, 20, 20, 20, 2, 2, 2], tenths, [0, 1, 2, 3], 20) for tenths in (1, 5, 9)),
        *(([1, 20, 1], tenths, [1], 20) for tenths in (1, 5, 9)),
        *(([20, 20, 20], 7, [0, 1, 2], 20), ([1], 7, [0], 1)),
        ([3, 341, 7, 34, 158, 15, 73], 7, [1, 3, 4, 5, 6], 90),
        (CORA_TAIL, 7, [0, 1, 2, 3, 4], 90),
    ],
)
def test_head_classes_and_the_size_of_a_prototype(counts, tenths, head, size):
    for seed in range(3):
        assert [
            label for label, is_head in enumerate(heads(counts, tenths, seed)) if is_head
        ] == head
    assert prototype_size(torch.tensor(counts)) == size


def test_citeseer_with_a_long_tail_is_a_coin_flip():
    found = [tuple(heads(CITESEER_TAIL, 6, seed)) for seed in range(100)]
    four, three = ((True,) * many + (False,) * (6 - many) for many in (4, 3))
    assert set(found) == {four, three}
    assert 30 < found.count(four) < 70


@given(st.lists(st.integers(1, 40), min_size=3, max_size=12), st.integers(1, 9))
def test_graded_sizes_have_a_head_and_a_tail(counts, tenths):
    found = torch.tensor(heads(counts, tenths))
    sizes = torch.tensor(counts)
    if len(set(counts)) >= 2:
        assert sizes[found].min() > sizes[~found].max()
    else:
        assert found.all()


# The four sets.


@pytest.fixture
def sets(monkeypatch):
    """Gives how many labelled nodes are in HH, HT, TH and TT; nothing is trained."""
    found = []

    def count(self, task, propagated, classes, high):
        own = task.train & torch.isin(task.graph.y, classes)
        found.extend([int((own & high).sum()), int((own & ~high).sum())])
        return self._classifier(classes.numel(), propagated.device)

    def zeros(embeddings, probabilities, *args, **options):
        return embeddings.new_zeros(probabilities.shape[1], embeddings.shape[1])

    monkeypatch.setattr(LTE4G, "_train_side", count)
    monkeypatch.setattr(lte4g, "class_prototypes", zeros)

    def get(task, **fields):
        found.clear()
        LTE4G(hidden=1, max_epochs=0, **fields).fit(task, seed=0)
        return tuple(found)

    return get


@pytest.mark.parametrize(
    ("name", "ratio", "expected"),
    [
        ("cora", 0.1, [(8, 72, 2, 4), (20, 60, 0, 6), (22, 58, 2, 4)]),
        ("cora", 0.05, [(8, 72, 1, 2), (20, 60, 0, 3), (22, 58, 1, 2)]),
        ("citeseer", 0.1, [(8, 52, 1, 5), (4, 56, 1, 5), (9, 51, 0, 6)]),
        ("pubmed", 0.1, [0, 0, 0]),  # no rare node of high degree
        ("pubmed", 0.05, [0, 0, 0]),
    ],
)
def test_the_four_sets_of_the_published_splits(real_graph, sets, name, ratio, expected):
    graph = real_graph(name)
    for minority in (1, 2) if name == "pubmed" else (3,):
        protocol = Step(minority=minority, ratio=ratio)
        found = [sets(protocol(graph, seed=seed)) for seed in (5, 6, 7)]
        assert ([one[2] for one in found] if name == "pubmed" else found) == expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(2, (3, 0, 1, 0)), (3, (1, 2, 0, 1)), (4, (1, 2, 0, 1)), (5, (0, 3, 0, 1))],
)
def test_a_degree_counts_the_node_itself(sets, limit, expected):
    # three neighbours of node 0; a loop and a repeated edge do not count
    pairs = [(0, 1), (1, 0), (0, 2), (0, 3), (3, 3)]
    graph = graph_of(torch.ones(5, 1), pairs, [0, 0, 0, 1, 1])
    assert sets(task_of(graph, [0, 1, 2, 3], [4]), high_degree=limit) == expected


# Stages.

QUICK = {"hidden": 8, "dropout": 0, "max_epochs": 0}


@pytest.fixture
def experts(monkeypatch):
    """Every expert that is trained: its nodes, whom it starts from, what comes out."""
    trained, real = [], LTE4G._train_expert

    def spy(self, learn, choose, num_classes, start):
        trained.append((learn, start, real(self, learn, choose, num_classes, start)))
        return trained[-1][2]

    monkeypatch.setattr(LTE4G, "_train_expert", spy)
    return trained


def surprise(loss):
    return 1 - (-loss).exp()


@pytest.mark.parametrize(
    ("fields", "formula"),
    [
        (  # the factor comes from the mean loss
            {"class_weights": False, "focal_gamma": 2, "focal_alpha": 0.4},
            lambda each, _: 0.4 * surprise(each.mean()) ** 2 * each.mean(),
        ),
        (  # class weights leave alpha out
            {"focal_gamma": 1.5, "focal_alpha": 0.4},
            lambda each, by_class: surprise(each.mean()) ** 1.5 * by_class,
        ),
    ],
)
def test_the_focal_loss_of_stage_one(fields, formula):
    task = task_with(9, 9, 2)
    method = LTE4G(**QUICK | fields).fit(task, seed=0)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))
    each = -logits.log_softmax(1)[nodes, labels]
    by_class = sum(each[labels == label].mean() for label in range(3)) / 3
    expected = formula(each, by_class)
    assert method.history_[0].loss[0] == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("fields", "plain"),
    [
        ({"class_weights": False, "focal_alpha": 1.0}, GCN()),
        ({"class_weights": True}, Reweight(balance=True)),
    ],
)
def test_without_focus_stage_one_is_a_known_method(fields, plain):
    task = small_task()
    settings = {"hidden": 8, "dropout": 0, "max_epochs": 5}
    plain = dataclasses.replace(plain, **settings).fit(task, seed=0)
    method = LTE4G(focal_gamma=0, **settings | fields).fit(task, seed=0)
    assert method.history_[0].loss == pytest.approx(plain.history_[0].loss, rel=1e-4)


def test_reconstruction_has_a_stage_of_its_own_and_a_part_in_the_next():
    # all nodes are joined, so that no pairs are left to draw from
    pairs = [(i, j) for i in range(6) for j in range(i)]
    graph = graph_of(normal(6, 3, dtype=torch.float32), pairs, [0, 1, 0, 1, 0, 1])
    task = task_of(graph, [0, 1, 2, 3], [4, 5])
    settings = QUICK | {"focal_gamma": 0, "reconstruct": True}
    alone, joint, *_ = (history.loss[0] for history in LTE4G(**settings).fit(task, seed=0).history_)
    plain = LTE4G(**settings | {"reconstruct": False}).fit(task, seed=0).history_[0].loss[0]
    assert alone > 1
    assert joint == pytest.approx(plain + 1e-6 * alone, rel=1e-6, abs=0)


def propagated(method, task):
    """Embeddings, and what the classifiers of stages 3 and 4 take."""
    matrix = dense_propagation(task.graph)
    embeddings = dense_conv(method.net_.encoder, task.graph.x, matrix).detach()
    return embeddings, matrix @ embeddings


def answers(classifier, x):
    alone = torch.eye(x.shape[0]).double()
    return dense_linear(classifier.linear, dense_conv(classifier.conv, x, alone))


def test_the_order_of_the_stages(experts):
    task = task_with(8, 8, 3, 3)
    fields = {"expert_epochs": 3, "student_epochs": 4, "pretrain_epochs": 2, "max_epochs": 9}
    method = LTE4G(**QUICK | fields, reconstruct=True).fit(task, seed=0)
    lengths = [history.epochs for history in method.history_]
    assert lengths == [2, 9, 3, 3, 4, 3, 3, 4]
    high_head, low_head, high_tail, low_tail = experts
    assert high_head[1] is None
    assert low_head[1] is high_head[2]
    assert high_tail[1] is None
    assert low_tail[1] is high_tail[2]
    degrees = dense_graph(task.graph).sum(1) + 1
    nodes, labels = labelled(task)
    sizes = [
        int(((labels < 2) == head).logical_and((degrees[nodes] >= 6) == high).sum())
        for head in (True, False)
        for high in (True, False)
    ]
    assert [expert[0].labels.numel() for expert in experts] == sizes
    assert min(sizes) > 0


def test_losses_of_experts_and_students_equal_the_formulas(experts):
    task = task_with(8, 8, 3, 3)
    # so slow that the weights stay, for two epochs of a student
    still = {"learning_rate": 1e-12, "max_epochs": 2, "student_epochs": 2}
    method = LTE4G(**QUICK | still).fit(task, seed=0)
    losses = [history.loss for history in method.history_[1:]]
    x = propagated(method, task)[1]
    nodes, labels = labelled(task)
    high = dense_graph(task.graph).sum(1) + 1 >= 6
    for (_, _, start), (_, _, low) in (experts[:2], experts[2:]):  # one starts from the other
        for one, other in zip(low.parameters(), start.parameters(), strict=True):
            torch.testing.assert_close(one, other)
    for side, first in ((True, 0), (False, 2)):
        own = nodes[(labels < 2) == side]
        places = task.graph.y[own] - (0 if side else 2)
        student = answers(method.students_[side], x[own])
        missed = []
        for part, expert in zip((True, False), experts[first : first + 2], strict=True):
            mine = high[own] == part
            teacher = answers(expert[2], x[own])
            expected = cross_entropy(teacher[mine], places[mine])
            place = first // 2 * 3 + (not part)
            assert losses[place][0] == pytest.approx(expected.item(), rel=1e-5)
            law = teacher[mine].softmax(1)
            apart = (law * (law.log() - student[mine].log_softmax(1))).sum()
            missed.append(apart / (2 * mine.sum()))
        plain = cross_entropy(student, places)
        factors = [1.0, 0.5**0.5, 0.0]
        expected = [plain + a * missed[0] + (1 - a) * missed[1] for a in factors]
        found = losses[first // 2 * 3 + 2]
        assert found == pytest.approx([value.item() for value in expected], rel=1e-5)


def test_later_stages_leave_the_encoder_alone_and_have_a_patience_of_their_own(monkeypatch):
    monkeypatch.setattr(lte4g, "EXPERT_PATIENCE", 5)
    task = task_with(8, 8, 3, 3)
    task = dataclasses.replace(task, val=task.val & (task.graph.y < 2))  # no score for the tail
    fields = {"patience": 1, "max_epochs": 50, "student_epochs": 9}
    method = LTE4G(**QUICK | fields).fit(task, seed=0)
    assert [history.epochs for history in method.history_[-3:]] == [6, 6, 9]
    last = method.history_[-1]
    assert (last.score, last.best_epoch) == ([0.0] * 10, 9)
    assert torch.isfinite(method.predict_proba(task.graph)).all()
    first = LTE4G(**QUICK | fields | {"student_epochs": 0, "expert_epochs": 0}).fit(task, seed=0)
    for one, other in zip(method.net_.parameters(), first.net_.parameters(), strict=True):
        assert torch.equal(one, other)


# Answers.


@pytest.mark.parametrize("counts", [(8, 8, 3, 3), (9, 9, 2), (9, 5, 4, 2)])
def test_only_the_classes_of_a_nodes_side_are_possible(counts):
    task = task_with(*counts)
    method = LTE4G(max_epochs=15, hidden=16, dropout=0).fit(task, seed=0)
    values = method.predict_proba(task.graph).double()
    embeddings, x = propagated(method, task)
    likeness = normalize(embeddings) @ normalize(method.prototypes_.double()).t()
    to_head = method.head_[likeness.argmax(1)]
    assert 0 < to_head.sum() < 150
    for side in (True, False):
        classes = method.head_ == side
        rows = values[to_head == side]
        assert (rows[:, ~classes] == 0).all()
        expected = answers(method.students_[side], x[to_head == side]).softmax(1)
        torch.testing.assert_close(rows[:, classes], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("counts", "sides"), [((9, 9, 2), 2), ((6, 6, 6), 1)])
def test_a_tail_of_one_class_is_a_matter_of_routing_and_equal_classes_have_none(counts, sides):
    task = task_with(*counts)
    method = LTE4G(max_epochs=10).fit(task, seed=0)
    values = method.predict_proba(task.graph)
    assert len(method.students_) == sides
    if sides == 2:
        assert set(values[:, 2].tolist()) == {0, 1}
        assert set(method.history_[-1].loss) == {0.0}
    else:
        assert method.head_.all()
        assert (values > 0).all()


def test_prototypes_of_large_classes_are_plain_means():
    task = task_with(9, 9, 2)
    method = LTE4G(max_epochs=5, hidden=8).fit(task, seed=0)
    embeddings = propagated(method, task)[0]
    nodes, labels = labelled(task)
    means = torch.stack([embeddings[nodes[labels == label]].mean(0) for label in range(3)])
    found = method.prototypes_.double()
    torch.testing.assert_close(found[:2], means[:2], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found[2], means[2], rtol=1e-2)


@pytest.mark.parametrize(("limit", "part"), [(1000, False), (0, True)])
def test_a_set_without_nodes_has_no_expert(experts, limit, part):
    task = task_with(8, 8, 3, 3)
    fields = {"max_epochs": 3, "high_degree": limit, "student_epochs": 2}
    method = LTE4G(**QUICK | fields).fit(task, seed=0)
    assert len(method.history_) == 5
    assert [expert[0].labels.numel() for expert in experts] == [16, 6]
    assert all((expert[0].high == part).all() for expert in experts)
    assert [expert[1] for expert in experts] == [None, None]
    assert torch.isfinite(method.predict_proba(task.graph)).all()
