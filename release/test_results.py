"""The stored runs: what is drawn from them is what they hold, and they hold what they should."""

import csv
import importlib.util
import json
import re
import shutil
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from statistics import fmean

import pytest

from evengraph.lab.pages import write_report
from evengraph.lab.reproduce import known_runs, missing
from evengraph.lab.results import load_experiments
from evengraph.lab.spec import read_spec
from evengraph.lab.store import Store
from evengraph.methods import METHODS
from evengraph.pipeline.parameters import _presets, preset_for

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
PAPER = {5, 6, 7}
SEEDS = range(8, 25), range(5, 8)  # outside the choice of hyperparameters, and of it


def _script(name):
    if str(RESULTS) not in sys.path:
        sys.path.append(str(RESULTS))  # where a script finds its neighbours
    spec = importlib.util.spec_from_file_location(name, RESULTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def draw():
    return _script("draw")


@pytest.fixture(scope="module")
def draw_unison():
    return _script("draw_unison")


@pytest.fixture(scope="module")
def draw_reproduction():
    return _script("draw_reproduction")


@pytest.fixture(scope="module")
def draw_machines():
    return _script("draw_machines")


@pytest.fixture(scope="module")
def draw_tables():
    return _script("draw_tables")


@pytest.fixture(scope="module")
def draw_front():
    return _script("draw_front")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A copy: opening a store may write beside it."""
    path = tmp_path_factory.mktemp("results") / "reproduce.sqlite"
    shutil.copy(RESULTS / "reproduce.sqlite", path)
    return Store(path)


@pytest.fixture(scope="module")
def beyond(tmp_path_factory):
    """A copy of what goes beyond the paper."""
    path = tmp_path_factory.mktemp("results") / "beyond.sqlite"
    shutil.copy(RESULTS / "beyond.sqlite", path)
    return Store(path)


@pytest.fixture(scope="module")
def unison(tmp_path_factory):
    """A copy of the runs of Unison and auto."""
    path = tmp_path_factory.mktemp("results") / "unison.sqlite"
    shutil.copy(RESULTS / "unison.sqlite", path)
    return Store(path)


@pytest.fixture(scope="module")
def experiments(store):
    return {results.name: results for results in load_experiments(store)}


def test_everything_was_run_and_says_where(store):
    rows = store.rows()
    assert len(rows) == 3826
    assert all(row.done for row in rows)
    commits = {row.environment["commit"] for row in rows}
    assert all(commit and not commit.endswith("+") for commit in commits)  # can be looked up
    assert sum("H200" in row.environment["device"] for row in rows) == len(rows) - 2


def test_every_place_has_its_seeds(experiments):
    for name, many in (("table1", 12), ("table2", 2)):
        results = experiments[name]
        assert len(results.settings) == len(results.complete_settings()) == many
        assert len(results.labels) == 9
        for cell in results.cells:
            twenty = cell.label in ("GCN", "LTE4G", "Uni-GNN")
            assert {row.job.seed for row in cell.rows} == (set(range(5, 25)) if twenty else PAPER)
    for name in ("table3", "figure2"):
        assert {len(cell.rows) for cell in experiments[name].cells} == {20}
    assert len(experiments["table3"].cells) == 4 * 10
    assert len(experiments["figure2"].cells) == 1 + 5 + 9 + 9 + 7


def test_presets_are_what_validation_chose(experiments):
    found = 0
    for cell in (*experiments["table1"].cells, *experiments["table2"].cells):
        job = cell.rows[0].job
        if job.method == "unignn":
            asked = job.dataset, job.imbalance, job.imbalance_fields
            assert preset_for(*asked, "unignn") == cell.selected
            found += 1
    assert found == 14 == sum(preset["method"] == "unignn" for preset in _presets())


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "figure2"])
def test_no_stored_run_has_to_be_repeated(store, name):
    assert missing([read_spec(name)], known_runs(store.rows())) == []


@pytest.mark.parametrize(
    ("name", "base"), [("results", "store"), ("beyond", "beyond"), ("successor", "unison")]
)
def test_the_explorers_are_drawn_from_the_runs(name, base, request, tmp_path):
    command = (
        f"evengraph report results/{request.getfixturevalue(base).path.name} --out docs/{name}"
    )
    write_report(request.getfixturevalue(base), tmp_path, {"command": command})
    for path in tmp_path.iterdir():
        shown = (_words(ROOT / "docs" / name / path.name), _words(path))
        assert shown[0] == shown[1], path.name


def _words(path):
    """What a page says, without how it looks."""
    pattern = r"<style>.*?</style>|<script>.*?</script>|<[^>]*>"
    return re.sub(pattern, " ", path.read_text(encoding="utf-8"), flags=re.S).split()


def test_stored_roles_are_those_that_methods_declare(store, beyond):
    for content in (*store.experiments().values(), *beyond.experiments().values()):
        for cell in content["cells"]:
            method = METHODS[cell["method"]]
            if cell["label"] == method.title:
                assert cell["role"] == method.role, (content["title"], cell["label"])
            else:  # a variant
                assert cell["role"] in ("", method.role)


def test_the_page_of_results_has_its_tables(draw, draw_reproduction):
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert draw.front() in text
    assert draw_reproduction.front() in text
    counts = [draw_reproduction.count(seeds) for seeds in SEEDS]
    assert counts == ["22 of 42", "27 of 42"]
    assert all(f"{many} cells" in text for many in counts)
    for label, tested in (("GCN", "significantly in all"), ("LTE4G", "significantly in 5")):
        gains = draw_reproduction.gains(label)
        assert re.search(rf"by\s+{fmean(map(fmean, gains)):.1f}[ ,]", text)
        assert tested in text
        assert draw_reproduction.significant(gains) == (14 if label == "GCN" else 5)


def test_g_mean_is_a_function_of_balanced_accuracy(experiments):
    """Test classes have equal sizes, so that the mean specificity follows from the mean recall."""
    for cell in (*experiments["table1"].cells, *experiments["table2"].cells):
        for row in cell.rows:
            support = row.outcome["per_class"]["support"]
            assert len(set(support)) == 1
            recall = row.outcome["metrics"]["balanced_accuracy"] / 100
            expected = (recall * (1 - (1 - recall) / (len(support) - 1))) ** 0.5
            assert row.outcome["metrics"]["g_mean"] == pytest.approx(100 * expected, abs=1e-4)


def test_the_page_on_methods_has_its_tables(draw):
    text = (ROOT / "docs" / "results" / "methods.md").read_text(encoding="utf-8")
    drawn = (draw.newer, draw.rates, draw.patient, draw.twenty, draw.graphs, draw.order)
    assert [part.__name__ for part in (*drawn, draw.natural) if part() not in text] == []
    assert draw.gap("newer", "IceBerg", "Uni-GNN") in text


def test_the_page_on_the_public_split_has_its_tables(draw):
    text = (ROOT / "docs" / "public-split.md").read_text(encoding="utf-8")
    parts = (draw.public, draw.raw, draw.published, draw.ceiling, draw.heavier)
    parts = (*parts, draw.drawn, draw.drawn_verdict, draw.public_leads)
    assert [part.__name__ for part in parts if part() not in text] == []


def test_drawn_splits_have_ten_seeds_and_the_labels_of_the_protocol():
    with (RESULTS / "heavier.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["commit"][-1] for row in rows}.isdisjoint("+")
    runs = Counter((row["graph"], row["ratio"], row["method"]) for row in rows)
    assert set(runs.values()) == {10}
    labels = {(row["graph"], row["ratio"]): int(row["labels"]) for row in rows}
    assert labels["cora", "50"] == 4 * 50 + 3
    assert labels["computers", "0"] == 133  # UNREAL's authors have as many


def test_presets_of_iceberg_are_what_validation_chose(beyond):
    (results,) = [results for results in load_experiments(beyond) if results.name == "newer"]
    cells = [cell for cell in results.cells if cell.label == "IceBerg"]
    for cell in cells:
        job = cell.rows[0].job
        found = preset_for(job.dataset, job.imbalance, job.imbalance_fields, "iceberg")
        assert found == cell.selected | {"patience": job.method_fields["patience"]}
    assert len(cells) == 14 == sum(preset["method"] == "iceberg" for preset in _presets())


def test_neither_clusters_nor_margin_move_unreal(beyond):
    """What the page says of its settings: other clusters hardly matter, another margin never."""
    (results,) = [results for results in load_experiments(beyond) if results.name == "unreal"]
    first, *_ = results.cells
    own = first.by_seed("balanced_accuracy")
    for label, value, same in (("clusters", 500, 9), ("margin", 1.0, 10)):
        (cell,) = [c for c in results.cells if c.label == label and c.value == value]
        others = cell.by_seed("balanced_accuracy")
        assert sum(others[seed] == own[seed] for seed in own) == same
    best = max(results.cells, key=lambda cell: cell.mean("balanced_accuracy"))
    assert best.mean("balanced_accuracy") == first.mean("balanced_accuracy")


def test_runs_beyond_the_paper_say_where_they_come_from(beyond):
    rows = beyond.rows()
    assert all(row.done for row in rows)
    assert all(not row.environment["commit"].endswith("+") for row in rows)
    assert len(rows) == 4710


def test_everything_beyond_the_paper_was_run(beyond):
    found = {results.name: results for results in load_experiments(beyond)}
    sizes = {"newer": (14, 23), "publicstep": (3, 42), "publicraw": (3, 12), "natural": (4, 34)}
    assert set(found) == {*sizes, "unreal"}
    for name, (setups, labels) in sizes.items():
        results = found[name]
        assert (len(results.settings), len(results.labels)) == (setups, labels)
        assert len(results.cells) == setups * labels
        assert {len(cell.rows) for cell in results.cells} == {3 if name == "newer" else 10}
    assert {len(cell.rows) for cell in found["unreal"].cells} == {10}


def test_runs_of_unison_are_complete_and_say_where_they_come_from(unison):
    found = {results.name: results for results in load_experiments(unison)}
    sizes = {"successor": (14, 5, 20), "parts": (6, 8, 10), "portfolio": (7, 15, 10)}
    assert set(found) == set(sizes)
    for name, (setups, labels, seeds) in sizes.items():
        results = found[name]
        assert (len(results.settings), len(results.labels)) == (setups, labels)
        assert len(results.cells) == setups * labels
        assert {len(cell.rows) for cell in results.cells} == {seeds}
        assert {row.job.seed for cell in results.cells for row in cell.rows} == set(results.seeds)
    commits = {row.environment["commit"][:7] for row in unison.rows()}
    assert commits == {"fb726ba", "661b2a9", "798281e", "46d39b3", "4ef4d01", "a36d3ad"}
    known = known_runs(unison.rows())
    assert missing([read_spec("successor")], known) == []
    late = missing([read_spec(name) for name in ("parts", "portfolio")], known)
    assert {job.method for job in late} == {"unison", "auto", "logistic"}  # stored: version 0.2.0
    page = (ROOT / "docs" / "results" / "unison.md").read_text(encoding="utf-8")
    assert "All of it was measured with version 0.2.0" in page


def test_the_page_on_unison_has_its_tables(draw_unison):
    pages = (ROOT / "docs" / name for name in ("unison.md", "results/unison.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    drawn = (
        "successor",
        "standing",
        "committee_table",
        "committee_verdict",
        "committee_places",
        "margin",
        "cells_of_the_paper",
        "public",
        "small",
        "parts",
        "portfolio",
        "behind",
        "variants",
    )
    assert [name for name in drawn if getattr(draw_unison, name)() not in text] == []
    assert draw_unison.committee_verdict("unignn", "Uni-GNN") in text


def test_the_present_auto_ran_on_the_same_splits(tmp_path):
    shutil.copy(RESULTS / "auto.sqlite", tmp_path)  # opening a store may write beside it
    (results,) = load_experiments(Store(tmp_path / "auto.sqlite"))
    for cell in results.cells:
        assert [row.job.seed for row in cell.rows] == list(range(20, 30)), cell.setting
        assert {row.job.method_fields["folds"] for row in cell.rows} == {1}
        assert {row.environment["commit"][:7] for row in cell.rows} == {"ffbfb9a"}


def test_the_front_page_has_its_numbers(draw_front, draw_unison, draw_reproduction):
    pages = [page.read_text(encoding="utf-8") for page in draw_front.PAGES]
    assert [draw.__name__ for draw in draw_front.DRAWN if draw() not in pages[1]] == []
    table = draw_front.default()
    assert all(f"<!-- default -->\n{table}\n<!-- /default -->" in text for text in pages)
    assert draw_unison.front() in pages[0]
    beside = re.search(r"points to (\d+\.\d)", draw_unison.committee_verdict())
    assert f"[ten IceBergs](docs/unison.md#is-it-the-committee) are {beside[1]} behind" in pages[0]
    assert f"{draw_reproduction.count(SEEDS[0])} published means of Uni-GNN" in pages[0]


def test_the_page_on_tables_has_its_results(draw_tables):
    text = (ROOT / "docs" / "results" / "unison.md").read_text(encoding="utf-8")
    rows = draw_tables.rows()
    assert draw_tables.draws(rows) == 10
    assert all(draw_tables.compared(rows, transfer=both) in text for both in (False, True))
    assert draw_tables.behind(rows) in text
    assert set(rows["commit"]) == {"9185030"}


@pytest.mark.parametrize("name", ["computers", "physics", "reddit-user"])
def test_on_unequal_graphs_uni_gnn_is_ahead(name):
    found = json.loads((RESULTS / "compare" / f"{name}.json").read_text(encoding="utf-8"))
    assert (found["complete"], found["seeds"]) == (True, list(range(10)))
    assert found["protocol"] == {"name": "natural", "train": 0.1, "val": 0.1}
    (pair,) = found["pairs"]
    assert (pair["ahead"], pair["behind"]) == ("unignn", "gcn")
    assert pair["low"] > 0
    assert not found["environment"]["commit"].endswith("+")


def test_the_readings_are_drawn_from_their_runs(draw):
    assert (RESULTS / "readings.md").read_text(encoding="utf-8") == draw.readings()


def test_no_reading_is_stored_twice(draw):
    names = ("dataset", "imbalance", "minority", "ratio", "method", "fields", "split", "seed")
    runs = Counter(tuple(row[name] for name in names) for row in draw.rows())
    assert set(runs.values()) == {1}


def test_presets_of_lte4g_are_the_best_on_validation(draw):
    tried = draw.tried("lte4g")
    for preset in _presets():
        if preset["method"] == "lte4g" and "validation" in preset:
            setup = (preset["dataset"], "step", str(preset["minority"]), str(preset["ratio"]))
            plain = {key: runs for key, runs in tried[setup].items() if "sound" not in key}
            best = max(plain, key=lambda key: draw.validation(plain[key]))
            fields = {f"{name}={value}" for name, value in preset["fields"].items()}
            assert fields <= set(best.split())
            score = draw.validation(plain[best])
            assert score == pytest.approx(preset["validation"]["card"], abs=0.06)


def test_the_run_of_the_front_page_is_stored():
    result = json.loads((RESULTS / "accounts-run.json").read_text())
    assert (result["seeds"], result["complete"]) == ([5, 6, 7], True)
    assert not result["environment"]["commit"].endswith("+")
    mean = result["mean"]["positive_average_precision"]
    assert f" {mean:.1f}±" in (ROOT / "docs" / "start.md").read_text(encoding="utf-8")


def test_the_page_on_labelling_has_its_tables():
    page = (ROOT / "docs" / "results" / "labelling.md").read_text(encoding="utf-8")
    draw_labelling = _script("draw_labelling")
    assert draw_labelling.page(page) == page
    curves = draw_labelling.curves()
    starts = {key: {len(rows) for rows in sizes.values()} for key, sizes in curves.items()}
    for graph in draw_labelling.TITLES:
        assert starts[graph, "default"] == starts[graph, "random"] == {10}
    assert min(map(min, starts.values())) >= 3  # the other strategies, as the page says


def test_balanced_softmax_is_best_before_its_learning_rate_would_be_halved(tmp_path):
    copy = tmp_path / "beyond.sqlite"
    copy.write_bytes((RESULTS / "beyond.sqlite").read_bytes())
    query = """
        SELECT json_extract(outcome, '$.best_epoch') FROM runs
        WHERE dataset = 'pubmed' AND imbalance = 'publicstep' AND method = 'balancedsoftmax'
        AND json_extract(method_fields, '$.backbone') = 'gcn'
        AND json_extract(method_fields, '$.margin') = 'none'
    """
    with closing(sqlite3.connect(copy)) as base:
        epochs = [epoch for (epoch,) in base.execute(query)]
    text = (ROOT / "docs" / "public-split.md").read_text(encoding="utf-8")
    assert len(epochs) == 20
    assert f"between {min(epochs)} and {max(epochs)}" in text


def test_what_was_tried_for_iceberg_with_cross_entropy_on_pubmed(beyond):
    runs = {}
    for row in beyond.rows(dataset="pubmed", method="iceberg"):
        fields, scaled = row.job.method_fields, row.job.imbalance_fields.get("normalise_features")
        if row.job.imbalance == "publicstep" and fields["loss"] == "cross_entropy":
            key = (not scaled, fields["weight_decay"] if scaled else fields["learning_rate"])
            runs.setdefault(key, []).append(row.outcome["metrics"]["balanced_accuracy"])
    assert {len(values) for values in runs.values()} == {10}
    means = [f"{fmean(runs[key]):.1f}" for key in sorted(runs)]
    text = (ROOT / "docs" / "public-split.md").read_text(encoding="utf-8")
    scaled, raw = "0.0005 and 0.005", "0.05 and 0.1"
    sentence = f"{means[0]} and {means[1]} with scaled features and a weight decay of {scaled}, "
    sentence += f"{means[2]} and {means[3]} with raw features and a learning rate of {raw}"
    assert sentence in text
