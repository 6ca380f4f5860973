"""Pictures and parts of pages."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch
from small_desk import make_desk

import evengraph as eg
from evengraph.desk import LearningCurve
from evengraph.desk.curve import Point, curve_chart
from evengraph.desk.label_file import LABEL
from evengraph.desk.pages import neighbours, node_page, queue_page, why
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


def made(*, measured=((10, 60), (20, 70)), now=(30, 75), expected=((50, 80), (130, 85)), spread=4):
    def point(pair):
        labels, score = pair
        return Point(labels=labels, score=score, low=score - spread, high=score + spread)

    return LearningCurve(
        measured=tuple(map(point, measured)),
        now=point(now),
        expected=tuple(map(point, expected)),
        advice="Go on.",
        enough=False,
    )


@pytest.mark.parametrize("spread", [0, 4, 20])
def test_the_curve_is_inside_its_chart_and_told_in_words(spread):
    svg = ElementTree.fromstring(f"<p>{curve_chart(made(spread=spread))}</p>").find("div/svg")
    drawn = (
        svg.find(".//path").get("d")[1:].split("L"),
        svg.find(".//polygon").get("points").split(),
    )
    points, band = (
        [tuple(map(float, pair.replace(",", " ").split())) for pair in line] for line in drawn
    )
    assert all(0 <= x <= 1000 and -100 <= y <= 1000 for x, y in (*points, *band))
    assert len(list(svg.iter("circle"))) == 3
    assert points == sorted(points)  # more labels are further right, better scores higher
    assert points == sorted(points, key=lambda p: -p[1])
    assert svg.get("aria-label") == "Balanced accuracy 75 with 30 labels now, about 85 with 130."


def test_a_flat_curve_can_be_drawn():
    flat = made(measured=((10, 100), (20, 100)), now=(30, 100), expected=((50, 100),), spread=0)
    assert "nan" not in curve_chart(flat)
    assert "nan" not in curve_chart(made(measured=((1, 0),), now=(2, 0), expected=(), spread=0))
