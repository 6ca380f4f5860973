"""What a run prints while it trains: each method once, its preset, a line per seed."""

import pytest
import torch
from command_line import UNIGNN, call
from torch_geometric.data import Data

from evengraph.cli.run import RunDisplay, given_split
from evengraph.core.records import Record
from evengraph.datasets import toy
from evengraph.methods import GCN, Reweight
from evengraph.pipeline.executor import Job, LoadedGraph
from evengraph.pipeline.run import RunPlan
from evengraph.splits import Natural

QUICK = [*UNIGNN, "--set", "max_epochs=3", "--set", "clusters_per_class=3"]


@pytest.fixture(scope="module")
def plan():
    return RunPlan(
        dataset="dots",
        graph=toy(60, 120, 10, 2),
        protocol=Natural(train=0.5, val=0.2),
        methods={"gcn": GCN(), "reweight": Reweight()},
        seeds=[5, 6],
    )


def job(plan, name, seed):
    graph = LoadedGraph(plan.graph)
    return Job(
        label=name, graph=graph, protocol=plan.protocol, method=plan.methods[name], seed=seed
    )


def record(**changed):
    values = {"seed": 5, "metrics": {"balanced_accuracy": 71.26}, "seconds": 2.4}
    values |= {"best_epoch": 7, "epochs": 9, "stages": 1, "summary": [], "notes": None}
    made = object.__new__(Record)
    vars(made).update(values | changed)
    return made


def test_each_method_is_announced_once_with_its_preset(plan, capsys):
    used = plan.methods["reweight"].max_epochs
    presets = {"reweight": {"max_epochs": used, "patience": 3}}  # --set replaced the patience
    with RunDisplay(plan, presets, torch.device("cpu")) as display:
        for name in plan.methods:
            for seed in plan.seeds:
                assert callable(display.start(job(plan, name, seed)))
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if " on dots, " in line]
    tail = " on dots, natural imbalance (train=0.5, val=0.2), on cpu"
    assert heads == [f"GCN{tail}", f"Re-weight{tail}"]
    assert [line for line in lines if line.startswith("preset")] == [
        line := f"preset: max_epochs={used} (--no-preset for the defaults)"
    ]
    assert lines.index(heads[1]) < lines.index(line)


def test_a_fit_ends_with_a_line(plan, capsys):
    display = RunDisplay(plan, {}, torch.device("cpu"))
    display.show(record())
    display.show(record(seed=6, stages=2, notes=["[one] note"]))
    display.show(record(summary=["auto chose GCN"]))
    assert capsys.readouterr().err.splitlines() == [
        "seed 5: bAcc 71.3, best epoch 7 of 9, 2 s",
        "seed 6: bAcc 71.3, best epoch 7 of 9 (of the main one of 2 stages), 2 s",
        "[one] note",
        "seed 5: bAcc 71.3, 2 s",
    ]


def test_a_long_fit_away_from_a_terminal_prints_lines(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("evengraph.training.loop.LINE_EVERY", 0)
    assert call("run", "toy", *QUICK, "--splits", "5-5", "--out", str(tmp_path)) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines[:-1]] == [
        f"seed 5: epoch {epoch}" for epoch in range(4)
    ]
    assert lines[-1].startswith("seed 5: bAcc")


def test_the_split_of_a_graph_is_counted():
    y, part = torch.tensor([0, 1, 0, -1]), torch.tensor([True, True, False, True])
    graph = Data(num_nodes=4, y=y, train_mask=part, test_mask=~part)
    assert given_split(graph, 0.2) == (
        "the split of the graph (2 train, 1 test, 20% of train drawn for val)"
    )
    graph.val_mask = ~part
    assert given_split(graph, 0.2) == "the split of the graph (2 train, 1 val, 1 test)"
