"""Pictures and parts of pages."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch
from small_desk import make_desk

import evengraph as eg
from evengraph.desk import LearningCurve
from evengraph.desk.curve import Point
from evengraph.desk.label_file import LABEL
from evengraph.desk.pages import more_labels, neighbours, node_page, queue_page, why
from evengraph.desk.server import Session
from evengraph.pipeline.explanation import Influence


@pytest.fixture
def desk(tmp_path):
    made = make_desk(tmp_path)
    yield made
    made.close()


def test_labelled_neighbours_come_first_with_what_is_known_of_them(desk):
    near = neighbours(desk, 7)
    assert {row for row, _ in near} == {int(o) for o in desk.nodes.adjacency[[7]].indices}
    known = [desk.nodes.labels[row] >= 0 for row, _ in near]
    assert known == sorted(known, reverse=True)
    for (row, words), labelled in zip(near, known, strict=True):
        assert words.startswith("labelled ") == labelled
        name = words.removeprefix("labelled ") if labelled else words.rpartition(" ")[0]
        assert name in desk.classes, row
    assert neighbours(desk, 59) == []  # it has no edges


def test_classes_that_only_the_model_knows_are_named(desk):
    classes = ("gone", *desk.ranking.classes)
    probabilities = torch.tensor([[1.0, 0, 0]]).expand(60, 3)
    desk.ranking = desk.ranking._replace(probabilities=probabilities, classes=classes)
    words = [words for row, words in neighbours(desk, 7) if desk.nodes.labels[row] < 0]
    assert words
    assert set(words) == {"gone 100%"}


@pytest.mark.parametrize("hidden", [False, True])
def test_the_guess_is_hidden_until_a_node_is_answered(tmp_path, hidden):
    desk = make_desk(tmp_path, labelled=20, hide_guess=hidden)
    session = Session(id="s", who="ana", form_token="t")
    row, other, *_ = desk.waiting()
    guess = "{} {:.0%}".format(*max(desk.thought(row).items(), key=lambda item: item[1]))
    pages = (node_page(desk, session, row), queue_page(desk, session))
    assert ['class="share"' in pages[0], desk.queue[row] in pages[1]] == [not hidden] * 2
    assert (guess in pages[1]) == (not hidden)
    desk.answer(row, LABEL, "fraud", who="ana", session="s")
    assert 'class="share"' in node_page(desk, session, row)
    assert (f"fraud; the model: {guess}" in node_page(desk, session, other)) == hidden
    desk.close()


def test_an_explanation_is_drawn_with_links_to_labelled_nodes():
    task = eg.testing.small_task(num_classes=2)
    model = eg.METHODS["logistic"]().fit(task, seed=0)
    explanation = eg.explain(model, task.graph, 3)
    part = Influence(node=7, id="<i>7", label=1, distance=None, contribution=0.5)
    explanation = replace(explanation, labelled=(part,))
    text = why(explanation)
    page = ElementTree.fromstring(text)
    assert len(list(page.iter("{http://www.w3.org/2000/svg}circle"))) > 1
    assert "style=" not in text  # which the policy of the desk forbids
    link = page.find(".//a")
    assert (link.get("href"), link.text) == ("/node/7", "<i>7")
    assert "no path; supports " in text
    assert "no trained model yet" in why(None)


def test_what_more_labels_would_bring_is_a_table(desk):
    def point(labels, score):
        return Point(labels=labels, score=score, low=score - 4, high=score + 4)

    now, later = point(30, 75.0), (point(50, 80.0), point(130, 85.0))
    found = LearningCurve(now=now, expected=later, advice="Go on.", enough=False)
    desk.curve = found
    (part,) = more_labels(desk)
    assert "Go on." in part
    for words in (">30<", ">75%<", ">81 to 89<"):
        assert words in part
