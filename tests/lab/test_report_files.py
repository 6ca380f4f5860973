"""Everything that `evengraph report` writes, from a made-up store."""

import sqlite3
import sys
from contextlib import closing

import pytest
from made_up import FEW, STEP, save_cell, save_experiment, spread

from evengraph.cli import main
from evengraph.lab.figures import confusion_figure, figures
from evengraph.lab.pages import render_overview, write_report
from evengraph.lab.results import load_experiments
from evengraph.lab.store import Store
from evengraph.lab.tables import latex, markdown, table_csv

pytest.importorskip("matplotlib", reason="figures want matplotlib")

FIGURES = [
    *(f"comparison-{name}" for name in ("comparison", "recall", "confusion", "cost", "map")),
    "ablation-ablation",
    "sensitivity-sensitivity",
]


def test_every_file_is_told_and_there(written):
    folder = written["index.html"].parent
    wanted = {f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")}
    experiments = ("comparison", "ablation", "sensitivity")
    wanted |= {f"{name}.{kind}" for name in experiments for kind in ("md", "tex")}
    wanted |= {"tables.csv", "index.html"}
    assert set(written) == {path.name for path in folder.iterdir()} == wanted
    assert all(path.stat().st_size > 50 for path in written.values())


def test_files_hold_what_the_functions_give(written, experiments):
    def text(name):
        return written[name].read_text(encoding="utf-8")

    for results in experiments:
        pictures = [name for name, _ in figures(results)]
        assert text(f"{results.name}.md") == markdown(results, pictures)
        assert text(f"{results.name}.tex") == latex(results)
    assert text("tables.csv") == table_csv(experiments)
    assert text("index.html") == render_overview(experiments)


def test_boards_without_runs_are_passed_over(store, tmp_path):
    with closing(sqlite3.connect(store.path)) as base, base:
        base.execute("DELETE FROM runs WHERE method_fields NOT LIKE '%alpha\": 1%'")
    assert [len(results.cells) for results in load_experiments(store)] == [0, 0, 1]
    names = {path.name for path in write_report(store, tmp_path / "report")}
    assert {"sensitivity.md", "sensitivity-sensitivity.svg", "index.html"} <= names
    assert not {name for name in names if name.startswith(("comparison", "ablation"))}


def test_a_store_without_an_experiment_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no finished experiment"):
        write_report(Store(tmp_path / "empty.sqlite"), tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_quick_ablation_is_written(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    cells = [save_cell(store, STEP, label, spread(70.0, FEW, label)) for label in ("one", "two")]
    save_experiment(store, "quick", "ablation", cells)
    names = {path.name for path in write_report(store, tmp_path / "report")}
    assert {"quick.md", "quick-ablation.svg", "index.html"} <= names
    table = (tmp_path / "report" / "quick.md").read_text()
    assert "one" in table
    assert "two" in table


def test_the_command_tells_what_it_wrote(tmp_path, capsys):
    store = Store(tmp_path / "store.sqlite")
    cells = [save_cell(store, STEP, "alpha", {5: 70.0}, varies="alpha", value=1)]
    save_experiment(store, "curve", "sensitivity", cells)
    with pytest.raises(SystemExit) as stop:
        main(["report", str(store.path), "--out", str(tmp_path / "report")])
    assert stop.value.code == 0
    told = [line.removeprefix("wrote ") for line in capsys.readouterr().out.splitlines()]
    assert sorted(told) == sorted(str(path) for path in (tmp_path / "report").iterdir())
    assert len(told) == 6


def test_the_command_makes_no_store_where_there_is_none(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["report", str(tmp_path / "none.sqlite"), "--out", str(tmp_path / "report")])
    assert stop.value.code == 2
    assert "There is no store" in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_command_says_so(filled, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(SystemExit) as stop:
        main(["report", str(filled.path), "--out", str(tmp_path / "report")])
    assert stop.value.code in (0, 2)
    assert "matplotlib" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", ".hidden", "a/b", "a\x1b"])
def test_names_of_a_foreign_store_do_not_lead_out_of_the_folder(filled, tmp_path, name):
    (tmp_path / "inner").mkdir()
    store = Store(tmp_path / "inner" / "foreign.sqlite")
    store.path.write_bytes(filled.path.read_bytes())
    with closing(sqlite3.connect(store.path)) as base, base:
        base.execute("UPDATE boards SET name = ? WHERE name = 'ablation'", (name,))
    with pytest.raises(ValueError, match=r"foreign\.sqlite: the name of an experiment must hold"):
        write_report(store, tmp_path / "inner" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE runs SET outcome = '{"metrics": {"macro_f1": "x"}, "validation": 1}'""",
        """UPDATE runs SET outcome = json_set(outcome, '$.metrics.balanced_accuracy', '[]')""",
        """UPDATE boards SET content = json_set(content, '$.title', 5)""",
    ],
)
def test_results_of_another_kind_are_one_line_with_the_store(filled, tmp_path, change):
    store = Store(tmp_path / "foreign.sqlite")
    store.path.write_bytes(filled.path.read_bytes())
    with closing(sqlite3.connect(store.path)) as base, base:
        base.execute(change)
    with pytest.raises(
        ValueError, match=r"foreign\.sqlite.* cannot be drawn: a result is"
    ) as caught:
        write_report(store, tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_row_under_another_key_has_no_confusion_matrix(filled, tmp_path):
    store = Store(tmp_path / "foreign.sqlite")
    store.path.write_bytes(filled.path.read_bytes())
    with closing(sqlite3.connect(store.path)) as base, base:
        base.execute("UPDATE runs SET key = 'x' || key")
    assert all(
        confusion_figure(results) is None for results in load_experiments(store, parts=("metrics",))
    )
