"""Next month's tables: packed with the encoders of a model, alone or joined to the known graph."""

import numpy as np
import pandas as pd
import pytest
import torch
from tables_on_disk import make_tables, write

from command_line import call
from evengraph.disk import PackedGraph, open_on_disk, pack, unpack_graph
from evengraph.disk.models import write_predictions
from evengraph.methods import Unison
from evengraph.pipeline.run import RunPlan, run
from evengraph.pipeline.table_model import TableModel
from evengraph.splits import Natural

LIMIT = "300MB"


def train(source):
    """A small model of a packed graph, as `evengraph run --save` makes it."""
    methods = {"unison": Unison(max_epochs=5, members=1)}
    plan = RunPlan(dataset="", graph=source.graph, protocol=Natural(), methods=methods, seeds=[0])
    plan = plan.changed(disk=source.disk)
    return TableModel.from_fits(run(plan, keep_best=True).fits["unison"], source)


@pytest.fixture(scope="module", params=[".parquet", ".csv"])
def months(request, tmp_path_factory):
    """Tables of two months, with a known node that is given again, and what was made of one."""
    nodes, edges = make_tables(120, 400, weight=True)
    later, links = make_tables(50, 90, seed=1, weight=True)
    later["id"] = later["id"].str.replace("n", "m")
    links[["source", "target"]] = links[["source", "target"]].replace("n", "m", regex=True)
    links.loc[links.index % 3 == 0, "target"] = nodes["id"].iloc[7]
    pairs = edges[["source", "target"]].apply(frozenset, axis=1)
    again = edges[~pairs.duplicated(keep=False)][:20]  # in the same direction: weights are added
    links = pd.concat([links, again])
    links = links.replace({later["id"].iloc[4]: nodes["id"].iloc[7]})
    later.loc[4, "id"] = nodes["id"].iloc[7]
    later.loc[3, ["age", "town", "label"]] = [np.nan, "Rom", "new"]
    tables = {"nodes": nodes, "edges": edges, "later": later, "links": links}
    tables["alone"] = links[links["source"].isin(later["id"]) & links["target"].isin(later["id"])]
    folder, suffix = tmp_path_factory.mktemp("months"), request.param
    paths = {name: write(part, folder / f"{name}{suffix}") for name, part in tables.items()}
    pack(paths["nodes"], folder / "graph", edges=paths["edges"])
    model = train(open_on_disk(folder / "graph", LIMIT))
    model.save(folder / "model")
    return folder, paths, model


def predicted(model, folder, path):
    """Predictions of a packed graph from disk, by id."""
    write_predictions(model, open_on_disk(folder, LIMIT).disk, path)
    return pd.read_parquet(path)


def assert_alike(found, expected):
    assert list(found) == [name for name in expected if name in found]
    assert list(found["id"]) == list(expected["id"])
    assert (found["class"] == expected["class"]).all()
    for name in found.columns[2:]:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


def test_tables_packed_like_those_of_a_model_are_predicted_as_in_memory(months):
    folder, paths, model = months
    packed = pack(paths["later"], folder / "month", edges=paths["alone"], like=folder / "model")
    new = model.open(paths["later"], paths["alone"])
    torch.testing.assert_close(unpack_graph(packed).x, new.tables.graph.x)
    assert packed.class_names == model.classes_
    assert any("none of a, b, c" in note for note in packed.header["notes"])
    assert packed.y[3] == -1
    found = predicted(model, folder / "month", folder / "p.parquet")
    assert_alike(found, model.predict(new, align=False))


def test_nodes_that_join_a_known_graph_are_predicted_as_in_memory(months):
    folder, paths, model = months
    options = {"like": folder / "model", "known": folder / "graph"}
    joined = pack(paths["later"], folder / "both", edges=paths["links"], **options)
    new = model.open(paths["later"], paths["links"], known=(paths["nodes"], paths["edges"]))
    graph, expected = unpack_graph(joined), new.tables.graph
    assert list(joined.ids[:]) == list(new.tables.ids)
    assert torch.equal(graph.edge_index, expected.edge_index)
    for name in ("x", "edge_weight"):
        torch.testing.assert_close(graph[name], expected[name])
    assert sorted(graph.new_mask.nonzero().squeeze(1).tolist()) == sorted(new.rows.tolist())
    found = predicted(model, folder / "both", folder / "p.parquet")
    in_order = model.predict(new).set_index("id").loc[found["id"]].reset_index()
    assert_alike(found, in_order)
    assert len(found) == 50
    assert_alike(found, model.predict(folder / "both"))  # read into memory


def test_a_known_graph_grows_with_its_own_encoders(months):
    folder, paths, _ = months
    before = PackedGraph.open(folder / "graph")
    grown = pack(paths["later"], folder / "grown", edges=paths["links"], known=folder / "graph")
    same = np.flatnonzero(~np.asarray(grown.mask("new")))
    np.testing.assert_array_equal(grown.x[same], before.x[same])
    np.testing.assert_array_equal(grown.y[same], before.y[same])
    labels = np.asarray(grown.y)
    counts = np.bincount(labels[labels >= 0], minlength=3)
    assert grown.header["class_counts"] == counts.tolist()
    assert grown.num_nodes == 120 + 49
    assert 0 < (labels[120:] >= 0).sum() < 49
    PackedGraph.open(grown.path, verify=True).check()


def test_what_cannot_join_is_said_in_a_line(months, capsys):
    folder, paths, _ = months
    words = ["pack", str(paths["later"]), str(paths["links"]), "--out", str(folder / "out")]
    assert call(*words, "--like", str(folder / "model")) == 2
    assert "which is not the id of a node" in capsys.readouterr().err
    other = pack("toy", folder / "other")
    assert call(*words, "--like", str(folder / "model"), "--known", str(other.path)) == 2
    assert "must hold the features that the model was trained on" in capsys.readouterr().err
    assert call("pack", "toy", "--like", str(folder / "model"), "--out", str(folder / "out")) == 2
    assert "are for tables in Parquet or CSV files" in capsys.readouterr().err
    few = pd.DataFrame({"id": ["z"], "age": [3.0]})
    words[1] = str(write(few, folder / "few.csv"))
    assert call(*words, "--known", str(folder / "graph")) == 2
    assert "few.csv has no columns 'pay', 'town', 'member'" in capsys.readouterr().err


def test_a_file_changed_after_packing_is_refused(tmp_path):
    path = pack("toy", tmp_path / "graph").path / "x.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="was changed after packing: pack it again"):
        open_on_disk(tmp_path / "graph", LIMIT)


def test_joining_goes_on_after_a_kill(months, monkeypatch):
    folder, paths, _ = months
    target = folder / "resumed"

    def join(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evengraph.disk.packing.join_nodes", join)
        with pytest.raises(KeyboardInterrupt):
            pack(paths["later"], target, edges=paths["links"], known=folder / "graph")
    resumed = pack(paths["later"], target, edges=paths["links"], known=folder / "graph")
    whole = pack(paths["later"], folder / "once", edges=paths["links"], known=folder / "graph")
    assert resumed.header["arrays"] == whole.header["arrays"]
