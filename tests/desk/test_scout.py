"""The quick committee."""

import torch

from evengraph.desk.strategies import fit_members, level, predict_members, scout, stood_for

ROWS = torch.tensor([[0.0, 0], [0, 1], [4, 0], [4, 1], [2, 0.5]])


def test_learns_from_two_labels_and_doubts_the_node_between():
    committee = scout(ROWS, torch.tensor([0, -1, 1, -1, -1]), 2)
    vote = committee.probabilities.mean(0)
    assert vote.argmax(1)[:4].tolist() == [0, 0, 1, 1]
    assert vote.max(1).values.argmin() == 4
    assert torch.allclose(vote.sum(1), torch.ones(5))


def test_a_class_without_labels_gets_no_probability():
    committee = scout(ROWS, torch.tensor([0, -1, 2, -1, -1]), 4)
    assert committee.probabilities[..., [1, 3]].sum() == 0


def test_classes_weigh_the_same_however_many_labels_they_have():
    rows = torch.cat([ROWS[:1].repeat(50, 1), ROWS[2:3], ROWS[4:]])
    labels = torch.tensor([0] * 50 + [1, -1])
    assert abs(float(scout(rows, labels, 2).probabilities.mean(0)[-1, 0]) - 0.5) < 0.1


def test_one_class_is_nothing_to_learn_from():
    assert scout(ROWS, torch.tensor([0, 0, -1, -1, -1]), 2) is None


def test_the_seed_decides_and_members_differ():
    labels = torch.tensor([0, 0, 1, 1, -1])
    first, again, other = (scout(ROWS, labels, 2, seed=s).probabilities for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])


def test_a_label_stands_for_the_nodes_that_it_is_nearest_to(monkeypatch):
    assert stood_for(ROWS, ROWS[[0, 2]]).sum() == 5
    assert stood_for(ROWS, ROWS[[0, 1, 2]]).tolist()[2] == 2
    assert stood_for(ROWS[:1], ROWS[[0, 2]]).tolist() == [1, 1]
    whole = stood_for(ROWS, ROWS[[0, 2]]).tolist()
    monkeypatch.setattr("evengraph.desk.strategies.DISTANCES", 1)  # a row at a time
    assert stood_for(ROWS, ROWS[[0, 2]]).tolist() == whole


def test_crowded_labels_do_not_move_the_border_between_classes():
    line = torch.arange(41.0).unsqueeze(1) / 40  # class 1 begins in the middle
    labels = torch.full((41,), -1)
    labels[[5, 10]], labels[[21, 22, 23, 24, 25, 26, 27, 35]] = 0, 1

    def border(levelled: bool) -> int:
        nodes = (labels >= 0).nonzero().squeeze(1)
        each = stood_for(line, line[nodes])
        model = fit_members(line[nodes], labels[nodes], each.sqrt()[None])
        if levelled:
            model = level(model, line[nodes], labels[nodes], each[None])
        return int((predict_members(line, model)[0].argmax(1) == 0).sum())

    assert abs(border(True) - 20) < abs(border(False) - 20)
