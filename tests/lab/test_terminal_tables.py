"""Tables of stored runs."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from evengraph.lab.pages import (
    RUN_VALUES,
    RunGroup,
    experiment_table,
    group_runs,
    runs_table,
    selected_params,
)
from evengraph.lab.results import Cell, ExperimentResults
from snapshots import check_snapshot
from tiny_experiments import ended, failed, make_job, toy_job

PAPER = {name: {"mean": 61.25, "std": 1.0} for name in ("balanced_accuracy", "macro_f1", "g_mean")}


def cell(label, *tests, **changes):
    rows = [ended(toy_job(max_epochs=2, seed=seed), test=test) for seed, test in enumerate(tests)]
    plain = {
        "setting": "toy-step-3-0.1",
        "dataset": "toy",
        "label": label,
        "varies": None,
        "value": None,
        "selected": {},
        "paper": None,
        "rows": rows,
    }
    return Cell(**plain | changes)


def results(*cells):
    return ExperimentResults(name="tiny", title="Tiny", kind="comparison", seeds=[5], cells=cells)


def drawn(table):
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table)
    assert max(map(len, capture.get().splitlines())) <= 80
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def experiment():
    settings = {"hidden": 8, "learning_rate": 0.02}
    shown = results(
        cell("GCN", 40.0, 50.0, selected=settings, paper=PAPER),
        cell("alpha", 30.0, varies="alpha", value=2),
        cell("A [graph] method of a third party with a long name", 100.0, 90.0, paper=PAPER),
    )
    return drawn(experiment_table(shown)) + "\n".join(selected_params(shown))


def runs(store):
    rows = [ended(toy_job(max_epochs=2, seed=seed), test=test) for seed, test in ((5, 40), (6, 50))]
    rows.append(failed(toy_job("mlp", max_epochs=2)))
    other = {"minority": 3, "ratio": 0.1, "more": 1}  # has the same name
    rows.append(ended(make_job(seed=7, imbalance_fields=other), test=60))
    rows.append(failed(make_job(seed=8, imbalance_fields=other)))
    store.add(*rows)
    several = RunGroup(6, 0, [480.0] * len(RUN_VALUES), {"a", "b", "c"})
    setting, sums = "a_data_set_of_a_third_party, publicstep 3 0.1", [100.0] * 3 + [50.0, 12345.6]
    groups = group_runs(store.scan()) | {
        ("cora, step", "unignn"): several,
        ("cora, step", "unison"): replace(several, tried={"a"}),
        (setting, "a_[new]_method"): RunGroup(1, 0, sums, {"a"}),
    }
    return drawn(runs_table(groups))


def test_tables_are_shown_as_before(store):
    """Means over settings that were only tried are left out; nothing is cut off."""
    text = f"{experiment()}\n\n{runs(store)}\n"
    assert "…" not in text
    check_snapshot(Path(__file__).with_name("snapshots") / "terminal.txt", text)
