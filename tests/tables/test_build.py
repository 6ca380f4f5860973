"""Two tables to a graph: columns, ids, labels, edges, times and every mistake in one line."""

import copy
import json
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_tables import EDGES, NODES, people, ties

import evengraph as eg
from evengraph.methods import METHODS
from evengraph.pipeline.table_model import TableModel
from evengraph.splits import ByTime, Given, Natural
from evengraph.tables import (
    FeatureEncoder,
    Note,
    NoteKind,
    TableColumns,
    UnknownNodeError,
    from_frames,
)
from evengraph.tables.open import open_graph


def edge_list(own):
    return [(own.ids[a], own.ids[b]) for a, b in own.graph.edge_index.T.tolist()]


def edges_of(own):
    return set(edge_list(own))


def test_every_part_by_hand():
    own = from_frames(people(), ties(), label="kind")
    assert own.graph.y.tolist() == [1, 1, 0, 0, 1, -1]
    assert own.class_names == ("bad", "good")
    assert own.ids.tolist() == ["ann", "bob", "cid", "dee", "eve", "fay"]
    one_way = {("ann", "bob"), ("cid", "dee"), ("eve", "ann")}
    assert edges_of(own) == one_way | {(b, a) for a, b in one_way}
    assert own.encoder.names == ("age", "city=Oslo", "city=Rome")
    assert own.graph.x[:, 1].tolist() == [0, 1, 0, 1, 0, 0]
    assert own.graph.x[:, 0].mean().abs() < 1e-6
    assert (own.graph.x.dtype, own.graph.y.dtype) == (torch.float32, torch.int64)
    ends = {"source": "source", "target": "target"}
    assert own.columns == TableColumns(id="id", label="kind", features=["age", "city"], **ends)
    assert "Nodes without edges: 1 of 6." in own.notes


def test_what_was_passed_is_left_alone():
    nodes, edges = people(), ties()
    before = nodes.copy(), edges.copy()
    from_frames(nodes, edges, label="kind")
    pd.testing.assert_frame_equal(nodes, before[0])
    pd.testing.assert_frame_equal(edges, before[1])
    assert nodes.attrs == {}


@pytest.mark.parametrize("ends", [("Source", "TARGET"), ("src", "dst"), ("u", "v"), ("a", "b")])
def test_ends_are_guessed(ends):
    edges = ties().set_axis(list(ends), axis=1)[[*ends]]
    own = from_frames(people(), edges, label="kind")
    assert (own.columns.source, own.columns.target) == ends
    told = any("as the ends of edges" in note for note in own.notes)
    assert told == (ends == ("a", "b"))


def test_row_numbers_indices_and_codes_as_ids():
    edges = pd.DataFrame({"a": [0, 1, 5], "b": [1.0, 2.0, 0.0]})
    own = from_frames(people().drop(columns="id"), edges, label="kind")
    assert own.ids.tolist() == list(range(6))
    assert own.graph.edge_index.shape == (2, 6)
    own = from_frames(people().set_index("id"), ties(), label="kind")
    assert own.columns.id == "id"
    table = pd.DataFrame({"id": ["007", "7"], "kind": ["a", "b"], "x": [1, 2]})
    own = from_frames(table, pd.DataFrame({"s": ["007"], "t": [7]}), label="kind")
    assert own.graph.edge_index.tolist() == [[0, 1], [1, 0]]
    edges = ties(since=2020)[["since", "target", "source"]]
    own = from_frames(people(), edges, label="kind")
    assert (own.columns.source, own.columns.target) == ("source", "target")
    assert "Left out column 'since' of edges: it is constant." in own.notes


@pytest.mark.parametrize("nodes", [[1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"]])
@pytest.mark.parametrize("edges", [[1, 3], [1.0, 3.0], ["1", "3"], ["1.0", "3.0"], [" 1", "3 "]])
def test_an_id_may_be_spelt_in_several_ways(nodes, edges):
    table = pd.DataFrame({"id": nodes, "kind": ["a", "b", "a"], "x": [1, 2, 3]})
    own = from_frames(table, pd.DataFrame({"s": edges[:1], "t": edges[1:]}), label="kind")
    assert own.graph.edge_index.tolist() == [[0, 2], [2, 0]]
    assert own.ids.tolist() == nodes


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=25))
def test_edges_against_sets(pairs):
    nodes = pd.DataFrame({"id": range(7), "kind": list("abababa"), "x": range(7)})
    own = from_frames(nodes, pd.DataFrame(pairs, columns=["s", "t"]), label="kind")
    expected = {(a, b) for a, b in pairs if a != b} | {(b, a) for a, b in pairs if a != b}
    found = [tuple(pair) for pair in own.graph.edge_index.T.tolist()]
    assert found == sorted(expected)


def test_notes_say_that_a_column_is_half_numbers_or_dates():
    nodes = people(
        income=["1", "2", "low", "1", None, "low"],
        text=["1", "2", "3", "a b c d e f g h", None, "a b c d e f g h i j k l"],
        since=["2024-01-01", "2024-01-02", "22.12.2016", "2024-01-03", None, "soon"],
    )
    own = from_frames(nodes, ties(), label="kind")
    told = [note for note in own.notes if note.kind is NoteKind.MIXED_COLUMN]
    assert told == [
        "Column 'income': 2 of 5 cells are not numbers ('low' in row 3, 'low' in row 6), so it is "
        "treated as categories.",
        "Column 'text': 2 of 5 cells are not numbers ('a b c d e f g h' in row 4, "
        "'a b c d e f g h i j k l' in row 6), so it is not treated as numbers.",
        "Column 'since': 2 of 5 cells are not dates ('22.12.2016' in row 3, 'soon' in row 6), so "
        "it is not treated as dates.",
    ]
    assert "'low'" not in str(own.encoder.as_dict()["notes"])  # cells are not kept with a model


def test_notes_count_what_was_merged():
    pairs = [("ann", "ann"), *[("ann", "bob")] * 4, ("bob", "ann"), ("cid", "dee")]
    notes = from_frames(people(), ties(pairs), label="kind").notes
    assert "Dropped 1 self-loop." in notes
    assert "Merged 3 repeated edges." in notes
    assert "Merged 1 edge given in both directions." in notes
    assert "Edges are treated as undirected." in notes


def test_weights_of_edges():
    pairs = [("ann", "bob"), ("bob", "ann"), ("bob", "ann"), ("cid", "dee"), ("eve", "fay")]
    own = from_frames(people(), ties(pairs, w=[2.5, 1, 2, 0, 4]), label="kind", weight="w")
    weights = dict(zip(edge_list(own), own.graph.edge_weight.tolist(), strict=True))
    both_ways = {("ann", "bob"): 3, ("bob", "ann"): 3, ("eve", "fay"): 4, ("fay", "eve"): 4}
    assert weights == both_ways
    assert "Dropped 1 edge: weight 0." in own.notes
    assert "Merged 1 repeated edge, their weights summed." in own.notes
    own = from_frames(people(), ties(weight=[1, 2, 3]), label="kind")
    assert own.columns.weight == "weight"
    assert "Using columns of edges: 'weight' as the weight of edges." in own.notes
    signed = from_frames(people(), ties(weight=[1, -2, 3]), label="kind")
    assert signed.columns.weight is None
    assert "edge_weight" not in signed.graph
    unused = "Column 'weight' of edges is not used as the weight of edges: some cells are no "
    assert f"{unused}numbers from 0 on." in signed.notes
    plain = from_frames(people(), ties(), label="kind")
    assert "edge_weight" not in plain.graph
    encoded = from_frames(people(), ties(weight=[1, 2, 3]), encoder=plain.encoder)
    assert "edge_weight" not in encoded.graph  # a model that was trained without weights


def test_types_and_directions_are_relations():
    edges = ties([("ann", "bob"), ("bob", "cid"), ("ann", "dee")], type=["a", "a", "b"])
    edges = pd.concat([edges, edges], ignore_index=True)
    own = from_frames(people(), edges, label="kind", directed=True)
    assert own.graph.relation_names == ("a out", "a in", "b out", "b in")
    assert "Relations: a out, a in, b out, b in." in own.notes
    arcs = {tuple(arc) for arc in own.graph.relation_index.T.tolist()}
    assert arcs == {(0, 0, 1), (0, 1, 2), (1, 1, 0), (1, 2, 1), (2, 0, 3), (3, 3, 0)}
    assert own.graph.num_relations == 4
    assert own.graph.edge_index.shape == (2, 6)  # the union, both directions
    undirected = from_frames(people(), edges, label="kind").graph
    assert undirected.relation_names == ("a", "b")
    assert "relation_index" not in from_frames(people(), ties(), label="kind").graph


def test_edge_columns_are_features_of_new_tables_too():
    edges = ties(amount=[1.0, 10.0, 3.0])
    own = from_frames(people(), edges, label="kind")
    assert own.encoder.names[-3:] == ("edges.count", "edges.mean(amount)", "edges.sum(amount)")
    assert "3 features of nodes from edges: count, mean and sum of amount." in own.notes
    assert own.columns.features == ["age", "city"]
    stored = FeatureEncoder.from_dict(json.loads(json.dumps(own.encoder.as_dict())))
    assert stored == own.encoder
    again = from_frames(people(), edges, encoder=stored)
    assert torch.equal(again.graph.x, own.graph.x)
    with pytest.raises(ValueError, match="edges has no column 'amount'"):
        from_frames(people(), ties(), encoder=stored)
    with pytest.raises(ValueError, match=r"has no columns 'age', 'city'; .* are: id, kind\.$"):
        from_frames(people()[["id", "kind"]], edges, encoder=stored)
    named = from_frames(people(), edges, label="kind", features=["age"])
    assert named.encoder.names == ("age",)


def test_few_edges_and_no_feature_columns():
    own = from_frames(people(), ties([]), label="kind")
    assert own.graph.edge_index.shape == (2, 0)
    assert "Nodes without edges: 6 of 6." in own.notes
    own = from_frames(people()[["id", "kind"]], ties(), label="kind")
    assert own.encoder.names == ("log_degree", "log_pagerank", "clustering")
    assert own.graph.x.shape == (6, 3)
    same = from_frames(people(), ties(), label="kind", features=[])
    assert torch.equal(own.graph.x, same.graph.x)


def test_a_label_and_a_split_are_guessed_by_name():
    nodes = people(split=["train", "Train", "TEST", "valid", "test", ""])
    own = from_frames(nodes.rename(columns={"kind": "Label"}), ties())
    assert own.columns.label == "Label"
    assert own.encoder.input_columns == ("age", "city")
    assert own.graph.train_mask.tolist() == [True, True, False, False, False, False]
    assert own.graph.val_mask.nonzero().tolist() == [[3]]
    other = from_frames(people(split=list("abcabc")), ties(), label="kind")
    assert not any(f"{part}_mask" in other.graph for part in ("train", "val", "test"))
    assert "split" in other.encoder.input_columns


def test_without_labels():
    own = from_frames(people().drop(columns="kind"), ties())
    assert own.graph.y.tolist() == [-1] * 6
    assert own.class_names == ()
    assert own.label_candidates == ("city",)
    assert NoteKind.NO_LABEL in {note.kind for note in own.notes}
    hint = "set label to the column with the classes, perhaps 'city'"
    assert any(hint in note for note in own.notes)
    assert from_frames(people(), ties(), label="kind").label_candidates == ()
    later = from_frames(people(), ties(), encoder=own.encoder)  # new rows have no labels
    assert "No label column: every node is unlabelled." in later.notes


def test_split_and_time_columns_are_used():
    nodes = people(part=["train", "test", "train", "test", "train", "train"])
    task = Given()(from_frames(nodes, ties(), label="kind", split="part").graph, seed=0)
    assert task.test.nonzero().flatten().tolist() == [1, 3]
    assert int(task.train.sum()) == 2
    assert int(task.val.sum()) == 1
    days = ["2024-01-01", "2024-01-02", "2024-01-01", "2024-01-03", "2024-01-05", None]
    own = from_frames(people(day=days), ties(), label="kind", time="day")
    assert own.graph.time[1] - own.graph.time[0] == 24 * 3600
    assert "Nodes without a time: 1 of 6." in own.notes
    assert "day" not in own.encoder.input_columns
    task = ByTime(train=0.4, val=0.2)(own.graph, seed=0)
    found = [m.nonzero().flatten().tolist() for m in (task.train, task.val, task.test)]
    assert found == [[0, 2], [1], [3, 4]]


def test_rare_classes_and_unknown_nodes_are_told():
    own = from_frames(people(kind=["a", "a", "a", "b", None, None]), ties(), label="kind")
    (note,) = [note for note in own.notes if "Class" in note]
    assert note.startswith("Class 'b' has 1 labelled node: a stratified split (Natural) needs 3")
    assert note.endswith("or empty its label cells to leave the class out.")
    with pytest.raises(ValueError, match="Class 'b' has 1 labelled node for"):
        Natural()(own.graph, seed=0)
    edges = ties([("ann", "bob"), ("ann", "zoe"), ("zed", "ann")])
    with pytest.raises(UnknownNodeError) as caught:
        from_frames(people(), edges, label="kind")
    assert (caught.value.node, caught.value.num_edges) == ("zoe", 2)
    note = Note(NoteKind.UNDIRECTED, "Edges are taken as undirected.")
    assert note == f"{note}" == "Edges are taken as undirected."
    for again in (copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert (again, again.kind) == (note, NoteKind.UNDIRECTED)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def test_folders_and_tables(folder):
    own = eg.open_graph(str(folder), label="kind")
    assert own.ids.tolist() == ["ann", "bob", "cid"]
    assert own.graph.y.tolist() == [0, 1, 0]
    assert own.graph.num_edges == 4
    pd.read_csv(folder / "edges.csv").to_parquet(folder / "ties.parquet")
    own = open_graph(folder / "nodes.csv", edges=folder / "ties.parquet", label="kind")
    assert torch.equal(own.graph.x, open_graph(folder, label="kind").graph.x)
    (folder / "ties.parquet").unlink()
    (folder / "nodes.csv").rename(folder / "people.csv")
    assert open_graph(folder, label="kind").ids.tolist() == ["ann", "bob", "cid"]
    (folder / "cities.csv").write_text(NODES)
    with pytest.raises(FileNotFoundError, match=r"has no nodes table; .*\.parquet work as well\."):
        open_graph(folder, label="kind")


def test_files_that_hold_a_graph(tmp_path):
    network = nx.path_graph(3)
    nx.set_node_attributes(network, {0: "a", 1: "b", 2: "a"}, "kind")
    nx.write_graphml(network, tmp_path / "g.graphml")
    edges = np.array([[0, 1], [1, 2]])
    np.savez(tmp_path / "g.npz", edge_index=edges, y=np.array([0, 1, 0]))
    torch.save({"edge_index": torch.tensor(edges), "y": torch.tensor([0, 1, 0])}, tmp_path / "g.pt")
    arrays = [open_graph(tmp_path / name) for name in ("g.npz", "g.pt")]
    for own in (open_graph(tmp_path / "g.graphml", label="kind"), *arrays):
        assert own.graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
        assert own.graph.y.tolist() == [0, 1, 0]


def test_several_edges_tables_are_types_of_edges(folder):
    (folder / "edges.csv").unlink()
    for name, ends in (("pays", "from,to"), ("knows", "a,b")):
        (folder / f"edges_{name}.csv").write_text(f"{ends}\nann,bob\nann,bob\n")
    paths = [str(folder / f"edges_{name}.csv") for name in ("knows", "pays")]
    frames = {"knows": paths[0], "pays": pd.read_csv(paths[1])}
    for own in (
        open_graph(folder, label="kind"),
        open_graph(folder / "nodes.csv", edges=paths, label="kind"),
        open_graph(folder / "nodes.csv", edges=",".join(paths), label="kind"),
        open_graph(folder / "nodes.csv", edges=frames, label="kind"),
    ):
        assert own.graph.relation_names == ("knows", "pays")
        assert own.graph.num_edges == 2
        assert own.columns.type == "type"
    (folder / "edges.csv").write_text(EDGES)
    assert "relation_index" not in open_graph(folder, label="kind").graph


def test_columns_can_be_dropped(folder):
    (folder / "edges.csv").write_text("source,target,weight\nann,bob,1\nbob,cid,2\n")
    assert "edge_weight" in open_graph(folder, label="kind").graph
    own = open_graph(folder, label="kind", drop=["weight", "age"])
    assert "edge_weight" not in own.graph
    with pytest.raises(ValueError, match="no column 'tag'"):
        open_graph(folder, label="kind", drop=["tag"])


def test_ends_of_several_edges_tables_are_named_or_guessed(tmp_path):
    nodes = pd.DataFrame({"id": ["a", "b", "c"], "kind": ["x", "y", "x"], "age": [1, 2, 3]})
    calls = pd.DataFrame({"day": ["b", "b"], "who": ["a", "b"], "whom": ["b", "c"]})
    tables = {"calls": calls, "mails": calls[:1]}
    own = open_graph(nodes, edges=tables, source="who", target="whom", label="kind")
    assert (own.columns.source, own.columns.target) == ("who", "whom")
    assert own.graph.num_edges == 4
    usual = calls[["who", "whom"]].rename(columns={"who": "from", "whom": "to"})
    # a model of tables whose ends were guessed has stored the names source and target
    again = open_graph(nodes, edges={"calls": usual}, source="source", target="target")
    assert again.graph.num_edges == 4
    with pytest.raises(ValueError, match="has no column 'wo'"):
        open_graph(nodes, edges=tables, source="wo", target="whom", label="kind")


METHOD = {"max_epochs": 5}


def accounts(size=80):
    rng = np.random.default_rng(1)
    start = pd.Timestamp("2024-01-01")
    opened = start + pd.to_timedelta(np.arange(size), unit="D")
    nodes = pd.DataFrame({"id": range(size), "age": rng.integers(18, 80, size)})
    nodes["opened"] = opened.strftime("%Y-%m-%d")
    nodes["kind"] = np.where(rng.random(size) < 0.4, "bad", "good")
    ends = rng.integers(0, size, (2, 400))
    day = np.maximum(*ends) + rng.integers(0, 10, 400)
    edges = pd.DataFrame({"source": ends[0], "target": ends[1], "amount": rng.lognormal(2, 1, 400)})
    edges["weight"] = rng.integers(1, 9, 400)
    edges["type"] = rng.choice(["card", "cash"], 400)
    edges["date"] = (start + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d")
    return nodes, edges


def split(nodes, edges):
    graph = from_frames(nodes, edges, label="kind", time="opened").graph
    return ByTime()(graph, seed=0)


def cutoff(task, nodes):
    known = task.train | task.val
    return nodes["opened"][known.numpy()].max()


def test_later_edges_are_not_seen_in_training():
    nodes, edges = accounts()
    task = split(nodes, edges)
    last = cutoff(task, nodes)
    earlier = edges[edges["date"] <= last]
    assert 0 < len(earlier) < len(edges)
    ends = {frozenset(pair) for pair in earlier[["source", "target"]].itertuples(index=False)}
    seen = {frozenset(pair) for pair in task.past.edge_index.T.tolist()}
    assert seen == {pair for pair in ends if len(pair) == 2}
    hidden = task.hide_test_labels()
    assert torch.equal(hidden.graph.edge_index, task.past.edge_index)
    assert hidden.past is None
    assert task.graph.num_edges > task.past.num_edges


@pytest.mark.parametrize("change", ["removed", "moved", "other amounts", "other types"])
def test_changing_the_future_changes_nothing_in_training(change):
    nodes, edges = accounts()
    task = split(nodes, edges)
    future = edges["date"] > cutoff(task, nodes)
    changed = edges.copy()
    if change == "removed":
        changed = changed[~future].reset_index(drop=True)
    elif change == "moved":
        changed.loc[future, "source"] = 3
    elif change == "other amounts":
        changed.loc[future, ["amount", "weight"]] *= 1000
    else:
        changed.loc[future, "type"] = "cheque"
    other = split(nodes, changed)
    for name in ("x", "edge_index", "edge_weight", "relation_index", "relation_weight"):
        assert torch.equal(task.past[name], other.past[name]), name
    for name in ("unison", "boosting", "gcn"):
        first, second = (METHODS[name](**METHOD).fit(t, seed=0) for t in (task, other))
        assert torch.equal(first.predict_proba(task.past), second.predict_proba(task.past))


def test_the_past_and_its_units():
    nodes, edges = accounts()
    task = split(nodes, edges)
    past = edges["date"] <= cutoff(task, nodes)
    changed = edges.copy()
    changed.loc[past, "amount"] *= np.arange(int(past.sum()))
    assert not torch.equal(split(nodes, changed).past.x, task.past.x)
    nodes, edges = accounts()
    edges.loc[:100, "date"] = None
    task = split(nodes, edges)
    known = edges["date"].notna() & (edges["date"] <= cutoff(task, nodes))
    pairs = {frozenset(p) for p in edges[known][["source", "target"]].itertuples(index=False)}
    seen = {frozenset(p) for p in task.past.edge_index.T.tolist()}
    assert seen == {p for p in pairs if len(p) > 1}
    nodes, edges = accounts()
    edges["date"] = pd.to_datetime(edges["date"]).dt.year * 1e9
    with pytest.raises(ValueError, match="No edge has a time up to that of the last validation"):
        split(nodes, edges)


def test_a_model_keeps_the_features_of_that_time():
    nodes, edges = accounts()
    options = {"label": "kind", "time": "opened", "progress": False}
    model = TableModel(METHODS["boosting"](**METHOD)).fit(nodes, edges, **options)
    task = split(nodes, edges)
    new = model.open(nodes, edges).tables.graph
    assert torch.equal(new.x, task.graph.x)
    assert torch.equal(new.relation_index, task.graph.relation_index)
    probabilities = model.predict_proba(nodes, edges, calibrated=False)
    assert np.array_equal(probabilities, model.method_.predict_proba(task.graph).numpy())
    mixed = model.method_.predict_task(task)
    assert torch.equal(mixed[task.test], torch.from_numpy(probabilities)[task.test])
    assert torch.equal(mixed[task.val], model.method_.predict_proba(task.past)[task.val])
