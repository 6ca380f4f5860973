import re

import pytest

from evengraph.datasets import DATASETS, load
from evengraph.datasets.readers import READERS
from evengraph.datasets.registry import Counts, DataMismatch, Dataset, graph_hash, lookup
from evengraph.datasets.toy import toy


@pytest.mark.parametrize("name", DATASETS)
def test_entries_are_complete(name):
    dataset = lookup(name)
    assert dataset.title
    assert dataset.licence
    assert len(dataset.class_names) in (0, dataset.counts.classes)
    for form in dataset.file_sets:
        assert form.reader in READERS
        assert form.files
        for sha256 in form.files.values():
            assert not sha256 or re.fullmatch("[0-9a-f]{64}", sha256)
    assert not dataset.sha256 or re.fullmatch("[0-9a-f]{64}", dataset.sha256)


@pytest.mark.parametrize("name", ["computers", "physics", "dblp", "cora_ml", "blogcatalog"])
def test_graphs_whose_files_have_no_hash_have_one(name):
    assert lookup(name).sha256


def test_a_graph_with_the_right_sizes_and_wrong_values_is_refused():
    graph = toy(60, 120, 8, 2)
    counts = Counts(60, graph.edge_index.shape[1], 8, 2)
    dataset = Dataset("A toy", counts, sha256=graph_hash(graph))
    dataset.check(graph, "here")
    for part in ("x", "edge_index", "y"):
        other = graph.clone()
        other[part] = other[part].flip(0)
        with pytest.raises(DataMismatch, match=r"here is not the graph A toy: its sizes are right"):
            dataset.check(other, "here")


@pytest.mark.parametrize("name", DATASETS)
def test_whatever_is_unpickled_has_a_hash(name):
    for form in lookup(name).file_sets:
        if form.reader == "planetoid":
            assert "" not in form.files.values()


def test_unknown_name_lists_the_names_in_one_line():
    with pytest.raises(ValueError, match=r"name must be one of cora, .*, got 'nell'") as caught:
        load("nell")
    message = str(caught.value)
    assert "\n" not in message
    assert all(name in message for name in DATASETS)
    assert "Did you mean" not in message


@pytest.mark.parametrize(
    ("typed", "meant"), [("Cora", "cora"), ("citeseeer", "citeseer"), ("redit-user", "reddit-user")]
)
def test_a_close_name_is_suggested(typed, meant):
    with pytest.raises(ValueError, match=f"Did you mean '{meant}'"):
        load(typed)


def test_only_toy_takes_options():
    with pytest.raises(
        ValueError, match="options are for toy only; cora takes none, got num_nodes"
    ):
        load("cora", num_nodes=3)


def test_a_long_name_is_cut():
    with pytest.raises(ValueError, match=r"got 'x+\.\.\.\.") as caught:
        lookup("x" * 5000)
    assert len(str(caught.value)) < 1000
