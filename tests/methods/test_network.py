"""What methods on the shared network have in common: inputs, copies, margins, self-training."""

import copy
from dataclasses import dataclass
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    DENSE,
    as_dense,
    by_conflict,
    check_chosen,
    check_losses,
    dense_graph,
    dense_logits,
    dense_propagation,
    first_loss,
    labelled,
    task_with,
)
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.datasets import toy
from evengraph.fast.replicas import share_batch
from evengraph.methods import (
    BalancedSoftmax,
    DoubleBalancing,
    GraphENS,
    GraphSMOTE,
    IceBerg,
    Oversampling,
    ReNode,
)
from evengraph.methods.bases.network import (
    WARMUP,
    EnlargedGraph,
    NetworkMethod,
    above_mean,
    pseudo_label_loss,
)
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import EdgeDecoder, Inputs, Reconstruction
from evengraph.ops.losses import ClassTerms, NamedLoss, soft_labels, topology_margins
from evengraph.ops.sparse import propagation_matrix, undirected_adjacency
from evengraph.training.loop import RECORD_AFTER
from small_graphs import edge_lists, graph_of, small_task, task_of


@dataclass(kw_only=True)
class Plain(NetworkMethod):
    """Trains on a graph, and validates on what it is told to."""

    validation = None

    def _fit(self, task):
        inputs, labels = self._inputs(task.graph), task.graph.y[task.train]
        self._fit_network(
            task,
            inputs,
            lambda logits: cross_entropy(logits[task.train], labels),
            self.validation,
        )


@dataclass(kw_only=True)
class Pretrained(NetworkMethod):
    """Learns edges alone."""

    epochs: int = 4

    def _fit(self, task):
        graph = task.graph
        self.net_ = self._new_network()
        self.decoder_ = EdgeDecoder(self.hidden)
        self.start_ = copy.deepcopy([self.net_, self.decoder_])
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        loss = Reconstruction(matrix, graph.x.device)
        self._pretrain(self._inputs(graph), self.decoder_, loss, self.epochs)


def test_class_terms_reach_loss_and_prediction():
    @dataclass(kw_only=True)
    class Adjusted(NetworkMethod):
        def _class_terms(self, class_counts):
            return ClassTerms(torch.tensor([1.0, 2, 3]), class_counts.log(), class_counts.float())

    task = small_task()
    method = Adjusted(max_epochs=0, dropout=0).fit(task, seed=0)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph)).detach()
    counts, nodes = task.class_counts.double(), task.train
    weights = torch.tensor([1.0, 2, 3], dtype=torch.float64)
    expected = cross_entropy(logits[nodes] + counts.log(), task.graph.y[nodes], weights)
    assert method.history_[0].loss[0] == pytest.approx(float(expected), rel=1e-5)
    values = method.predict_proba(task.graph).double()
    torch.testing.assert_close(values, (logits - counts).softmax(1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("how", ["row", "symmetric"])
def test_the_answer_equals_the_formula(how):
    task = small_task()
    method = Plain(hidden=5, max_epochs=3, normalisation=how).fit(task, seed=0)
    matrix = dense_propagation(task.graph, how)
    torch.testing.assert_close(
        method._inputs(task.graph).propagation.matrix.to_dense().double(), matrix
    )
    expected = dense_logits(method.net_, task.graph.x, matrix).softmax(1)
    values = method.predict_proba(task.graph).double()
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)


def test_the_field_of_the_width_reaches_the_network():
    net = Plain(hidden=7, max_epochs=0).fit(small_task(), seed=0).net_
    assert net.encoder.weight.shape == (64, 7)
    assert net.classifier.conv.weight.shape == (7, 7)
    assert net.classifier.linear.weight.shape == (3, 7)


def test_dropout_is_for_training_alone():
    task = small_task()
    losses = {
        rate: Plain(dropout=rate, max_epochs=0).fit(task, seed=0).history_[0]
        for rate in (0, 0.5, 0.9)
    }
    assert len({history.loss[0] for history in losses.values()}) == 3
    assert len({history.score[0] for history in losses.values()}) == 1


def test_it_validates_elsewhere_if_asked_to():
    task = small_task()
    method = Plain(max_epochs=20)
    inputs = method._inputs(task.graph)
    # more nodes than the graph has, and no features to tell them apart
    more = small_task(num_nodes=200).graph
    method.validation = Inputs(torch.zeros_like(more.x), method._inputs(more).propagation)
    method.fit(task, seed=0)
    with torch.no_grad():
        there = validation_score(method.net_(*method.validation)[:150], task)
        here = validation_score(method.net_(*inputs), task)
    assert method.history_[0].best_score == pytest.approx(float(there))
    assert float(there) != pytest.approx(float(here))


@pytest.mark.parametrize(("epochs", "most", "lengths"), [(0, 9, []), (4, 9, [4]), (4, 2, [2])])
def test_pretraining_lasts_its_epochs_within_the_limit(epochs, most, lengths):
    method = Pretrained(epochs=epochs, patience=1, max_epochs=most).fit(small_task(), seed=0)
    assert [history.epochs for history in method.history_] == lengths


def test_pretraining_moves_the_encoder_and_the_decoder_alone():
    method = Pretrained().fit(small_task(), seed=0)
    before, decoder = method.start_
    assert not torch.equal(method.net_.encoder.weight, before.encoder.weight)
    assert not torch.equal(method.decoder_.weight, decoder.weight)
    now, then = (net.classifier.state_dict() for net in (method.net_, before))
    assert all(torch.equal(now[name], then[name]) for name in then)


def test_pretraining_learns_which_nodes_are_joined():
    method = Pretrained(epochs=60, dropout=0).fit(small_task(), seed=0)
    losses = method.history_[0].loss
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5])
    assert method.history_[0].best_epoch == 60


def test_an_interrupt_before_classes_are_learnt_leaves_nothing():
    def stop(history):
        if not history.main:
            raise KeyboardInterrupt

    method = GraphSMOTE(max_epochs=3)
    with pytest.raises(KeyboardInterrupt):
        method.fit(small_task(), seed=0, on_epoch=stop)
    assert not method.is_fitted


@dataclass(kw_only=True)
class Shifted(Oversampling):
    """Copies whose features are one more than those of their originals."""

    def _new_features(self, x, labels, copies):
        return x[copies.positions] + 1


def blocks(matrix, seeds):
    """[P, P[:, S]; P[S, :], P[S, S]]."""
    upper = torch.cat([matrix, matrix[:, seeds]], dim=1)
    lower = torch.cat([matrix[seeds], matrix[seeds][:, seeds]], dim=1)
    return torch.cat([upper, lower])


def enlarged(graph, seeds, how="row", sound=False):
    copies = EnlargedGraph(graph.x[:0], torch.as_tensor(seeds))
    propagation = Oversampling(normalisation=how)._propagation(graph)
    matrix = copies.normalised(graph, how) if sound else copies.repeated(propagation)
    return as_dense(matrix).double()


@st.composite
def graphs_and_seeds(draw):
    edge_index, num_nodes = draw(edge_lists())
    seeds = draw(st.lists(st.integers(0, num_nodes - 1), max_size=6))
    return Data(x=torch.zeros(num_nodes, 1), edge_index=edge_index), torch.tensor(seeds).long()


@given(graphs_and_seeds(), st.sampled_from(["row", "symmetric"]))
def test_rows_and_columns_of_the_normalised_matrix_are_repeated(drawn, how):
    graph, seeds = drawn
    expected = blocks(DENSE[how](dense_graph(graph)), seeds)
    torch.testing.assert_close(enlarged(graph, seeds, how), expected)


@given(graphs_and_seeds(), st.sampled_from(["row", "symmetric"]))
def test_where_sound_the_graph_is_enlarged_and_then_normalised(drawn, how):
    graph, seeds = drawn
    looped = blocks(dense_graph(graph) + torch.eye(graph.num_nodes), seeds)
    expected = DENSE[how](looped - torch.eye(looped.shape[0]))
    found = enlarged(graph, seeds, how, sound=True)
    torch.testing.assert_close(found, expected)
    if how == "row":
        torch.testing.assert_close(found.sum(1), torch.ones(found.shape[0], dtype=found.dtype))


def test_copies_by_hand():
    x = torch.tensor([[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10]])
    graph = graph_of(x, [(1, 2), (2, 3)], [0, 0, 1, 0, 1])
    method = Oversampling(max_epochs=0).fit(task_of(graph, [0, 1, 2], [3, 4]), seed=0)
    repeated = method.enlarged_.repeated(method._propagation(graph))
    inputs = method.enlarged_.with_copies(graph, repeated)
    assert torch.equal(inputs.x, torch.cat([x, x[2:3]]))
    a, b = 1 / 2, 1 / 3
    expected = [
        [1, 0, 0, 0, 0, 0],
        [0, a, a, 0, 0, a],
        [0, b, b, b, 0, b],
        [0, 0, a, a, 0, a],
        [0, 0, 0, 0, 1, 0],
        [0, b, b, b, 0, b],
    ]
    torch.testing.assert_close(as_dense(inputs.propagation), torch.tensor(expected))


def dense_inputs(method, task, seeds):
    """Features and propagation of the enlarged graph."""
    x = torch.cat([task.graph.x, task.graph.x[seeds] + 1])
    if method.sound:
        size = task.graph.num_nodes
        looped = blocks(dense_graph(task.graph) + torch.eye(size), seeds)
        return x, DENSE[method.normalisation](looped - torch.eye(looped.shape[0]))
    return x, blocks(dense_propagation(task.graph, method.normalisation), seeds)


@pytest.mark.parametrize("sound", [False, True])
@pytest.mark.parametrize(
    ("how", "backbone"), [("row", "gcn"), ("symmetric", "gcn"), ("row", "sage"), ("row", "gat")]
)
@pytest.mark.parametrize("times", [1, 2])
def test_copies_join_the_training_nodes(sound, how, backbone, times):
    task = small_task()
    nodes, labels = labelled(task)
    rare = nodes[labels == 2]
    seeds = rare.repeat(times)
    fields = {"sound": sound, "normalisation": how, "backbone": backbone, "dropout": 0}
    method = Shifted(copies=times, max_epochs=4, **fields)
    x, matrix = dense_inputs(method, task, seeds)
    rows = torch.cat([nodes, torch.arange(seeds.numel()) + task.graph.num_nodes])
    labels = torch.cat([labels, torch.full_like(seeds, 2)])
    start, _ = first_loss(method, task)
    check_losses(
        method,
        task,
        start.net_,
        lambda net: cross_entropy(dense_logits(net, x, matrix)[rows], labels),
    )


@pytest.mark.parametrize("sound", [False, True])
def test_the_training_graph_is_predicted_with_its_copies_unless_sound(sound):
    task = small_task()
    method = Shifted(max_epochs=3, sound=sound).fit(task, seed=0)
    nodes, labels = labelled(task)
    large = dense_logits(method.net_, *dense_inputs(method, task, nodes[labels == 2]))[:150]
    plain = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))
    assert not torch.allclose(large.softmax(1), plain.softmax(1), atol=1e-4)
    expected = (plain if sound else large).softmax(1)
    values = method.predict_proba(task.graph).double()
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sound", [False, True])
def test_it_validates_on_what_it_predicts_with(sound):
    task = small_task()
    method = Shifted(max_epochs=20, copies=20, sound=sound).fit(task, seed=0)
    check_chosen(method, task)
    # in the other graph the same weights score otherwise
    nodes, labels = labelled(task)
    plain = task.graph.x, dense_propagation(task.graph)
    large = dense_inputs(Shifted(), task, nodes[labels == 2].repeat(20))
    other = dense_logits(method.net_, *(large if sound else plain))[:150]
    score = validation_score(other, task)
    assert method.history_[0].best_score != pytest.approx(float(score), abs=1e-3)


@pytest.mark.parametrize("sound", [False, True])
def test_another_graph_is_predicted_as_it_is(sound):
    task = small_task()
    method = Shifted(max_epochs=3, sound=sound).fit(task, seed=0)
    fewer = task.graph.clone()
    fewer.edge_index = fewer.edge_index[:, 2:]
    for graph in (fewer, toy(90, 200, 64, 3, seed=9)):
        expected = dense_logits(method.net_, graph.x, dense_propagation(graph)).softmax(1)
        values = method.predict_proba(graph).double()
        torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("counts", "fields", "added"),
    [
        ((9, 9, 2), {}, 2),
        ((9, 9, 2), {"copies": 3}, 6),
        ((9, 9, 2), {"copies": 0}, 7),
        ((9, 9, 2), {"minority": 2}, 11),
        ((9, 4, 1), {}, 1),
        ((9, 4, 1), {"copies": 0, "minority": 1}, 13),
        ((5, 5, 5), {}, 0),
        ((5, 5, 5), {"minority": 1}, 5),
    ],
)
def test_how_many_nodes_are_added(counts, fields, added):
    method = Shifted(max_epochs=0, **fields).fit(task_with(*counts), seed=0)
    assert method.enlarged_.new.shape == (added, 64)
    assert method.enlarged_.originals.shape == (added,)


def test_too_many_rare_classes_are_refused():
    with pytest.raises(ValueError, match="minority must be below the 3 classes, got 4"):
        Shifted(minority=4).fit(small_task(), seed=0)


BASES = [BalancedSoftmax, ReNode, GraphENS]


def losses(kind, task, epochs=WARMUP + 4, **fields):
    fields = {"dropout": 0.0, "max_epochs": epochs, "patience": epochs} | fields
    return kind(**fields).fit(task, seed=0).history_[0].loss


@pytest.mark.parametrize("kind", BASES)
def test_it_begins_after_the_first_epochs(kind):
    task = small_task()
    plain, ours = losses(kind, task), losses(kind, task, margin="tam")
    assert ours[:WARMUP] == plain[:WARMUP]
    assert ours[WARMUP] != plain[WARMUP]


@pytest.mark.parametrize("kind", BASES)
def test_without_strength_it_is_the_method_alone(kind):
    task = small_task()
    strengths = {"tam_connectivity": 0.0, "tam_distribution": 0.0}
    ours = losses(kind, task, margin="tam", **strengths)
    assert ours == pytest.approx(losses(kind, task), rel=1e-5)


@pytest.mark.parametrize("kind", [BalancedSoftmax, ReNode])
def test_one_node_in_every_class_is_as_usual(kind):
    task = task_with(1, 1, 1)
    assert losses(kind, task, margin="tam") == pytest.approx(losses(kind, task), rel=1e-4)


def test_margins_are_those_of_the_formula():
    task = small_task()
    graph, nodes = task.graph, task.train.nonzero().squeeze(1)
    method = BalancedSoftmax(margin="tam", tam_connectivity=1.5, tam_temperature=0.8)
    margins = method._margins(task)
    stream = torch.Generator().manual_seed(0)
    for epoch in range(WARMUP + 2):
        logits = torch.randn(graph.num_nodes, 3, generator=stream)
        found = margins(logits)
        if epoch < WARMUP:
            assert not found.any()
    classes = soft_labels(logits, nodes, graph.y[nodes], task.class_counts, 0.8)
    matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
    around = (propagation_matrix(matrix, graph.x.device, how="row") @ classes)[nodes]
    expected = topology_margins(around, graph.y[nodes], 1.5, 0.5)
    torch.testing.assert_close(found, expected)
    assert found.shape == (nodes.numel(), 3)


def test_a_margin_is_trained_alone():
    assert share_batch(BalancedSoftmax(), BalancedSoftmax())
    assert not share_batch(BalancedSoftmax(margin="tam"), BalancedSoftmax(margin="tam"))
    assert RECORD_AFTER > WARMUP  # margins are there when an epoch is recorded


def test_trusted_are_those_above_the_mean():
    confidence = torch.tensor([0.9, 0.6, 0.75, 0.5])  # their mean is 0.6875
    assert above_mean(confidence).tolist() == [True, False, True, False]
    for equal in (0.5, 0.1, 1 / 3, 0.7):
        assert above_mean(torch.full((1001,), equal)).all()


def test_those_that_do_not_count_change_nothing():
    logits = torch.randn(6, 3, generator=generator(0)).requires_grad_()
    predicted = torch.tensor([0, 1, 2, 0, 1, 1])
    counted = torch.tensor([True, True, False, True, False, True])  # nobody of class 2
    loss = pseudo_label_loss(logits, predicted, counted)
    shifted = logits[counted][:, :2] + torch.tensor([2.0, 2.0]).log()
    torch.testing.assert_close(loss, cross_entropy(shifted, predicted[counted]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.isfinite().all()
    assert (gradient[~counted] == 0).all()
    assert (gradient[:, 2] == 0).all()


@pytest.mark.parametrize("kind", [DoubleBalancing, IceBerg])
@pytest.mark.parametrize("loss", get_args(NamedLoss))
def test_both_losses_are_means_balanced_by_their_own_sizes(kind, loss):
    task = task_with(9, 6, 2)
    method, found = first_loss(kind(loss=loss, pseudo_weight=0.7), task)
    nodes, labels = labelled(task)
    logits = method._logits(task.graph).detach().double()
    others = (~task.train).nonzero().flatten()
    confidence, predicted = logits.softmax(1)[others].max(1)
    trusted = confidence >= confidence.mean()
    sizes = torch.bincount(predicted[trusted], minlength=3).double()
    on_labels = logits[nodes]
    if loss == "balanced_softmax":
        on_labels = on_labels + task.class_counts.double().log()
    each = cross_entropy(on_labels, labels, reduction="none")
    if loss in ("reweight", "renode"):
        each = each * (17 / 3 / task.class_counts)[labels]
    if loss == "renode":
        each = each * by_conflict(task)
    expected = each.mean()
    shifted = logits[others][trusted] + sizes.log()
    expected = expected + 0.7 * cross_entropy(shifted, predicted[trusted])
    assert found == pytest.approx(float(expected), rel=1e-4)
