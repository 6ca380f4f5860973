"""NetworkMethod: what it takes of a graph, where it validates, pretraining."""

import copy
from dataclasses import dataclass

import pytest
import torch
from oracles import check_chosen, dense_logits, dense_propagation
from torch.nn.functional import cross_entropy

from evengraph.methods import GraphSMOTE
from evengraph.methods.bases.network import NetworkMethod
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import EdgeDecoder, Inputs, Reconstruction
from evengraph.ops.losses import ClassTerms
from evengraph.ops.sparse import undirected_adjacency
from small_graphs import small_task


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


def test_it_validates_on_the_graph_that_it_trains_on():
    task = small_task()
    check_chosen(Plain(max_epochs=20).fit(task, seed=0), task)


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


@pytest.mark.parametrize("epochs", [0, 4])
def test_pretraining_lasts_its_epochs(epochs):
    method = Pretrained(epochs=epochs, patience=1).fit(small_task(), seed=0)
    assert [history.epochs for history in method.history_] == [epochs] * bool(epochs)


def test_pretraining_is_bounded_like_every_stage():
    method = Pretrained(epochs=4, max_epochs=2).fit(small_task(), seed=0)
    assert method.history_[0].epochs == 2


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
