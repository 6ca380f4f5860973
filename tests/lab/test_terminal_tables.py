"""Tables of stored runs; tests/cli/test_reproduce.py has them in full."""

from rich.console import Console

from evengraph.lab.pages import (
    RUN_VALUES,
    averaged_settings,
    experiment_table,
    runs_table,
    selected_params,
)
from evengraph.lab.results import Cell, ExperimentResults
from evengraph.lab.store import RunGroup, Store
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
    return capture.get()


def columns(table):
    return {column.header: list(column.cells) for column in table.columns}


def test_the_table_has_means_deviations_and_the_papers_values():
    settings = {"hidden": 8, "learning_rate": 0.02}
    shown = results(
        cell("GCN", 40.0, 50.0, selected=settings, paper=PAPER),
        cell("alpha", 30.0, varies="alpha", value=2),
    )
    found = columns(experiment_table(shown))
    assert found["method"] == ["[bold]toy-step-3-0.1[/]", "  GCN", "  alpha = 2"]
    assert found["seeds"] == ["", "2", "1"]
    assert found["bAcc"] == ["", "[bold]45.0 (5.0)[/]", "30.0"]
    assert found["Macro-F1"] == ["", "45.0 (5.0)", "30.0"]
    assert found["paper"] == ["", "61.2", ""]
    assert selected_params(shown) == ["toy-step-3-0.1: GCN with hidden=8, learning_rate=0.02"]


def test_runs_are_summed_up_by_setting_and_method(tmp_path):
    rows = [ended(toy_job(max_epochs=2, seed=seed), test=test) for seed, test in ((5, 40), (6, 50))]
    rows.append(failed(toy_job("mlp", max_epochs=2)))
    other = {"minority": 3, "ratio": 0.1, "more": 1}  # has the same name
    rows.append(ended(make_job(seed=7, imbalance_fields=other), test=60))
    rows.append(failed(make_job(seed=8, imbalance_fields=other)))
    store = Store(tmp_path / "store.sqlite")
    store.add(*rows)
    found = columns(runs_table(store.groups(RUN_VALUES)))
    assert found["method"] == ["[bold]toy, step 3 0.1[/]", "  gcn", "  mlp"]
    assert found["runs"] == ["", "4", "1"]
    assert found["failed"] == ["", "1", "1"]
    assert found["bAcc"] == ["", "50.0", ""]


def test_long_names_fit():
    setting, means = "a_data_set_of_a_third_party, publicstep 3 0.1", [100.0] * 3 + [50.0, 12345.6]
    text = drawn(runs_table([RunGroup(setting, "a_[new]_method", 1, 0, means)]))
    assert text.count("100.0") == 3
    assert all(word in text for word in ("12345.6", "a_[new]_method", "Macro-F1"))
    assert "…" not in text
    long = cell("A [graph] method of a third party with a long name", 100.0, 90.0, paper=PAPER)
    text = drawn(experiment_table(results(long)))
    assert text.count("95.0 (5.0)") == 3
    assert "[graph]" in text
    assert "…" not in text


def test_several_settings_have_no_mean():
    group = RunGroup("cora, step", "unignn", 6, 0, [80.0] * len(RUN_VALUES), 3)
    text = drawn(runs_table([group]))
    assert "unignn, 3 settings" in text
    assert text.count("80.0") == 1  # seconds
    assert "not selected" in averaged_settings([group])[0]
    one = group._replace(tried=1)
    assert drawn(runs_table([one])).count("80.0") == len(RUN_VALUES)
    assert averaged_settings([one]) == []
