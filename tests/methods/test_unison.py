"""Unison: independent members, their penalties, their best epochs, and the vote."""

import signal

import pytest
import torch

from evengraph.methods import unison as module
from evengraph.methods.unison import Unison, vote_weights
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.members import Members, Views
from evengraph.pipeline.model_info import load_model
from evengraph.testing.contract import with_graph
from small_graphs import small_task

QUICK = {"max_epochs": 40, "hidden": 8}


def test_probabilities_are_the_weighted_mean_of_the_members():
    task = small_task()
    model = Unison(**QUICK).fit(task, seed=0)
    committee = model.predict_members(task.graph)
    assert committee.probabilities.shape == (10, task.graph.num_nodes, task.num_classes)
    expected = torch.einsum("m,mnc->nc", committee.weights, committee.probabilities)
    torch.testing.assert_close(model.predict_proba(task.graph), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(committee.weights.sum(), torch.tensor(1.0))


def scores_of_members(model, task):
    """Validation scores of the members, which are those that the votes rest on."""
    probabilities, weights = model.predict_members(task.graph)
    scores = torch.stack([validation_score(part, task) for part in probabilities])
    counts = torch.tensor(task.val_counts).float()
    torch.testing.assert_close(weights, vote_weights(scores, counts), rtol=1e-3, atol=1e-4)
    return scores


def test_members_are_as_good_as_their_votes_say():
    task = small_task()
    model = Unison(**QUICK).fit(task, seed=0)
    scores = scores_of_members(model, task)
    history = model.history_[-1]
    torch.testing.assert_close(torch.tensor(history.score[-1]), scores.mean())
    assert history.best_epoch == history.score.index(max(history.score))
    assert history.best_score == float(validation_score(model.predict_proba(task.graph), task))


def test_an_interrupt_leaves_weights_and_scores_together(monkeypatch):
    task, take, calls = small_task(), Members.take, []

    def interrupted(self, other, which):
        calls.append(which)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        take(self, other, which)

    monkeypatch.setattr(Members, "take", interrupted)
    model = Unison(**QUICK).fit(task, seed=0)
    assert model.history_[-1].interrupted
    assert calls[-1].any()
    scores_of_members(model, task)


def test_members_do_not_influence_each_other(monkeypatch):
    task, build = small_task(), Unison._build_network
    method = Unison(views="ego", members=2, dropout=0.0, **QUICK)
    before = method.fit(task, seed=0).predict_members(task.graph).probabilities

    def with_another_first_member(self):
        net = build(self)
        net.members.second.data[0] *= 3
        return net

    monkeypatch.setattr(Unison, "_build_network", with_another_first_member)
    after = method.fit(task, seed=0).predict_members(task.graph).probabilities
    assert not torch.allclose(before[0], after[0], atol=1e-2)
    torch.testing.assert_close(before[1], after[1])


def test_few_labels_are_penalised_more():
    model = Unison(weight_decay=2.0, members=3, views="ego,structural")
    expected = torch.tensor([0.005, 0.02, 0.08, 0.005, 0.02, 0.08])
    torch.testing.assert_close(model.weight_decays(100), expected)
    torch.testing.assert_close(model.weight_decays(10), 10 * model.weight_decays(100))
    torch.testing.assert_close(Unison(members=1, views="ego").weight_decays(1), torch.tensor([2.0]))


def test_the_size_follows_the_labels_unless_it_is_given(monkeypatch):
    task, model = small_task(), Unison(hidden=8, max_epochs=2)
    assert model.size == (5, 8, 256)  # before a fit, as with few labels
    assert model.fit(task, seed=0).size == (5, 8, 256)
    monkeypatch.setattr(module, "MANY", 2)  # the rarest class has two
    assert model.size == (3, 8, 128)
    assert model.fit(task, seed=0).net_.members.second.shape[:2] == (6, 8)
    assert Unison(members=1, hidden=2, components=3).size == (1, 2, 3)


def test_without_validation_weights_are_the_mean_of_the_second_half(monkeypatch):
    task, average, seen = small_task(), module._Training._average, []

    def spy(self):
        seen.append([part.detach().clone() for part in self.members.parameters()])
        average(self)

    monkeypatch.setattr(module._Training, "_average", spy)
    model = Unison(max_epochs=9, patience=1, hidden=8, stop_early=False).fit(task, seed=0)
    assert model.history_[0].epochs == 9
    later = seen[5:]  # of ten states, the untrained one included
    means = [torch.stack(parts).mean(0) for parts in zip(*later, strict=True)]
    for found, expected in zip(model.net_.members.parameters(), means, strict=True):
        torch.testing.assert_close(found.detach(), expected)
    torch.testing.assert_close(model.net_.votes, torch.full((10,), 0.1))
    flipped = with_graph(task, y=torch.where(task.val, (task.graph.y + 1) % 3, task.graph.y))
    other = Unison(max_epochs=9, hidden=8, stop_early=False).fit(flipped, seed=0)
    assert torch.equal(other.predict_proba(task.graph), model.predict_proba(task.graph))


def test_fits_to_one_graph_share_its_views(monkeypatch):
    task, rows, calls = small_task(), Views._rows, []
    monkeypatch.setattr(Views, "_rows", lambda *a, **b: calls.append(b) or rows(*a, **b))
    models = [Unison(max_epochs=2, hidden=8).fit(task, seed=seed) for seed in (0, 0, 1)]
    first, second, other = (model.net_.views(task.graph) for model in models)
    assert len(calls) == 1
    assert first is second is other
    alone = Unison(max_epochs=2, hidden=8).fit(with_graph(task, x=task.graph.x.clone()), seed=0)
    torch.testing.assert_close(alone.net_.views(task.graph), first)
    assert [call["fit"] for call in calls] == [True, True]
    task.graph.x.mul_(2)
    assert not torch.equal(models[0].net_.views(task.graph), first)


@pytest.mark.parametrize("batch", [4, 10_000])
def test_batches(batch):
    task = small_task()
    model = Unison(batch=batch, **QUICK).fit(task, seed=0)
    assert model.predict_proba(task.graph).isfinite().all()


def test_few_validation_nodes_leave_the_vote_nearly_even():
    scores = torch.tensor([0.8, 0.75, 0.7])
    few = vote_weights(scores, torch.tensor([2.0, 2.0]))
    many = vote_weights(scores, torch.tensor([5_000.0, 5_000.0]))
    assert few.max() < 0.45
    assert many[0] > 0.999
    error = (0.8 * 0.2 * (1 / 50 + 1 / 50)) ** 0.5 / 2
    behind = vote_weights(torch.tensor([0.8, 0.8 - error]), torch.tensor([50.0, 50.0]))
    torch.testing.assert_close(behind[0] / behind[1], torch.tensor(torch.e), rtol=1e-4, atol=0)


def test_the_vote_can_be_even():
    model = Unison(vote="even", **QUICK).fit(small_task(), seed=0)
    torch.testing.assert_close(model.net_.votes, torch.full((10,), 0.1))
    with pytest.raises(ValueError, match="vote must be"):
        Unison(vote="loud")


def test_scale_of_features_does_not_break_training():
    task = small_task()
    task.graph.x = 1e4 * task.graph.x
    model = Unison(**QUICK).fit(task, seed=0)
    assert model.score(task) > 1.5 / task.num_classes


def test_views_must_be_known():
    with pytest.raises(ValueError, match="views must be some of"):
        Unison(views="structural,magic")
    with pytest.raises(ValueError, match="views must be some of"):
        Unison(views="")
    with pytest.raises(ValueError, match="views"):
        Unison(views="ego,ego")


def test_nodes_of_another_graph_are_predicted():
    task = small_task()
    model = Unison(**QUICK).fit(task, seed=0)
    one = task.graph.subgraph(torch.tensor([0]))
    assert model.predict_proba(one).shape == (1, task.num_classes)


def test_relations_are_saved_with_the_model(tmp_path):
    task = small_task()
    source, target = task.graph.edge_index
    index = torch.stack([(source > target).long(), source, target])
    related = with_graph(task, relation_index=index, num_relations=2)
    model = Unison(max_epochs=4).fit(related, seed=0)
    expected = model.predict_proba(related.graph)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(related.graph), expected)
    swapped = with_graph(related, relation_index=index[[0, 2, 1]])
    assert not torch.equal(loaded.predict_proba(swapped.graph), expected)
    with pytest.raises(ValueError, match="num_relations must be 2 as in training, got 0"):
        loaded.predict_proba(task.graph)
