"""Methods learn packed graphs as they learn them in memory."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import torch

from evengraph.datasets import toy
from evengraph.disk import PackedGraph, learners, pack_graph, shards
from evengraph.disk import models as on_disk
from evengraph.disk import propagation as row_blocks
from evengraph.disk.models import DiskGraph, learner_of
from evengraph.methods import GCN, MLP, Auto, Boosting, IceBerg, Unison
from evengraph.metrics.multiclass import balanced_accuracy, confusion_matrix
from evengraph.pipeline.model_info import load_model
from evengraph.splits import Natural
from evengraph.training.loop import CHECKSUM
from evengraph.training.ranks import ALONE, Ranks
from rank_workers import fit, fit_and_die, run_ranks

QUICK = {"max_epochs": 15}
MODELS = [
    Unison(members=2, hidden=16, **QUICK),
    Unison(members=1, hidden=16, components=9, **QUICK),  # fewer than features
    IceBerg(hidden=16, **QUICK),
    MLP(hidden=16, **QUICK),
    Boosting(hops=2, degree=True, max_epochs=10),
    Boosting(hops=0, columns=5, max_epochs=10),
]

GROWTH = """
import sys
from pathlib import Path

from evengraph.disk import PackedGraph
from evengraph.methods import Boosting
from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.disk.models import DiskGraph
from evengraph.splits import Natural


def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def growth(count, memory):
    folder = Path(sys.argv[1]) / str(count)
    if not folder.exists():
        pack_graph(toy(count, count, 128, 5), folder)
    disk = DiskGraph.open(PackedGraph.open(folder), memory)
    task = Natural(train=0.8, val=0.1)(disk.labels(), seed=0)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before = resident("VmRSS")
    method = Boosting(hops=0, max_epochs=2, leaves=4, engine="lightgbm")
    disk.fit(method, task, progress=False)
    return len(method.labelled_.nodes), resident("VmHWM") - before


growth(2_000, 10**6)  # loads libraries
print(*growth(60_000, 45 * 10**6), *growth(60_000, 10**12))
"""


def opened(graph, folder, memory=10**7):
    return DiskGraph.open(pack_graph(graph, folder), memory)


def split_of(disk):
    return Natural(train=0.3, val=0.2)(disk.labels(), seed=0)


def whole(disk, method):
    return torch.cat([probabilities for _, probabilities in disk.predict(method)])


@pytest.mark.parametrize("method", MODELS, ids=repr)
def test_a_graph_that_fits_gives_the_result_of_memory(tmp_path, method):
    graph = toy(300, 900, 12, 3)
    task = Natural(train=0.3, val=0.2)(graph, seed=0)
    disk = opened(graph, tmp_path / "graph")
    split = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    assert torch.equal(split.train, task.train)
    here, there = (type(method)(**method.get_params()) for _ in range(2))
    expected = here.fit(task, seed=3, progress=False).predict_proba(graph)
    disk.fit(there, split, seed=3, progress=False)
    assert list(there.notes_) == list(here.notes_)  # nothing was left out
    torch.testing.assert_close(whole(disk, there), expected, rtol=1e-3, atol=1e-4)
    learner = learner_of(there, disk.space)
    widths = [table.shape[1] for table in learner.tables(disk.x).values()]
    assert sum(widths) <= learner.row_width(12) <= 1.5 * sum(widths)  # what a row takes in memory
    there.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    torch.testing.assert_close(whole(disk, again), expected, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(again.predict_proba(graph), expected, rtol=1e-3, atol=1e-4)
    assert torch.equal(there.labelled_.nodes, here.labelled_.nodes)
    torch.testing.assert_close(there.labelled_.signatures, here.labelled_.signatures)


@pytest.mark.parametrize("method", [Unison(members=2), IceBerg(), MLP()], ids=repr)
def test_of_many_rows_networks_see_all_in_shards(tmp_path, monkeypatch, method):
    monkeypatch.setattr(on_disk, "SHARE", 0.0)  # room for few rows
    monkeypatch.setattr(on_disk, "SMALLEST", 200)
    monkeypatch.setattr(learners, "FULL", 100)
    seen, advance = {}, shards.ShardedRows.advance

    def watched(supply):
        shard = advance(supply)
        seen.setdefault(id(shard.rows), shard)  # which stay alive here, so ids are not used again
        return shard

    monkeypatch.setattr(shards.ShardedRows, "advance", watched)
    method.max_epochs = 60
    disk = opened(toy(3000, 15_000, 16, 3), tmp_path / "graph")
    task = split_of(disk)
    disk.fit(method, task, seed=0, progress=False)
    test = task.test.nonzero().squeeze(1)
    predicted = disk.predict_nodes(method, test).argmax(1)
    counts = confusion_matrix(task.graph.y[test], predicted, task.num_classes)
    assert balanced_accuracy(counts) > 0.5
    left = {path.name[:5] for path in disk.space.folder.iterdir()}
    assert left.isdisjoint({".scra", "train"})  # shards and checkpoints are removed
    assert torch.equal(method.labelled_.nodes, task.train_nodes)
    labels = torch.cat([shard.labels[shard.labelled] for shard in seen.values()])
    assert len(labels) >= 900
    assert (labels.bincount() >= task.class_counts).all()
    (note,) = (note for note in method.notes_ if note.startswith("Rows from disk"))
    assert "shards: all 900 training nodes, all 600 validation nodes" in note


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize(
    "method",
    [
        Boosting(hops=2, degree=True, max_epochs=25, engine="lightgbm"),
        Boosting(hops=0, columns=5, max_epochs=10, balance=False, engine="lightgbm"),
        Boosting(columns=7, max_epochs=10, engine="lightgbm"),
    ],
    ids=repr,
)
def test_trees_of_rows_in_passes_are_those_of_memory(tmp_path, monkeypatch, method, num_classes):
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(on_disk, "LARGEST", 300)
    monkeypatch.setattr(row_blocks, "MOST_ROWS", 100)
    graph = toy(2000, 9000, 16, num_classes, size_ratio=0.1)
    split = Natural(train=0.3, val=0.2)
    disk = opened(graph, tmp_path / "graph")
    task = split(disk.labels(), seed=0)
    here, there = (replace(method) for _ in range(2))
    here.fit(split(graph, seed=0), seed=0, progress=False)
    disk.fit(there, task, seed=0, progress=False)
    assert torch.equal(there.labelled_.nodes, here.labelled_.nodes)
    assert torch.equal(there.trees_.feature, here.trees_.feature)
    torch.testing.assert_close(there.trees_.threshold, here.trees_.threshold, rtol=1e-4, atol=1e-6)
    (own,), (expected,) = there.history_, here.history_
    assert own.best_epoch == expected.best_epoch
    assert own.score[1:] == pytest.approx(expected.score[1:])  # before any tree, classes tie
    assert own.loss == pytest.approx(expected.loss, rel=1e-4)
    torch.testing.assert_close(whole(disk, there), here.predict_proba(graph), rtol=1e-3, atol=1e-4)
    assert list(there.notes_) == []
    assert not list((tmp_path / "graph" / "propagated").glob(".*"))


def test_rows_in_passes_beyond_memory_are_sampled_and_an_interrupt_leaves_what_is_trained(
    tmp_path, monkeypatch
):
    def stop(history):
        raise KeyboardInterrupt

    monkeypatch.setattr(on_disk, "LARGEST", 100)
    monkeypatch.setattr(learners.TreeLearner, "streamed_rows", lambda *args: (120, 90))
    disk = opened(toy(1000, 3000, 8, 3), tmp_path / "graph")
    method = Boosting(max_epochs=40, engine="lightgbm")
    disk.fit(method, task := split_of(disk), on_epoch=stop, progress=False)
    assert method.trees_.roots.numel() == 3 * 20
    assert len(method.labelled_.nodes) == 120
    train, val = int(task.train.sum()), int(task.val.sum())
    assert list(method.notes_) == [
        f"Rows to learn from: 120 of {train} training nodes and 90 of {val} validation nodes; "
        "more memory allows for more."
    ]
    assert not list((tmp_path / "graph" / "propagated").glob(".*"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_hold_the_rows_of_trees(tmp_path):
    """They are 31 MB, and several times that in memory; what is resident includes mapped files."""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GROWTH, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    used, growth, used_in_memory, growth_in_memory = map(int, result.stdout.split())
    assert used == used_in_memory == 48_000
    assert growth < growth_in_memory / 3


@pytest.mark.parametrize("method", [Unison(members=1, hidden=8), MLP(hidden=8)], ids=repr)
@pytest.mark.parametrize("room", [10**6, 20], ids=["all", "few"])
def test_test_labels_are_hidden(tmp_path, monkeypatch, method, room):
    seen, reset = [], on_disk.reset
    monkeypatch.setattr(on_disk, "SHARE", 0.0)
    monkeypatch.setattr(on_disk, "SMALLEST", room)
    monkeypatch.setattr(on_disk, "reset", lambda *of: seen.append(of[1]) or reset(*of))
    disk = opened(toy(200, 400, 6, 2), tmp_path / "graph")
    method.max_epochs = 2
    disk.fit(method, split_of(disk), progress=False)
    (task,) = seen
    hidden = ~(task.train | task.val)
    assert hidden.any()
    assert (task.graph.y[hidden] == -1).all()


def test_only_methods_of_rows_are_taken(tmp_path):
    disk = opened(toy(60, 100, 4, 2), tmp_path / "graph")
    task = split_of(disk)
    with pytest.raises(
        ValueError, match="for a graph on disk use one of unison, iceberg, mlp, boosting, auto"
    ):
        disk.fit(GCN(), task)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "LARGEST", 10)
        with pytest.raises(ValueError, match="engine must be lightgbm for a graph on disk"):
            disk.fit(Boosting(hops=0), task, progress=False)
    with pytest.raises(ValueError, match="loss must not be 'renode'"):
        disk.fit(IceBerg(loss="renode"), task, progress=False)
    method = disk.fit(MLP(max_epochs=1), task, progress=False)
    wider = opened(toy(60, 100, 5, 2), tmp_path / "wider")
    with pytest.raises(ValueError, match="must have 4 features as in training, got 5"):
        list(wider.predict(method))


def test_a_second_fit_propagates_nothing(tmp_path):
    stages = []
    graph = pack_graph(toy(300, 900, 12, 3), tmp_path / "graph")
    disk = DiskGraph.open(graph, 10**7, progress=lambda stage, share: stages.append(stage))
    for seed in (0, 1):
        disk.fit(IceBerg(max_epochs=1), split_of(disk), seed=seed, progress=False)
        assert stages.count("propagate") == IceBerg().steps


def test_rows_of_views_are_not_wider_with_the_features(tmp_path):
    disk = opened(toy(300, 600, 4, 2), tmp_path / "graph")
    methods = IceBerg(), Unison(components=8)
    wide, narrow = (learner_of(each, disk.space).row_width(400) for each in methods)
    assert narrow < wide == 400


def quick():
    """The methods that several processes can train, small."""
    size = {"hidden": 16, "max_epochs": 10}
    unison = Unison(members=2, batch=32, components=9, **size)  # fewer than features
    return [unison, IceBerg(**size), MLP(**size)]


DRAWN = {"FULL": 0, "BATCH": 32}
SHARDS = DRAWN | {"SHARE": 0.0, "SMALLEST": 25}  # 75 rows of 300 at a time


def limit(monkeypatch, limits):
    for name, value in limits.items():
        monkeypatch.setattr(learners if name in DRAWN else on_disk, name, value)


@pytest.mark.parametrize("limits", [{}, DRAWN, SHARDS], ids=["all", "drawn", "shards"])
def test_two_processes_have_the_result_of_one(tmp_path, monkeypatch, limits):
    limit(monkeypatch, limits)
    pack_graph(toy(300, 900, 12, 3), tmp_path / "graph")
    expected = fit(ALONE, tmp_path / "graph", quick(), {})
    both = run_ranks(tmp_path / "ranks", fit, tmp_path / "graph", quick(), limits)
    for results in both:
        for (loss, score, predicted), (own_loss, own_score, own) in zip(
            expected, results, strict=True
        ):
            torch.testing.assert_close(torch.tensor(own_loss), torch.tensor(loss))
            assert own_score == pytest.approx(score)
            torch.testing.assert_close(own, predicted, rtol=1e-4, atol=1e-5)


def test_two_processes_share_propagation_and_rank_a_rare_class(tmp_path):
    pack_graph(toy(240, 700, 12, 2), tmp_path / "graph")
    methods = [Unison(members=1, hidden=8, **QUICK)]
    (one,) = fit(ALONE, tmp_path / "graph", methods, {})
    shutil.rmtree(tmp_path / "graph" / "propagated")
    (two,), _ = run_ranks(tmp_path / "ranks", fit, tmp_path / "graph", methods, {})
    assert two[1] == pytest.approx(one[1])
    torch.testing.assert_close(two[2], one[2], rtol=1e-4, atol=1e-5)
    paths = (tmp_path / "graph" / "propagated").rglob("*.npy")
    names = {path.name[:21] for path in paths}
    assert names == {"columns-000000-000006", "columns-000006-000012"}


def test_stored_features_are_used_as_they_were_written_and_in_their_own_folder(
    tmp_path, caplog, monkeypatch
):
    def fitted(folder):
        stages = []
        packed = PackedGraph.open(folder)
        disk = DiskGraph.open(packed, 10**7, progress=lambda stage, share: stages.append(stage))
        method = disk.fit(IceBerg(hidden=8, **QUICK), split_of(disk), progress=False)
        return whole(disk, method), stages.count("propagate")

    pack_graph(toy(300, 900, 12, 3), tmp_path / "graph")
    expected, computed = fitted(tmp_path / "graph")
    assert computed == IceBerg().steps
    for path in (tmp_path / "graph" / "propagated").rglob("columns-*.npy"):
        np.save(path, np.roll(np.load(path), 7, axis=0))
    found, again = fitted(tmp_path / "graph")
    assert torch.equal(found, expected)
    assert again == computed
    assert len(caplog.records) == 1
    assert fitted(tmp_path / "graph")[1] == 0
    shutil.copytree(tmp_path / "graph", tmp_path / "copy")  # as if somebody had sent it
    assert fitted(tmp_path / "copy")[1] == computed
    shutil.rmtree(tmp_path / "copy" / "propagated")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # on a disk that is only read
    monkeypatch.setattr(on_disk, "cache_folder", lambda: tmp_path / "cache")
    assert fitted(tmp_path / "copy")[1] == computed
    assert {path.name for path in (tmp_path / "copy").iterdir()}.isdisjoint({"propagated"})
    assert fitted(tmp_path / "copy")[1] == 0


@pytest.mark.parametrize("limits", [{}, SHARDS], ids=["all", "shards"])
def test_the_death_of_a_process_ends_the_others_and_the_next_start_resumes(
    tmp_path, monkeypatch, limits
):
    monkeypatch.setattr(shards, "SPAN", 4)
    limit(monkeypatch, limits)
    pack_graph(toy(300, 900, 12, 3), tmp_path / "graph")
    (method,) = quick()[:1]
    (expected,) = fit(ALONE, tmp_path / "graph", quick()[:1], {})
    limits = limits | {"SPAN": 4}
    error, dead = run_ranks(tmp_path / "ranks", fit_and_die, tmp_path / "graph", method, 0, limits)
    assert dead is None
    assert str(error) == (
        "Another of this run's 2 processes stopped. Restart all of them to resume."
    )
    (saved,) = (tmp_path / "graph" / "propagated").glob("training-*.pt")
    epochs = torch.load(BytesIO(saved.read_bytes()[CHECKSUM:]))["history"]["loss"]
    assert epochs == pytest.approx(expected[0][: len(epochs)])
    ((loss, score, predicted),) = fit(ALONE, tmp_path / "graph", quick()[:1], {})
    assert len(epochs) == 6
    assert (loss[:6], score) == (epochs, pytest.approx(expected[1]))
    torch.testing.assert_close(predicted, expected[2], rtol=1e-4, atol=1e-5)
    assert not saved.exists()
    assert not list((tmp_path / "graph" / "propagated").glob(".scratch-*"))


def test_trees_are_grown_by_one_process_for_all(tmp_path):
    pack_graph(toy(240, 700, 12, 3), tmp_path / "graph")
    methods = [Boosting(context=False, max_epochs=5)]
    ((_, scores, expected),) = fit(ALONE, tmp_path / "graph", methods, {})
    for ((_, found, predicted),) in run_ranks(
        tmp_path / "ranks", fit, tmp_path / "graph", methods, {}
    ):
        assert found == pytest.approx(scores)
        torch.testing.assert_close(predicted, expected)


def test_auto_races_the_candidates_that_learn_from_rows_as_in_memory(tmp_path):
    graph = toy(300, 900, 12, 3)
    disk = opened(graph, tmp_path / "graph")
    task = Natural(train=0.6, val=0.2)(graph, seed=0)
    options = {"candidates": "unison", "max_epochs": 5}
    inner = Auto(**options).fit(task, seed=3, progress=False)
    auto = disk.fit(Auto(**options), Natural(train=0.6, val=0.2)(disk.labels(), seed=0), seed=3)
    assert auto.weights_ == pytest.approx(inner.weights_, rel=1e-3)
    assert [type(member) for member in auto.members_] == [Unison] * len(inner.members_)
    torch.testing.assert_close(whole(disk, auto), inner.predict_proba(graph), rtol=1e-3, atol=1e-4)
    part, probabilities = disk.predict_task(auto, task)
    expected = inner.predict_task(task)[task.train | task.val | task.test]
    torch.testing.assert_close(probabilities, expected, rtol=1e-3, atol=1e-4)
    assert torch.equal(auto.held_out(part), inner.held_out(task)[task.train | task.val | task.test])


def test_auto_tries_trees_beside_unison_and_saves_its_choice(tmp_path):
    disk = opened(toy(300, 900, 12, 3), tmp_path / "graph")
    task = Natural(train=0.6, val=0.2)(disk.labels(), seed=0)
    auto = disk.fit(Auto(max_epochs=3, folds=2), task, progress=False)
    assert "4 candidates" in auto.summary_[0]
    auto.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    torch.testing.assert_close(whole(disk, again), whole(disk, auto))
    ranks = replace(disk.space, ranks=Ranks(0, 2))
    with pytest.raises(ValueError, match="time_limit must be 0 for several processes"):
        replace(disk, space=ranks).fit(Auto(time_limit=9), task)
    with pytest.raises(ValueError, match="candidates must be among"):
        disk.fit(Auto(candidates="logistic"), task)
