import pytest
import torch
from small_desk import make_desk

from evengraph.desk import pages as module
from evengraph.desk.pages import neighbourhood


@pytest.fixture
def desk(tmp_path):
    made = make_desk(tmp_path)
    yield made
    made.close()


def test_neighbours_and_theirs_are_around_the_node(desk):
    dots, edges, count = neighbourhood(desk, 7)
    near = {int(other) for other in desk.nodes.adjacency[[7]].indices}
    assert {dot.row for dot in dots if dot.ring == 1} == near
    assert count == len(near)
    assert dots[0].row == 7
    assert len({dot.row for dot in dots}) == len(dots)
    for a, b in edges:
        assert desk.nodes.adjacency[dots[a].row, dots[b].row]
    assert all((0, place) in edges for place, dot in enumerate(dots) if dot.ring == 1)


def test_labels_are_told_from_guesses(desk):
    dots, _, _ = neighbourhood(desk, 7)
    for dot in dots:
        labelled = desk.nodes.labels[dot.row] >= 0
        assert (dot.probability is None) == labelled
        assert desk.classes[dot.number] == dot.name


def test_labelled_neighbours_are_drawn_first(desk, monkeypatch):
    row = next(r for r in range(60) if (desk.nodes.adjacency[[r]].indices < 6).sum() == 1)
    monkeypatch.setattr(module, "INNER", 1)
    dots, _, count = neighbourhood(desk, row)
    assert [dot.probability for dot in dots if dot.ring == 1] == [None]
    assert count > 1


def test_a_lone_node_is_alone(desk):
    dots, edges, count = neighbourhood(desk, 59)
    assert (len(dots), edges, count) == (1, [], 0)


def test_a_class_that_only_the_model_knows_is_drawn(desk):
    classes = ("gone", *desk.ranking.classes)
    probabilities = torch.tensor([[1.0, 0, 0]]).expand(60, 3)
    desk.ranking = desk.ranking._replace(probabilities=probabilities, classes=classes)
    dots, _, _ = neighbourhood(desk, 7)
    assert (dots[0].name, desk.classes[dots[0].number]) == ("gone", "gone")
