"""Auto: candidates from the table, what is kept of them, and what a saved model holds."""

import dataclasses
import json
from dataclasses import replace

import pytest
import torch

from evengraph.core.rng import generator, seeded
from evengraph.core.task import folds
from evengraph.methods import METHODS, Auto
from evengraph.methods import auto as module
from evengraph.methods.auto import Search
from evengraph.methods.bases.method import Committee, pack_method, restore_method
from evengraph.pipeline.explanation import explain
from evengraph.pipeline.model_info import load_model
from small_graphs import small_task

TASK = small_task()
SHORT = {"max_epochs": 6, "patience": 6}


def fitted(names, **params):
    return Auto(candidates=names, **SHORT, **params).fit(TASK, seed=0)


def average(names, weights):
    """A fitted method that averages two or more of its candidates."""
    method = fitted(names)
    kinds = [METHODS[name] for name in names.split(",")]
    method.members_ = [kind(**SHORT).fit(TASK, seed=index) for index, kind in enumerate(kinds)]
    method.weights_ = weights
    return method


def test_the_candidates_are_those_that_methods_declare():
    stages = {stage.stage for stage in Auto(**SHORT).fit(TASK, seed=0).history_}
    entries = [kind(**entry) for kind in METHODS.values() for entry in kind.portfolio]
    assert stages == {method.full_title for method in entries}
    titles = {"GCN", "Logistic", "Logistic over 2 hops"}
    assert {stage.stage for stage in fitted("gcn,logistic").history_} == titles


def test_epochs_are_upper_limits():
    method = Auto(candidates="gcn,logistic", max_epochs=5, patience=3).fit(TASK, seed=0)
    assert [(stage.max_epochs, stage.patience) for stage in method.history_] == [(5, 3)] * 3
    method = Auto(candidates="logistic").fit(TASK, seed=0)
    assert [(stage.max_epochs, stage.patience) for stage in method.history_] == [(20, 100)] * 2


def test_a_single_candidate_is_predicted_as_it_is():
    method = fitted("iceberg")
    (member,) = method.members_
    expected = member.predict_proba(TASK.graph)
    torch.testing.assert_close(method.predict_proba(TASK.graph), expected)
    assert method.weights_ == [1.0]
    assert method.summary_[0].startswith(f"Chose {member.full_title} (validation balanced accura")


def test_an_average_is_that_of_probabilities():
    method = average("gcn,logistic,boosting", [0.5, 0.3, 0.2])
    parts = [member.predict_proba(TASK.graph) for member in method.members_]
    expected = 0.5 * parts[0] + 0.3 * parts[1] + 0.2 * parts[2]
    torch.testing.assert_close(method.predict_proba(TASK.graph), expected)


def test_a_saved_average_holds_its_members_alone(tmp_path):
    method = average("gcn,logistic,boosting", [0.5, 0.3, 0.2])
    method.save(tmp_path / "model")
    assert (
        len(list((tmp_path / "model").iterdir())) == 3
    )  # one description, one file of tensors, the card
    loaded = load_model(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(TASK.graph), method.predict_proba(TASK.graph))
    assert loaded.summary_ == method.summary_
    assert [type(member) for member in loaded.members_] == [type(m) for m in method.members_]
    loaded.save(tmp_path / "again")
    again = load_model(tmp_path / "again")
    assert torch.equal(again.predict_proba(TASK.graph), method.predict_proba(TASK.graph))


def test_a_member_of_a_former_version_loads(tmp_path):
    method = average("boosting,logistic", [0.6, 0.4])
    about, tensors = pack_method(method)
    fields = about["details"]["members"][0]["fields"]
    fields["neighbours"] = fields.pop("hops") == 1
    del fields["columns"]
    again = Auto(**about["fields"])
    restore_method(again, json.loads(json.dumps(about)), tensors, torch.device("cpu"))
    assert torch.equal(again.predict_proba(TASK.graph), method.predict_proba(TASK.graph))
    about["details"]["members"][0]["method"] = "nothing"
    with pytest.raises(ValueError, match="there is no method 'nothing' in this version"):
        restore_method(again, about, tensors, torch.device("cpu"))


@pytest.mark.parametrize("node", [3, 40, 120])
def test_an_average_is_explained_by_all_its_members(node):
    method = average("boosting,gcn,logistic", [0.5, 0.3, 0.2])
    found = explain(method, TASK.graph, node, task=TASK, top=99)
    rows = method.predict_proba(TASK.graph)[node].double().log()
    assert found.margin == pytest.approx(float(rows[found.predicted] - rows[found.runner_up]))
    assert {"own", "others", "mean of neighbours"} <= {part.origin for part in found.columns}
    alone = average("gcn", [1.0])
    same = [alone, alone.members_[0]]
    one, other = (explain(part, TASK.graph, node, task=TASK) for part in same)
    assert one.columns == other.columns
    assert one.labelled == other.labelled


def test_refitting_keeps_what_was_selected(monkeypatch):
    method = average("gcn,logistic", [0.75, 0.25])
    method.summary_ = ["Chose both."]
    full = dataclasses.replace(TASK, train=~TASK.val, test=TASK.test & False)
    again = method.refitted(full, seed=4)
    assert [type(member) for member in again.members_] == [type(m) for m in method.members_]
    assert again.weights_ == [0.75, 0.25]
    assert again.summary_ == ["Chose both."]
    assert again.labelled_.nodes.numel() == int(full.train.sum())
    expected = method.members_[1].refitted(full, seed=4).predict_proba(TASK.graph)
    assert torch.equal(again.members_[1].predict_proba(TASK.graph), expected)
    rows = again.predict_proba(TASK.graph)
    assert torch.allclose(rows.sum(1), torch.ones(len(rows)))
    monkeypatch.setattr(type(method.members_[0]), "_fit", lambda self, task: 1 / 0)
    with pytest.raises(ValueError, match="GCN could not be fitted again in time"):
        method.refitted(full, seed=4)


def test_the_committee_is_that_of_the_members(monkeypatch):
    assert fitted("logistic").predict_members(TASK.graph) is None
    method = average("gcn,logistic", [0.75, 0.25])
    two = torch.stack([method.members_[0].predict_proba(TASK.graph)] * 2)
    monkeypatch.setattr(method.members_[0], "predict_members", lambda graph: Committee.even(two))
    found = method.predict_members(TASK.graph)
    assert found.weights.tolist() == [0.375, 0.375, 0.25]
    mean = torch.einsum("m,mnc->nc", found.weights, found.probabilities)
    torch.testing.assert_close(mean, method.predict_proba(TASK.graph))
    method.members_, method.weights_ = method.members_[:1], [1.0]
    assert torch.equal(method.predict_members(TASK.graph).probabilities, two)


def test_without_a_limit_reached_a_seed_decides_everything():
    one, other = (fitted("iceberg,gcn,logistic") for _ in range(2))
    assert torch.equal(one.predict_proba(TASK.graph), other.predict_proba(TASK.graph))
    assert one.weights_ == other.weights_


def test_without_edges_only_models_without_the_graph_are_tried():
    graph = TASK.graph.clone()
    graph.edge_index = graph.edge_index[:, :0]
    method = Auto(candidates="gcn,logistic", **SHORT).fit(replace(TASK, graph=graph), seed=0)
    assert [stage.stage for stage in method.history_] == ["Logistic"]
    assert method.summary_[0].startswith("The graph does not help, it has no edges: chose Logis")
    method = Auto(candidates="gcn", **SHORT).fit(replace(TASK, graph=graph), seed=0)
    assert [stage.stage for stage in method.history_] == ["GCN"]


def test_out_of_time_the_first_counts_with_its_best_weights_so_far():
    method = Auto(candidates="gcn,logistic", time_limit=1e-9).fit(TASK, seed=0)
    assert [member.title for member in method.members_] == ["Logistic"]
    assert [stage.epochs for stage in method.history_] == [0]
    assert method.summary_[1] == (
        "Ended by the time limit (a candidate may take half of the time left, a quick one a "
        "tenth): Logistic. Not reached: GCN; Logistic over 2 hops."
    )


def test_with_folds_nodes_are_predicted_by_models_that_did_not_learn_from_them():
    method = fitted("logistic", folds=5)
    nodes, rows, known = method.held_out_
    parts = folds(TASK, 5, generator(drawn_seed()))
    assert nodes.tolist() == torch.cat([part.val_nodes for part in parts]).tolist()
    assert torch.equal(known, TASK.train | TASK.val)
    found = method.predict_task(TASK)
    torch.testing.assert_close(found[nodes], rows)
    plain = method.predict_proba(TASK.graph)
    torch.testing.assert_close(found[TASK.test], plain[TASK.test])
    assert torch.equal(method.held_out(TASK), known)
    first = method.members_[: len(parts)]
    for part, member in zip(parts, first, strict=True):
        again = type(member)(**member.get_params()).fit(part, seed=drawn_seed())
        torch.testing.assert_close(
            again.predict_proba(TASK.graph), member.predict_proba(TASK.graph)
        )


def drawn_seed():
    """The seed that a fit with seed 0 draws first."""
    with seeded(0):
        return int(torch.randint(2**31, ()))


def test_after_one_fold_validation_labels_are_not_learnt_from(monkeypatch):
    monkeypatch.setattr(Search, "_run_folds", lambda *_: None)
    method = fitted("logistic", folds=5)
    assert method.held_out_ is None
    assert torch.equal(method.held_out(TASK), TASK.val)
    alone = fitted("logistic")
    torch.testing.assert_close(method.predict_task(TASK), alone.predict_task(TASK))


def test_another_task_is_predicted_as_it_is():
    method = fitted("logistic", folds=5)
    other = replace(TASK, train=TASK.test, test=TASK.train)
    torch.testing.assert_close(method.predict_task(other), method.predict_proba(TASK.graph))
    assert torch.equal(method.held_out(other), TASK.val)


def test_refitting_with_folds_keeps_the_candidates_and_their_weights():
    method = fitted("logistic,gcn", folds=5)
    full = replace(TASK, train=TASK.train | TASK.test, test=TASK.test & False)
    again = method.refitted(full, seed=1)
    assert {type(m) for m in again.members_} == {type(m) for m in method.members_}
    assert sum(again.weights_) == pytest.approx(1)
    by_kind = [
        {t: sum(w for m, w in zip(x.members_, x.weights_, strict=True) if type(m) is t)}
        for x in (method, again)
        for t in {type(m) for m in method.members_}
    ]
    half = len(by_kind) // 2
    assert [pytest.approx(one) for one in by_kind[:half]] == by_kind[half:]
    assert again.held_out(full).sum() > again.held_out(TASK).sum()


def test_many_labels_need_no_folds(monkeypatch):
    monkeypatch.setattr(module, "FEW", 1)
    assert fitted("logistic", folds=5).held_out_ is None
