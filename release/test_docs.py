"""Pages of the documentation: their numbers are those of stored runs, their figures are drawn."""

import csv
import importlib.util
import inspect
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pandas as pd
import pytest
import torch
from benchmarks import growth, plan

import evengraph as eg

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md"))
OUTSIDE = re.compile(r"^(https?:)?//")


def text(name):
    return (DOCS / name).read_text(encoding="utf-8")


def module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = made = importlib.util.module_from_spec(spec)  # dataclasses look there
    try:
        spec.loader.exec_module(made)
    finally:
        del sys.modules[name]
    return made


def test_the_page_on_metrics_promises_what_run_and_compare_show():
    from evengraph.cli.commands import compare, run

    task = eg.testing.small_task(num_classes=2)
    scores = eg.evaluate(task, torch.eye(2)[task.graph.y])  # as run calls it
    calibration = [name for name, metric in eg.metrics.METRICS.items() if metric.calibration]
    assert not set(calibration) & scores.keys()
    assert "(ECE), after calibration |" in text("metrics.md")
    assert "positive" in inspect.signature(compare).parameters
    assert "positive" in inspect.signature(run).parameters
    assert text("commands.md").count("| `--positive fraud`") == 2


def compared():
    """Figures and differences of the kept comparisons, as pages round them."""
    for path in (ROOT / "results" / "compare").glob("*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        for method in found["methods"]:
            yield from (f"{figure['mean']:.1f}" for figure in method["figures"].values())
        for pair in found["pairs"]:
            yield from (f"{pair[name]:.1f}" for name in ("difference", "low", "high"))
            yield f"{pair.get('wide_p', pair['p']):.2f}"
        counts = found["class_counts"]
        yield f"{100 * min(counts) / sum(counts):.1f}"


@pytest.mark.parametrize("name", ["results/methods.md", "public-split.md"])
def test_figures_are_stored_ones(name, monkeypatch):
    """Every number with a decimal, or above 1,000, stands in a page that was drawn from runs."""
    monkeypatch.syspath_prepend(ROOT / "results")
    explorers = [DOCS / name / "index.html" for name in ("results", "beyond", "successor")]
    sources = [*explorers, DOCS / "reproduction.md"]
    sources += [ROOT / "results" / "readings.md", ROOT / "benchmarks" / "README.md"]
    sources += [ROOT / "results" / f"{name}.txt" for name in ("pack", "endtoend")]
    stored = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    stored = re.sub(r"<style>.*?</style>|<script>.*?</script>|<[^>]*>", " ", stored, flags=re.S)
    stored += "\n".join(str(item.counts) for item in eg.datasets.available())
    stored += "\n".join(compared())
    draw = module(ROOT / "results" / "draw.py", "results_draw")
    unison = module(ROOT / "results" / "draw_unison.py", "results_draw_unison")
    stored += "\n".join([unison.successor(), unison.behind(), unison.margin()])
    parts = [draw.newer(), draw.rates(), draw.patient(), draw.order(), draw.ceiling()]
    parts += [draw.drawn(), draw.drawn_verdict()]
    stored += "\n".join(
        [*parts, draw.heavier(), draw.public_leads(), draw.gap("newer", "IceBerg", "Uni-GNN")]
    )
    known = set(re.findall(r"[\d.,]*\d", stored.replace(",", "")))
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text(name), flags=re.S)
    quoted = re.findall(r"\d+\.\d+|\d{1,3}(?:,\d{3})+", prose)
    assert len(quoted) > 10
    missing = [number for number in quoted if number.replace(",", "") not in known]
    assert not missing


def test_the_page_on_planning_has_the_values_of_the_script():
    assert plan.table() in text("results/planning.md")
    _, papers, billion = plan.PLANS
    more = billion._replace(memory=320e9)
    assert (billion.strips[1], more.strips[1]) == (False, True)
    hours = [f"{one.propagation_hours:.0f}" for one in (more, billion)]
    assert f"need {hours[0]} core-hours instead of {hours[1]}" in text("results/planning.md")
    read = [f"{one.traffic / 2 / 1e9:.0f} GB" for one in (papers, more)]  # once of two times
    assert f"{read[0]} each time for papers100M, {read[1]} for a billion" in text(
        "results/planning.md"
    )


def test_the_page_on_planning_has_the_exponents_of_the_stored_runs():
    with growth.FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == case]
        exponents = (f"N^{growth.slope(mine, name):.2f}" for name in ("seconds", "gib"))
        assert " | ".join(exponents) in text("results/planning.md"), case


@pytest.fixture(scope="module")
def figures():
    pytest.importorskip("matplotlib")
    return module(DOCS / "figures.py", "docs_figures")


@pytest.fixture(scope="module")
def fitted():
    task = eg.splits.Step(minority=2, ratio=0.1)(eg.toy(1400, 5600), seed=5)
    return task, eg.UniGNN(max_epochs=5).fit(task, seed=5)


def test_every_figure_is_drawn_and_shown(figures, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(figures.eg, "UniGNN", lambda **fields: fitted[1])
    monkeypatch.setattr(type(fitted[1]), "fit", lambda self, *_, **__: self)
    written = figures.draw_all(tmp_path, fitted[0], "the toy graph")
    names = {path.name for path in written}
    assert names == {path.name for path in (DOCS / "figures").glob("*.svg")}
    for path in written:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        assert f"(figures/{path.name})" in text("paper.md")


def test_reach_is_counted_as_walking_would(figures, fitted):
    task, model = fitted
    near = [set() for _ in range(task.graph.num_nodes)]
    for a, b in task.graph.edge_index.t().tolist():
        near[a].add(b)
    clusters = [model.net_.get_buffer(f"clusters_{layer}").tolist() for layer in range(2)]

    def walked(label, alpha, with_clusters):
        found = set((task.train & (task.graph.y == label)).nonzero().flatten().tolist())
        for layer in range(2):
            known = {clusters[layer][node] for node in found} if with_clusters else set()
            further = set(found)
            for _ in range(alpha):
                further |= {other for node in further for other in near[node]}
            found = further | {n for n, one in enumerate(clusters[layer]) if one in known}
        return 100 * len(found) / task.graph.num_nodes

    shares = figures.reach(task, model)
    for row, asked in zip(shares, ((1, False), (2, False), (2, True)), strict=True):
        expected = [walked(label, *asked) for label in range(task.num_classes)]
        assert row == pytest.approx(expected, abs=1e-3)


def test_linked_rows_have_their_stored_results():
    rows = pd.read_csv(ROOT / "results" / "links.csv").dropna(subset="draw")
    page, means = text("benchmarks.md"), rows.groupby("what")["AP"].agg(["mean", "min", "max"])
    assert len(rows) == 10 * len(means) == 30
    for mean, low, high in means.itertuples(index=False):
        assert f"{mean:.1f} ({low:.1f} to {high:.1f})" in page
