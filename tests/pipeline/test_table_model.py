"""TableModel: fit, predict, explain, save and load, from files, DataFrames and graphs."""

import json
import random
from dataclasses import replace

import numpy as np
import pandas
import pytest
import torch

import evengraph as eg
from command_line import call
from evengraph.methods.bases.method import Committee
from evengraph.metrics.decisions import Costs, Rule
from evengraph.pipeline.executor import Job, LoadedGraph, score
from evengraph.pipeline.model_info import ModelInfo
from evengraph.pipeline.run import RunPlan, Selection
from evengraph.pipeline.sources import GraphSource, open_dataset, open_tables
from evengraph.pipeline.table_model import assess, positive_index
from evengraph.splits import ByTime, Given, Natural, Step
from small_graphs import small_task

COLUMNS = {"label": "kind", "id": "account"}
SCORES = ["score_fraud", "score_honest", "score_shop"]  # of too few nodes for probabilities
RAW = {"calibrated": False}
METHOD = eg.UniGNN(max_epochs=15, clusters_per_class=2)
NODES = pandas.DataFrame({"account": ["new-1", "new-2"], "amount": [5.0, 9.0]})
EDGES = pandas.DataFrame({"from": ["new-1", "new-2"], "to": ["a-000", "new-1"]})


def draw_tables(kinds):
    """Accounts with a label each, most of them known, and edges mostly within a class."""
    draw = random.Random(0)
    ids = [f"a-{index:03d}" for index in range(len(kinds))]
    nodes = pandas.DataFrame(
        {
            "account": ids,
            "kind": [kind if draw.random() < 0.8 else "" for kind in kinds],
            "amount": [draw.gauss(len(kind), 1) for kind in kinds],
        }
    )
    edges = []
    for index, kind in enumerate(kinds):
        alike = [other for other, same in enumerate(kinds) if same == kind]
        edges += [(ids[index], ids[draw.choice(alike)]) for _ in range(3)]
        edges.append((ids[index], draw.choice(ids)))
    return nodes, pandas.DataFrame(edges, columns=["from", "to"])


@pytest.fixture(scope="module")
def tables():
    return draw_tables(["fraud"] * 15 + ["honest"] * 50 + ["shop"] * 40)


@pytest.fixture(scope="module")
def two_classes():
    return draw_tables(["fraud"] * 25 + ["honest"] * 95)


@pytest.fixture(scope="module")
def model(tables):
    return eg.TableModel(METHOD).fit(*tables, **COLUMNS, seed=5)


@pytest.fixture
def folder(tables, tmp_path, monkeypatch):
    """The tables as files in a folder called shop."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    for table, name in zip(tables, ("nodes", "edges"), strict=True):
        table.to_csv(tmp_path / "shop" / f"{name}.csv", index=False)
    return tmp_path


def test_predictions_have_one_row_per_node(model, tables):
    frame = model.predict(*tables)
    assert list(frame) == ["account", "class", "score", *SCORES]
    assert frame["account"].tolist() == tables[0]["account"].tolist()
    probabilities = frame[SCORES].to_numpy()
    assert probabilities.sum(1) == pytest.approx(np.ones(105), abs=1e-5)
    best = model.predict_proba(*tables, calibrated=False).argmax(1)
    assert (np.array(model.classes_)[best] == frame["class"]).all()
    assert (probabilities[np.arange(105), best] == frame["score"]).all()
    assert (model.predict_proba(*tables) == probabilities).all()
    assert any("undirected" in note for note in model.notes)


def test_fitting_equals_the_parts_put_together(model, tables):
    parts = eg.from_frames(*tables, **COLUMNS)
    task = eg.splits.Natural(train=0.6, val=0.2)(parts.graph, seed=5)
    method = eg.UniGNN(max_epochs=15, clusters_per_class=2).fit(task, seed=5)
    expected = method.predict_proba(parts.graph)
    once = eg.TableModel(METHOD, refit=False).fit(*tables, **COLUMNS, seed=5)
    assert torch.equal(torch.from_numpy(once.predict_proba(*tables, **RAW)), expected)
    score = eg.evaluate(task, expected)["balanced_accuracy"]
    assert model.evaluate()["balanced_accuracy"] == 100 * score
    assert once.info.refit is None
    full = replace(task, train=(task.graph.y >= 0) & ~task.val, test=task.test & False)
    again = eg.UniGNN(max_epochs=15, clusters_per_class=2).fit(full, seed=5)
    expected = again.predict_proba(parts.graph)
    assert torch.equal(torch.from_numpy(model.predict_proba(*tables, **RAW)), expected)
    labelled, validation = int((task.graph.y >= 0).sum()), int(task.val.sum())
    assert model.info.refit == (labelled - validation, validation, int(task.train.sum()))


def test_files_and_frames_give_the_same_model(model, tables, folder):
    for arguments in (("shop",), ("shop/nodes.csv", "shop/edges.csv")):
        other = eg.TableModel(METHOD).fit(*arguments, **COLUMNS, seed=5)
        assert other.predict(*arguments).equals(model.predict(*tables))
        assert other.info.trained_on.data == str((folder / arguments[0]).absolute())


def test_a_saved_model_predicts_the_same_bits(model, tables, tmp_path):
    model.save(tmp_path / "model")
    loaded = eg.TableModel.load(tmp_path / "model")
    assert loaded.predict(*tables).equals(model.predict(*tables))
    assert loaded.predict(*tables, calibrated=True).equals(model.predict(*tables, calibrated=True))
    assert loaded.info == model.info
    assert loaded.classes_ == model.classes_ == ("fraud", "honest", "shop")
    assert loaded.evaluate() == model.evaluate()


def test_the_command_line_saves_and_predicts_the_same(folder):
    fields = ["--method", "unignn", "--set", "max_epochs=15", "--set", "clusters_per_class=2"]
    words = ["shop", "--label", "kind", "--id", "account", *fields, "--splits", "5,6"]
    assert call("run", *words, "--save", "one", "--no-preset") == 0
    eg.TableModel(METHOD).fit("shop", **COLUMNS, seed=[5, 6]).save("two")
    one, two = (json.loads((folder / name / "model.json").read_text()) for name in ("one", "two"))
    for about in (one, two):
        for history in about["history"]:
            del history["seconds"]
        del about["seal"]
        for name in ("seconds", "command"):
            about["extra"]["made"].pop(name, None)
    assert one == two
    extra = {"calibrator", "test", "trained_on", "columns", "encoder", "refit"}
    more = {"statistics", "sets", "counts", "confusion", "calibration", "made"}
    assert set(one["extra"]) == extra | more
    assert "## Calibration" in (folder / "one" / "README.md").read_text()
    NODES.to_csv("n.csv", index=False)
    EDGES.to_csv("e.csv", index=False)
    assert call("predict", "one", "n.csv", "e.csv", "--known", "shop", "--out", "p.parquet") == 0
    frame = eg.TableModel.load("two").predict("n.csv", "e.csv", known="shop")
    assert pandas.read_parquet("p.parquet").equals(frame)


def test_only_unlabelled_nodes(model, tables, folder):
    missing = tables[0].loc[tables[0]["kind"] == "", "account"].tolist()
    new = model.open("shop", only_unlabelled=True)
    assert new.ids.tolist() == missing
    frame, every = model.predict(new), model.predict("shop")
    assert frame.equals(every[every["account"].isin(missing)].reset_index(drop=True))
    with pytest.raises(ValueError, match="no column 'kind'"):
        model.open(NODES, EDGES.iloc[1:], only_unlabelled=True)


@pytest.mark.parametrize("suffix", ["npz", "pt"])
def test_files_of_arrays_are_predicted(suffix, tmp_path):
    graph = eg.toy()
    arrays = {"x": graph.x, "edge_index": graph.edge_index, "y": graph.y.clone()}
    arrays["y"][::3] = -1
    path = tmp_path / f"graph.{suffix}"
    if suffix == "npz":
        np.savez(path, **{name: value.numpy() for name, value in arrays.items()})
    else:
        torch.save(arrays, path)
    model = eg.TableModel(eg.GCN(max_epochs=5)).fit(path)
    expected = model.method_.predict_proba(eg.open_graph(path).graph)
    assert np.allclose(model.predict_proba(path, calibrated=False), expected.numpy())
    assert model.open(path, only_unlabelled=True).ids.tolist() == list(range(0, 2000, 3))
    assert model.explain("7").node == 7
    model.save(tmp_path / "model")
    assert eg.TableModel.load(tmp_path / "model").explain("7").node == 7
    with pytest.raises(ValueError, match="does not take known: it holds a whole graph"):
        model.open(path, known=path)
    arrays["x"] = graph.x[:, 1:]
    torch.save(arrays, tmp_path / "narrow.pt")
    with pytest.raises(ValueError, match="x must have 256 columns, got 255"):
        model.open(tmp_path / "narrow.pt")


def test_tables_and_arrays_do_not_mix(model, tmp_path):
    torch.save({"x": torch.ones(3, 2), "edge_index": torch.tensor([[0], [1]])}, tmp_path / "g.pt")
    with pytest.raises(ValueError, match="holds arrays; the model was trained on tables, with col"):
        model.predict(tmp_path / "g.pt")


def test_new_nodes_attach_to_known_ones(model, tables):
    frame = model.predict(NODES, EDGES, known=tables)
    assert frame["account"].tolist() == ["new-1", "new-2"]
    alone = model.predict(NODES, EDGES.iloc[1:])
    assert not np.allclose(frame["score_fraud"], alone["score_fraud"])
    assert model.open(NODES, EDGES.iloc[:0]).num_isolated == 2
    assert model.open(NODES, EDGES, known=tables).num_isolated == 0
    assert model.open(NODES, EDGES, known=tables).doubt == ""
    assert model.open(NODES, EDGES.iloc[1:]).doubt == ""
    with pytest.warns(UserWarning, match="No edge connects the new nodes to the known graph"):
        model.predict(NODES, EDGES.iloc[1:], known=tables)


def test_two_classes_have_a_threshold_that_decides(two_classes):
    model = eg.TableModel(METHOD).fit(*two_classes, **COLUMNS, seed=[0, 1])
    assert model.threshold.positive == 0  # fraud, the rarer
    for calibrated in (None, False):
        found = model.predictions(*two_classes, calibrated=calibrated)
        above = found.probabilities[:, 0].double().numpy() >= found.threshold.value
        assert found.frame["flagged"].tolist() == above.tolist()
        assert ((found.frame["class"] == "fraud") == found.frame["flagged"]).all()
    assert set(found.frame["flagged"]) == {False, True}
    assert model.predictions(*two_classes).threshold == model.threshold
    other = eg.TableModel(METHOD, positive="honest").fit(*two_classes, **COLUMNS)
    assert other.threshold.positive == 1


def test_what_thresholds_do_is_counted_on_what_all_splits_held_out(two_classes):
    model = eg.TableModel(METHOD, rule=Rule.of(alerts=0.1))
    model.fit(*two_classes, **COLUMNS, seed=[0, 1])
    curve, labelled = model.info.decision.curve, two_classes[0]["kind"] != ""
    assert 0.4 * labelled.sum() < curve.nodes < labelled.sum()  # in two splits, each node once
    assert model.info.decision.outcome.flagged <= 0.1 * curve.nodes
    assert model.info.calibrator.nodes == curve.nodes
    one = eg.TableModel(METHOD).fit(*two_classes, **COLUMNS, seed=0)
    assert one.info.decision.curve.nodes == pytest.approx(0.4 * labelled.sum(), abs=2)
    assert one.use_rule(Rule.of(Costs(9, 1))).threshold.value == pytest.approx(0.1)
    cheap = one.predict(*two_classes)["flagged"].sum()
    assert cheap > one.use_rule(Rule.of(Costs(1, 9))).predict(*two_classes)["flagged"].sum()
    top = one.predictions(*two_classes, alerts=7)
    assert top.frame["flagged"].sum() == 7
    assert top.frame["score_fraud"].nlargest(7).min() == pytest.approx(top.threshold.value)
    assert one.predict(*two_classes, alerts=0.05)["flagged"].sum() == 6


def test_labels_that_were_collected_unevenly(two_classes):
    options = {"protocol": Natural(train=0.4, val=0.3)}
    plain, told = (
        eg.TableModel(METHOD, shares=shares, **options).fit(*two_classes, **COLUMNS)
        for shares in (None, {"fraud": 0.01, "honest": 0.99})
    )
    means = [float(one.predict_proba(*two_classes)[:, 0].mean()) for one in (plain, told)]
    assert means[1] < 0.4 * means[0]
    curve = told.info.decision.curve
    assert curve.positives == pytest.approx(0.01 * curve.nodes)
    with pytest.raises(ValueError, match="shares must give a number above 0 to each of fraud, hon"):
        eg.TableModel(METHOD, shares={"fraud": 1.0}).fit(*two_classes, **COLUMNS)


def test_sets_of_classes_grow_with_the_coverage_that_is_wanted(model, tables):
    narrow, wide = (model.predict(*tables, coverage=share)["set"] for share in (0.3, 0.8))
    sizes = [[0 if not one else one.count("|") + 1 for one in part] for part in (narrow, wide)]
    assert (np.array(sizes[0]) <= sizes[1]).all()
    assert sum(sizes[0]) < sum(sizes[1])


def test_the_first_split_is_kept_and_all_are_scored(tables):
    def fit(seed):
        return eg.TableModel(METHOD, refit=False).fit(*tables, **COLUMNS, seed=seed)

    singles, several = [fit(seed) for seed in (3, 1, 2)], fit([3, 1, 2])
    rows = [torch.from_numpy(one.predict_proba(*tables, **RAW)) for one in (*singles, several)]
    assert torch.equal(rows[0], rows[-1])
    scores = [one.evaluate()["balanced_accuracy"] for one in (*singles, several)]
    assert scores[-1] == pytest.approx(np.mean(scores[:-1]))
    hits = sum(np.array(one.info.confusion) for one in singles)
    assert several.info.confusion == hits.tolist()
    assert several.info.made["reason"] == "the first of 3 splits"


def test_the_rarer_class_is_that_of_the_split_that_is_kept(two_classes):
    nodes = two_classes[0].assign(kind=["fraud", "honest"] * 60)
    place = torch.arange(120)

    def protocol(graph, *, seed):
        train, val, test = (place % 3 == part for part in range(3))
        return eg.Task(graph, train & ((graph.y == seed) | (place < 60)), val, test, 2)

    def fit(seed):
        model = eg.TableModel("gcn", protocol=protocol, refit=False)
        return model.fit(nodes, two_classes[1], **COLUMNS, seed=seed, progress=False)

    alone = [fit(seed) for seed in (0, 1)]
    assert [model.threshold.positive for model in alone] == [1, 0]
    assert [fit(seeds).threshold.positive for seeds in ([0, 1], [1, 0])] == [1, 0]


def test_a_graph_is_trained_on_and_predicted(tmp_path):
    graph = eg.toy()
    task = eg.splits.Natural(train=0.6, val=0.2)(graph, seed=3)
    model = eg.TableModel(eg.GCN(max_epochs=5), refit=False).fit(graph, seed=3)
    expected = eg.GCN(max_epochs=5).fit(task, seed=3).predict_proba(graph)
    assert torch.equal(torch.from_numpy(model.predict_proba(graph, calibrated=False)), expected)
    assert model.classes_ == ("0", "1", "2", "3", "4")
    assert model.predict(graph)["id"].tolist() == list(range(2000))
    assert model.explain(7, known=graph).node == 7
    graph.train_mask, graph.val_mask, graph.test_mask = task.train, task.test, task.val
    masked = eg.TableModel(eg.GCN(max_epochs=5), refit=False).fit(graph)
    assert masked.method_.labelled_.nodes.equal(task.train.nonzero().squeeze(1))
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="trained on a graph"):
        eg.TableModel.load(tmp_path / "model").predict(NODES, EDGES)


def test_a_named_method_takes_the_defaults_for_the_graph(tables):
    model = eg.TableModel("gcn").fit(*tables, **COLUMNS, progress=False)
    assert model.method_.patience == eg.GCN.graph_defaults(None)["patience"] == eg.GCN().patience


def test_a_prediction_is_explained_by_ids(model, tables, folder):
    why = model.explain("a-003")
    assert why.ids[why.node] == "a-003"
    row = model.predict(*tables).set_index("account").loc["a-003"]
    assert why.class_names[why.predicted] == row["class"]
    assert model.classes_[why.predicted] == row["class"]
    new = model.explain("new-1", nodes=NODES, edges=EDGES, known=tables)
    assert new.ids[-2:] == ("new-1", "new-2")
    eg.TableModel(METHOD).fit("shop", **COLUMNS, seed=5).save("model")
    loaded = eg.TableModel.load("model")
    assert loaded.explain("a-003").margin == pytest.approx(why.margin)
    (folder / "shop").rename(folder / "moved")
    with pytest.raises(ValueError, match="no longer exists"):
        loaded.explain("a-003")
    assert loaded.explain("a-003", known="moved").margin == pytest.approx(why.margin)


def test_a_model_saved_without_a_record_loads(tmp_path):
    graph = eg.toy()
    task = eg.splits.Natural()(graph, seed=0)
    method = eg.GCN(max_epochs=2).fit(task, seed=0)
    method.save(tmp_path / "model")
    model = eg.TableModel.load(tmp_path / "model")
    assert model.info == ModelInfo()
    assert torch.equal(torch.from_numpy(model.predict_proba(graph)), method.predict_proba(graph))
    with pytest.raises(ValueError, match="no calibrator"):
        model.predict(graph, calibrated=True)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, t: eg.TableModel("gnc"), ValueError, "method 'gnc'. Did you mean gcn"),
        (lambda m, t: eg.TableModel().predict(*t), RuntimeError, "not fitted yet"),
        (lambda m, t: m.predict(NODES), ValueError, "edges must be a pandas DataFrame"),
        (lambda m, t: m.predict(NODES, EDGES), ValueError, "names 'a-000', which is not the"),
        (lambda m, t: m.predict(NODES[["account"]], EDGES[1:]), ValueError, "no column 'amount'"),
        (lambda m, t: m.predict(NODES[:0], EDGES, known=t), ValueError, "nodes has no rows"),
        (lambda m, t: m.predict("nowhere"), OSError, "nowhere does not exist"),
        (lambda m, t: m.explain("nobody"), ValueError, "There is no node 'nobody'"),
        (lambda m, t: m.explain("new-1", nodes=NODES, edges=EDGES), ValueError, "known must be"),
        (lambda m, t: eg.TableModel().fit(*t, label="sort"), ValueError, "sort"),
        (lambda m, t: eg.TableModel().fit(*t, id="account"), ValueError, "set label to"),
        (lambda m, t: eg.TableModel().fit(*t, **COLUMNS, drop=["hue"]), ValueError, "'hue'"),
        (lambda m, t: eg.TableModel().fit(*t, **COLUMNS, seed=[]), ValueError, "at least one seed"),
        (lambda m, t: eg.TableModel().fit(eg.toy(), label="kind"), ValueError, "takes no label"),
        (lambda m, t: eg.TableModel().fit("nowhere"), ValueError, "no folder nowhere"),
        (
            lambda m, t: eg.TableModel(METHOD, positive="fraud").fit(*t, **COLUMNS),
            ValueError,
            "positive must be one of two classes, got 'fraud'; there are fraud, honest, shop",
        ),
    ],
)  # fmt: skip
def test_wrong_inputs_give_one_line(call, error, message, model, tables):
    with pytest.raises(error, match=message) as raised:
        call(model, tables)
    assert "\n" not in str(raised.value)
    assert "--" not in str(raised.value)


def test_a_committee_says_how_far_it_agrees(tables, monkeypatch):
    model = eg.TableModel(METHOD).fit(*tables, **COLUMNS, seed=5)
    assert "agreement" not in model.predict(NODES, EDGES, known=tables)

    def members(graph):
        sure = model.method_.predict_proba(graph)
        return Committee(torch.stack([sure, sure.roll(1, dims=1)]), torch.tensor([0.75, 0.25]))

    monkeypatch.setattr(model.method_, "predict_members", members)
    for calibrated in (False, True):
        frame = model.predict(NODES, EDGES, known=tables, calibrated=calibrated)
        assert frame["agreement"].tolist() == [0.75, 0.75]
        assert list(frame)[-1] == "agreement"


@pytest.mark.parametrize("missing", [False, True])
def test_classes_come_out_as_they_went_in(missing, tmp_path):
    nodes = pandas.DataFrame({"id": range(10, 130), "size": [i % 3 for i in range(120)]})
    nodes["kind"] = nodes["size"].where(nodes["id"] < 100) if missing else nodes["size"]
    edges = pandas.DataFrame({"source": range(10, 129), "target": range(11, 130)})
    model = eg.TableModel("labelpropagation").fit(nodes, edges, label="kind")
    model.save(tmp_path / "model")
    for one in (model, eg.TableModel.load(tmp_path / "model")):
        predicted = one.predict(nodes, edges)
        assert predicted["class"].dtype.kind == "i"
        assert predicted["id"].tolist() == list(range(10, 130))
        known = nodes["kind"].notna()
        assert (predicted["class"] == nodes["kind"])[known].mean() > 0.1
    text = nodes.assign(kind=nodes["size"].astype(str))
    model = eg.TableModel("labelpropagation").fit(text, edges, label="kind")
    assert set(model.predict(text, edges)["class"]) <= {"0", "1", "2"}


def fitted(method):
    """A method after one fit, with its scores, and where its graph came from."""
    task = small_task()
    graph = LoadedGraph(task.graph)
    job = Job(label="", graph=graph, protocol=lambda *_, **__: task, method=method, seed=0)
    job = replace(job, calibrate=True)
    plan = RunPlan(dataset="", graph=task.graph, protocol=job.protocol, methods={}, seeds=[0])
    selection = Selection(plan)
    selection.add(score(job, task, method.fit(task, seed=0)))
    return selection, GraphSource(name="g", graph=task.graph)


def test_scores_are_from_before_refitting_and_the_threshold_from_after():
    selection, source = fitted(eg.Logistic(max_epochs=6))
    once = selection.best
    same, plain = assess(selection, source, refit=False)
    other, again = assess(selection, source, refit=True)
    assert same is once
    assert plain.refit is None
    assert plain.test == again.test == once.record.metrics
    assert again.refit is not None
    assert not torch.equal(other.probabilities, once.probabilities)
    expected = other.method.predict_proba(once.task.graph)
    assert torch.equal(other.probabilities, expected)


def interrupted(self, task, *, seed):
    def interrupt(history):
        if history.epochs == 2:
            raise KeyboardInterrupt

    return eg.GCN(max_epochs=5).fit(task, seed=seed, on_epoch=interrupt)


def out_of_memory(self, task, *, seed):
    raise MemoryError


@pytest.mark.parametrize(
    ("refitted", "reason"), [(interrupted, "it was interrupted"), (out_of_memory, "MemoryError")]
)
def test_a_second_fit_that_does_not_end_leaves_the_first(refitted, reason, monkeypatch):
    selection, source = fitted(eg.GCN(max_epochs=5))
    monkeypatch.setattr(eg.GCN, "refitted", refitted)
    with pytest.warns(UserWarning, match=f"Not trained again on all labels: {reason}"):
        same, info = assess(selection, source, refit=True)
    assert same is selection.best
    assert info.refit is None
    assert info.test


def test_unlabelled_nodes_of_training_are_predicted_without_predicting_again(tables, monkeypatch):
    model = eg.TableModel(METHOD).fit(*tables, **COLUMNS, seed=5)
    every = model.predict(*tables)
    monkeypatch.setattr(type(model.method_), "predict_proba", None)
    missing = (tables[0]["kind"] == "").to_numpy()
    assert model.predict_unlabelled().equals(every[missing].reset_index(drop=True))
    with pytest.raises(RuntimeError, match="Call fit first"):
        eg.TableModel("gcn").predict_unlabelled()


def test_the_positive_class_has_a_name_or_is_the_rarer_one():
    three = small_task()
    assert positive_index(three, None) is None
    with pytest.raises(ValueError, match="positive must be one of two classes, got 'x'"):
        positive_index(three, "x")


PEOPLE = pandas.DataFrame(
    {
        "id": range(12),
        "label": ["a", "b"] * 6,
        "size": range(12),
        "since": [f"2024-01-{day:02d}" for day in range(1, 13)],
        "split": ["train", "train", "val", "val", "test", "test"] * 2,
    }
)
CALLS = pandas.DataFrame({"source": range(12), "target": [(n + 2) % 12 for n in range(12)]})
PLAIN = PEOPLE.drop(columns="split")


@pytest.mark.parametrize(
    ("nodes", "columns", "split"),
    [
        (PLAIN, {}, Natural(train=0.6, val=0.2)),
        (PLAIN, {"time": "since"}, ByTime(train=0.6, val=0.2)),
        (PEOPLE, {}, Given()),  # a column called split is recognised
        (PEOPLE, {"split": "split"}, Given()),
        (PEOPLE, {"time": "since"}, ByTime(train=0.6, val=0.2)),  # named beats recognised
        (PEOPLE, {"time": "since", "split": "split"}, Given()),
    ],
)
def test_columns_decide_the_split(nodes, columns, split):
    assert open_tables(nodes, CALLS, **columns).make_split() == split


def test_a_data_set_gets_the_split_of_the_paper():
    source = open_dataset("toy")
    assert source.is_dataset
    assert source.make_split() == Step()
    assert source.data == source.name == "toy"


def test_masks_of_a_graph_decide():
    graph = eg.toy()
    assert open_tables(graph).make_split() == Natural(train=0.6, val=0.2)
    graph.train_mask = graph.test_mask = torch.zeros(2000, dtype=torch.bool)
    assert open_tables(graph).make_split() == Given()


def test_paths_are_absolute(tmp_path, monkeypatch):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    CALLS.to_csv(tmp_path / "calls.csv", index=False)
    monkeypatch.chdir(tmp_path)
    source = open_tables("people.csv", "calls.csv", drop=["size", "since"], label="label")
    assert source.name == "people"
    assert source.data == str(tmp_path / "people.csv")
    edges = str(tmp_path / "calls.csv")
    assert source.columns == {"label": "label", "drop": "size,since", "edges": edges}
    assert not source.is_dataset


def test_objects_in_memory_have_no_path():
    source = open_tables(PEOPLE, CALLS)
    assert source.data is None
    assert source.tables.class_names == ("a", "b")
