import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

import evengraph as eg
from evengraph.desk.pages import why
from evengraph.pipeline.explanation import Influence


@pytest.fixture(scope="module")
def explanation():
    task = eg.testing.small_task(num_classes=2)
    model = eg.METHODS["logistic"]().fit(task, seed=0)
    ids = tuple(f"<i>{row}" for row in range(task.graph.num_nodes))
    return eg.explain(model, task.graph, 3, task=task, ids=ids)


def test_parts_are_bars_for_and_against(explanation):
    page = ElementTree.fromstring(why(explanation))
    names = [line[0].text for line in page.iter("li")]
    assert len(names) >= len(explanation.columns)
    kinds = [rect.get("class") for rect in page.iter("rect")]
    parts = [p.contribution for p in (*explanation.columns, *explanation.labelled)]
    assert kinds.count("against") == sum(value < 0 for value in parts)


def test_labelled_nodes_link_to_their_pages(explanation):
    one = {"node": 7, "id": "<i>7", "label": 1, "distance": None, "shared_clusters": ()}
    part = Influence(**one, contribution=0.5, along_paths=None, within_clusters=None)
    explanation = replace(explanation, labelled=(part,))
    page = ElementTree.fromstring(why(explanation))
    link = page.find(".//a")
    assert link.get("href") == "/node/7"
    assert link.text.startswith("<i>7 (")
    assert "no path" in link.text


def test_without_a_model_it_says_so():
    assert "no trained model yet" in why(None)
