"""Boosting: its table by hand, its trees against scikit-learn's own answer."""

import sys
from functools import partial

import pytest
import torch
from oracles import check_chosen, dense_graph, task_with
from sklearn.ensemble import HistGradientBoostingClassifier
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.methods import Boosting
from evengraph.methods.bases.saving import write_model
from evengraph.metrics.multiclass import validation_score
from evengraph.ops.context import label_columns, place_columns
from evengraph.ops.trees import separation
from evengraph.pipeline.model_info import load_model
from evengraph.testing.contract import with_graph
from small_graphs import graph_of, small_task


def neighbour_means(graph):
    matrix = dense_graph(graph)
    return (matrix / matrix.sum(1, keepdim=True).clamp(min=1)) @ graph.x.double()


def test_a_row_holds_features_and_the_mean_of_the_neighbours():
    graph = graph_of(
        torch.tensor([[1.0, 0], [3, 4], [5, 0], [7, 7]]), [(0, 1), (0, 2), (0, 0)], [0, 0, 1, 1]
    )
    table = Boosting()._table(graph, torch.arange(4))
    assert table.tolist() == [[1, 0, 4, 2], [3, 4, 1, 0], [5, 0, 1, 0], [7, 7, 0, 0]]
    some = Boosting()._table(graph, torch.tensor([0, 3]), torch.tensor([1, 2]))
    assert some.tolist() == [[0, 4], [7, 0]]
    alone = Boosting(hops=0)._table(graph, torch.arange(4))
    assert torch.equal(alone, graph.x)


def test_further_hops_add_the_means_of_means():
    graph = toy(40, 80, 6, 3, seed=0)
    first = neighbour_means(graph)
    second = neighbour_means(Data(x=first, edge_index=graph.edge_index, num_nodes=40))
    exact = torch.cat([graph.x.double(), first, second], dim=1)
    table = Boosting(hops=2)._table(graph, torch.arange(40))
    torch.testing.assert_close(table.double(), exact, rtol=1e-4, atol=1e-7)
    some = torch.tensor([1, 8, 13])
    assert torch.equal(Boosting(hops=2)._table(graph, torch.arange(40), some), table[:, some])


def test_the_degree_is_one_more_feature():
    graph = toy(40, 80, 6, 3, seed=0)
    degree = dense_graph(graph).sum(1, keepdim=True).log1p()
    wider = Data(x=torch.cat([graph.x, degree], dim=1).float(), edge_index=graph.edge_index)
    table = Boosting(hops=2, degree=True)._table(graph, torch.arange(40))
    assert torch.equal(table, Boosting(hops=2)._table(wider, torch.arange(40)))
    alone = Boosting(hops=0, degree=True)._table(graph, torch.arange(40))
    assert torch.equal(alone, Boosting(hops=0)._table(graph, torch.arange(40)))
    task = small_task()
    method = Boosting(hops=2, degree=True, columns=3, max_epochs=5).fit(task, seed=0)
    score = float(validation_score(method.predict_proba(task.graph), task))
    assert score == pytest.approx(method.history_[0].best_score)


def test_context_adds_place_and_labels_but_never_a_node_s_own():
    task = small_task()
    method = Boosting(hops=1, context=True, max_epochs=3).fit(task, seed=0)
    nodes, known = torch.arange(150), (task.train_nodes, task.graph.y[task.train_nodes])
    plain = Boosting(hops=1)._table(task.graph, nodes)
    table = method._table(task.graph, nodes)
    assert torch.equal(table[:, : plain.shape[1]], plain)
    expected = torch.cat([place_columns(task.graph), label_columns(task.graph, *known, 3)], dim=1)
    torch.testing.assert_close(table[:, plain.shape[1] :], expected, rtol=1e-4, atol=1e-6)
    learnt = method._context(task.graph, learning=True)
    assert torch.equal(learnt[:, 3:], label_columns(task.graph, *known, 3, held_out=True))
    assert not torch.equal(learnt[task.train], expected[task.train])
    assert torch.equal(learnt[~task.train], expected[~task.train])
    assert (method.context_width, method.uses_labels) == (12, True)
    alone = Boosting(hops=0, context=True, max_epochs=3).fit(task, seed=0)
    assert (alone.context_width, alone.uses_labels) == (0, False)


def test_columns_are_selected_of_features_and_context_stays():
    task = small_task()
    method = Boosting(hops=1, columns=2, context=True, max_epochs=3).fit(task, seed=0)
    columns = method._columns(task, partial(method._table, task.graph))
    width = 2 * task.graph.num_features
    assert (columns < width).sum() == 4
    assert columns[4:].tolist() == list(range(width, width + 12))


@pytest.mark.parametrize("engine", ["sklearn", "lightgbm"])
def test_without_stopping_all_rounds_are_grown_and_validation_has_no_influence(engine):
    pytest.importorskip(engine)
    task = small_task()
    params = {"max_epochs": 12, "patience": 1, "stop_early": False, "engine": engine}
    method = Boosting(**params).fit(task, seed=0)
    assert method.trees_.roots.numel() == 36
    flipped = with_graph(task, y=torch.where(task.val, (task.graph.y + 1) % 3, task.graph.y))
    other = Boosting(**params).fit(flipped, seed=0)
    assert torch.equal(other.predict_proba(task.graph), method.predict_proba(task.graph))


@pytest.mark.parametrize("engine", ["sklearn", "lightgbm"])
def test_a_sample_of_columns_is_drawn_alike_for_all_seeds(engine):
    pytest.importorskip(engine)
    task = small_task()
    rows = [
        Boosting(sample=share, max_epochs=5, stop_early=False, engine=engine)
        .fit(task, seed=seed)
        .predict_proba(task.graph)
        for share, seed in ((0.2, 0), (0.2, 1), (1.0, 0))
    ]
    assert torch.equal(rows[0], rows[1])
    assert not torch.allclose(rows[0], rows[2], atol=1e-3)


@pytest.mark.parametrize(
    ("hops", "title"),
    [(0, "Boosting without the graph"), (1, "Boosting"), (2, "Boosting over 2 hops")],
)
def test_hops_are_in_the_title_and_say_whether_the_graph_is_used(hops, title):
    assert Boosting(hops=hops).full_title == title
    assert Boosting(hops=hops).uses_graph == (hops > 0)


def test_of_many_columns_the_most_telling_of_each_part_are_used():
    task = small_task()
    method = Boosting(hops=2, columns=5, max_epochs=10).fit(task, seed=0)
    width, nodes = task.graph.num_features, task.train_nodes
    reader = partial(method._table, task.graph)
    table = reader(nodes)
    ratios = separation(table, task.graph.y[nodes], 3).view(3, width)
    expected = {
        part * width + index for part in range(3) for index in ratios[part].topk(5).indices.tolist()
    }
    assert set(method._columns(task, reader).tolist()) == expected
    assert (
        set(
            method.trees_.feature[
                method.trees_.left != torch.arange(len(method.trees_.left))
            ].tolist()
        )
        <= expected
    )
    scores = [float(validation_score(method.predict_proba(task.graph), task))]
    assert scores == pytest.approx([method.history_[0].best_score])


def test_models_of_former_versions_load(tmp_path):
    task = small_task()
    for hops in (0, 1):
        method = Boosting(hops=hops, max_epochs=8).fit(task, seed=0)
        about, tensors = method.get_params(), method._state()
        del about["hops"], about["columns"], about["degree"], about["engine"]
        about["neighbours"] = hops == 1
        labelled = {f"labelled.{key}": part for key, part in method.labelled_._asdict().items()}
        description = {
            "method": "boosting",
            "fields": about,
            "num_features": method.num_features_,
            "num_classes": 3,
            "class_names": [],
            "history": [],
            "extra": {},
        }
        write_model(tmp_path / str(hops), description, {**tensors, **labelled})
        loaded = load_model(tmp_path / str(hops))
        assert (loaded.hops, loaded.columns) == (hops, 0)
        assert torch.equal(loaded.predict_proba(task.graph), method.predict_proba(task.graph))


def test_the_last_digits_do_not_count():
    graph = toy(60, 200, 12, 3, seed=0)
    graph.x = torch.rand(60, 12, generator=torch.Generator().manual_seed(0))
    table = Boosting()._table(graph, torch.arange(60))
    exact = torch.cat([graph.x.double(), neighbour_means(graph)], dim=1)
    torch.testing.assert_close(table.double(), exact, rtol=1e-4, atol=1e-7)
    graph.x = graph.x * (1 + 1e-7)
    same = Boosting()._table(graph, torch.arange(60)) == table
    assert same.float().mean() > 0.99


@pytest.mark.parametrize("counts", [(20, 12), (12, 9, 4)])
@pytest.mark.parametrize("balance", [False, True])
def test_the_answer_is_that_of_scikit_learn(counts, balance):
    task = task_with(*counts)
    method = Boosting(max_epochs=25, balance=balance).fit(task, seed=0)
    x = method._table(task.graph, torch.arange(150)).double().numpy()
    rounds = method.history_[0].best_epoch
    assert rounds > 0
    theirs = HistGradientBoostingClassifier(
        max_iter=rounds,
        l2_regularization=5e-4,
        min_samples_leaf=1,
        early_stopping=False,
        class_weight="balanced" if balance else None,
    ).fit(x[task.train.numpy()], task.graph.y[task.train].numpy())
    expected = torch.from_numpy(theirs.predict_proba(x))
    found = method.predict_proba(task.graph).double()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(found.argmax(1), expected.argmax(1))


def test_the_number_of_rounds_is_chosen():
    task = task_with(9, 9, 9)
    method = Boosting(max_epochs=40, patience=12).fit(task, seed=0)
    check_chosen(method, task)
    history = method.history_[0]
    assert method.trees_.roots.numel() == 3 * history.best_epoch
    assert history.epochs <= history.first_best_epoch + 13


def test_an_interrupt_before_the_first_score_keeps_the_rounds_that_are_trained():
    def stop(history):
        raise KeyboardInterrupt

    task = task_with(9, 9, 9)
    method = Boosting(max_epochs=40).fit(task, seed=0, on_epoch=stop)
    assert method.history_[0].epochs == 0
    assert method.trees_.roots.numel() == 3 * 20
    trained = method.predict(task.graph)[task.train] == task.graph.y[task.train]
    assert trained.float().mean() > 0.9


def test_before_any_round_classes_are_as_frequent_as_they_weigh():
    task = task_with(9, 4, 1)
    values = Boosting(max_epochs=0).fit(task, seed=0).predict_proba(task.graph)
    torch.testing.assert_close(values[0], torch.full((3,), 1 / 3))
    values = Boosting(max_epochs=0, balance=False).fit(task, seed=0).predict_proba(task.graph)
    torch.testing.assert_close(values[0], torch.tensor([9.0, 4.0, 1.0]) / 14)


def test_a_saved_model_of_another_engine_predicts_without_it(tmp_path, monkeypatch):
    engine = "lightgbm"
    pytest.importorskip(engine)
    task = small_task()
    method = Boosting(engine=engine, max_epochs=8).fit(task, seed=0)
    check_chosen(method, task)
    assert method.full_title == f"Boosting ({engine})"
    method.save(tmp_path / "model")
    for name in [name for name in sys.modules if name.partition(".")[0] == engine]:
        monkeypatch.setitem(sys.modules, name, None)
    loaded, proba = load_model(tmp_path / "model"), method.predict_proba(task.graph)
    assert torch.equal(loaded.predict_proba(task.graph), proba)
    former = Boosting.current_params({**method.get_params(), "engine": "xgboost"})
    assert former == method.get_params()  # what XGBoost once grew is stored in the same form
    with pytest.raises(ValueError, match=r"is not installed; try: pip install"):
        method.fit(task, seed=0)


def test_relations_are_columns_of_their_own():
    task = small_task()
    source, target = task.graph.edge_index
    kind = (task.graph.y[source] == task.graph.y[target]).long()
    related = with_graph(task, relation_index=torch.stack([kind, source, target]), num_relations=2)
    nodes = torch.arange(5)
    method = Boosting(hops=1)
    table, plain = (method._table(each.graph, nodes) for each in (related, task))
    width = plain.shape[1] // 2
    assert torch.equal(table[:, : 2 * width], plain)
    for relation in range(2):
        for node in range(5):
            others = target[(source == node) & (kind == relation)]
            mean = task.graph.x[others].mean(0) if len(others) else torch.zeros(width)
            start = (2 + relation) * width
            torch.testing.assert_close(table[node, start : start + width], mean, rtol=1e-4, atol=0)
    fitted = Boosting(max_epochs=3).fit(related, seed=0)
    assert not torch.equal(
        fitted.predict_proba(related.graph),
        Boosting(max_epochs=3).fit(task, seed=0).predict_proba(task.graph),
    )
    with pytest.raises(ValueError, match="num_relations must be 2 as in training, got 0"):
        fitted.predict_proba(task.graph)
