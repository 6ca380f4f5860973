"""The documentation: its code runs, its links lead somewhere, its numbers are stored ones."""

import csv
import importlib.util
import inspect
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch
import typer
from benchmarks import growth, plan

import evengraph as eg
from evengraph.testing import METHOD_CHECKS, check_dataset, check_method

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md"))
OUTSIDE = re.compile(r"^(https?:)?//")


def text(name):
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(name):
    return re.findall(r"```python\n(.*?)```", text(name), flags=re.S)


def module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = made = importlib.util.module_from_spec(spec)  # dataclasses look there
    try:
        spec.loader.exec_module(made)
    finally:
        del sys.modules[name]
    return made


@pytest.mark.parametrize(
    "name",
    ["start.md", "python.md", "pyg.md", "sklearn.md", "scaling.md", "disk.md", "machines.md"],
)
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert blocks(name)
    for code in blocks(name):
        code = code.replace('eg.load("cora")', "eg.toy()").replace(
            "UniGNN()", "UniGNN(max_epochs=2)"
        )
        code = code.replace("eg.Auto()", "eg.Auto(candidates='gcn', max_epochs=2)")
        code = re.sub(r"max_epochs=\d+", "max_epochs=2", code)
        exec(compile(code, name, "exec"), {})


def test_own_data_promises_of_run_what_run_shows():
    from evengraph.cli.commands import compare, run

    task = eg.testing.small_task(num_classes=2)
    scores = eg.evaluate(task, torch.eye(2)[task.graph.y])  # as run calls it
    calibration = [name for name, metric in eg.metrics.METRICS.items() if metric.calibration]
    assert not set(calibration) & scores.keys()
    (row,) = [line for line in text("own-data.md").splitlines() if line.startswith("| ECE")]
    assert "`compare` only" in row
    assert "positive" in inspect.signature(compare).parameters
    assert "positive" not in inspect.signature(run).parameters
    assert "`compare` takes another with `--positive`" in text("own-data.md")


def test_the_code_of_own_data_runs(tmp_path, monkeypatch, capsys):
    example = module(ROOT / "examples" / "own_csv.py", "own_csv")
    for name, arguments in {"shops": {}, "new": {"first": 1000, "count": 20}}.items():
        example.write_files(tmp_path / name, **arguments)
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("own-data.md")
    exec(
        compile(
            code.replace("TableModel()", "TableModel(eg.Auto(candidates='gcn', max_epochs=2))"),
            "own-data.md",
            "exec",
        ),
        {},
    )
    assert eg.TableModel.load(tmp_path / "model").classes_ == ("food", "fraud", "tools")


@pytest.fixture(scope="module")
def extensions(tmp_path_factory):
    """Code blocks of extending.md as modules: two methods, a metric, a protocol, a data set."""
    names = ("smoothed", "mixedloss", "metric", "perclass", "ring")
    folder = tmp_path_factory.mktemp("extensions")
    made = {}
    for name, code in zip(names, blocks("extending.md"), strict=True):
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
        made[name] = module(folder / f"{name}.py", name)
    return made


def test_the_method_of_the_page_keeps_the_contract(extensions):
    smoothed = extensions["smoothed"].Smoothed
    picklable = {"a_fitted_method_can_be_pickled"}  # needs a module that can be imported again
    check_method(smoothed, only=METHOD_CHECKS.keys() - picklable)
    task = eg.splits.Natural()(eg.toy(), seed=0)
    smooth, plain = (
        smoothed(max_epochs=40, smoothing=value).fit(task, seed=0) for value in (0.1, 0.0)
    )
    assert smooth.score(task) > 0.5
    confidence = [model.predict_proba(task.graph).max(1).values.mean() for model in (smooth, plain)]
    assert confidence[0] < confidence[1]
    with pytest.raises(ValueError, match="smoothing"):
        smoothed(smoothing=2)


def test_the_loss_of_the_page_mixes_two(extensions):
    mixed = extensions["mixedloss"].MixedLoss
    check_method(mixed, only=METHOD_CHECKS.keys() - {"a_fitted_method_can_be_pickled"})
    task = eg.splits.Natural()(eg.toy(), seed=0)

    def probabilities(method):
        return method.fit(task, seed=0).predict_proba(task.graph)

    plain = probabilities(mixed(max_epochs=5, mix=0))
    assert torch.equal(plain, probabilities(eg.GCN(max_epochs=5)))
    assert not torch.equal(plain, probabilities(mixed(max_epochs=5)))


def test_the_metric_of_the_page_is_computed_and_compared(extensions, monkeypatch):
    metric = extensions["metric"].worst_recall
    monkeypatch.setitem(eg.metrics.METRICS, metric.name, metric)
    task = eg.splits.Natural()(eg.toy(), seed=0)
    scores = eg.evaluate(task, torch.eye(5)[task.graph.y.clamp(max=3)])
    assert scores["worst_recall"] == 0
    assert "worst_recall" in eg.metrics.comparable_metrics()


def test_the_protocol_of_the_page_splits(extensions):
    protocol = extensions["perclass"].PerClass(size=5)
    task = protocol(eg.toy(), seed=0)
    assert task.class_counts.tolist() == [5] * 5
    assert int(task.val.sum()) == 25
    assert (task.train | task.val | task.test).all()
    assert not (task.train & task.val).any()
    assert torch.equal(protocol(eg.toy(), seed=0).train, task.train)
    assert not torch.equal(protocol(eg.toy(), seed=1).train, task.train)
    with pytest.raises(ValueError, match="size must be at least 1"):
        extensions["perclass"].PerClass(size=0)


def test_the_data_set_of_the_page_loads(extensions, monkeypatch):
    monkeypatch.setitem(eg.datasets.DATASETS, "ring", extensions["ring"].ring)
    check_dataset("ring")
    assert eg.load("ring").class_names == ["common", "rare"]


def test_the_reference_documents_every_method():
    assert "<!-- every method -->" in text("reference/methods.md")
    hooks = module(DOCS / "hooks.py", "docs_hooks")
    documented = "\n".join(hooks._method_entries())
    assert all(
        f"::: evengraph.methods.{cls.__name__}\n" in documented + "\n"
        for cls in eg.METHODS.values()
    )


def test_the_reference_names_everything_that_is_exported():
    pages = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("reference/*.md"))
    methods = {cls.__name__ for cls in eg.METHODS.values()}  # the hook lists them
    names = [name for name in dir(eg) if not name.startswith("_") and name not in methods]
    assert [name for name in names if not re.search(rf"\b{name}\b", pages)] == []


FOLDERS = ("src", "docs", "tests", "results", "benchmarks", "attack", "examples", "experiments")
NAMED_PATH = re.compile(r"(?<![\w/.<])((?:[\w.-]+/)+[\w-]+(?:\.\w+)*)(?![\w/<*])")
HAND_WRITTEN = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "attack" / "README.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "results" / "README.md",
    *sorted(DOCS.glob("*.md")),
]
# What a reader would write, as the examples name it.
EXAMPLES = {
    "src/evengraph/methods/smoothed.py",
    "src/evengraph/splits/perclass.py",
    "tests/methods/test_smoothed.py",
}


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_names_only_files_that_exist(page):
    prose = re.sub(r"https?://\S+|```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    roots = (ROOT, page.parent, ROOT / "src" / "evengraph")
    for name in set(NAMED_PATH.findall(prose)) - EXAMPLES:
        if name.split("/")[0] in FOLDERS or name.endswith(".py"):
            assert any((root / name).exists() for root in roots), name


def test_every_command_is_told_of():
    from evengraph.cli import app

    def commands(command, name):
        inner = getattr(command, "commands", None)
        if inner is None:
            return [name]
        return [one for key, value in inner.items() for one in commands(value, f"{name} {key}")]

    told = set(re.findall(r"^## (.+)$", text("commands.md"), flags=re.M))
    assert told == set(commands(typer.main.get_command(app), "evengraph"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_lead_somewhere(page):
    words = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", words):
        assert OUTSIDE.match(target) or (page.parent / target).exists(), target


def compared():
    """Figures and differences of the kept comparisons, as pages round them."""
    for path in (ROOT / "results" / "compare").glob("*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        for method in found["methods"]:
            yield from (f"{figure['mean']:.1f}" for figure in method["figures"].values())
        for pair in found["pairs"]:
            yield from (f"{pair[name]:.1f}" for name in ("difference", "low", "high"))
            yield f"{pair['wide_p']:.2f}"
        counts = found["class_counts"]
        yield f"{100 * min(counts) / sum(counts):.1f}"


@pytest.mark.parametrize("name", ["methods.md", "public-split.md", "scaling.md"])
def test_figures_are_stored_ones(name):
    """Every number with a decimal, or above 1,000, stands in a page that was drawn from runs."""
    sources = [*(DOCS / "results").glob("*.md"), *(DOCS / "beyond").glob("*.md")]
    sources += (DOCS / "successor").glob("*.md")
    sources += [DOCS / "reproduction.md"]
    sources += [ROOT / "results" / "readings.md", ROOT / "benchmarks" / "README.md"]
    stored = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    stored += "\n".join(str(item.counts) for item in eg.datasets.available())
    stored += "\n".join(compared())
    draw = module(ROOT / "results" / "draw.py", "results_draw")
    unison = module(ROOT / "results" / "draw_unison.py", "results_draw_unison")
    stored += "\n".join([unison.successor(), unison.behind(), unison.margin()])
    parts = [draw.newer(), draw.rates(), draw.patient(), draw.order(), draw.ceiling()]
    stored += "\n".join([*parts, draw.gap("newer", "IceBerg", "Uni-GNN")])
    known = set(re.findall(r"[\d.,]*\d", stored.replace(",", "")))
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text(name), flags=re.S)
    quoted = re.findall(r"\d+\.\d+|\d{1,3}(?:,\d{3})+", prose)
    assert len(quoted) > 10
    missing = [number for number in quoted if number.replace(",", "") not in known]
    assert not missing


def test_the_page_on_planning_has_the_values_of_the_script():
    assert plan.table() in text("planning.md")
    _, papers, billion = plan.PLANS
    more = billion._replace(memory=320e9)
    assert (billion.strips[1], more.strips[1]) == (False, True)
    hours = [f"{one.propagation_hours:.0f}" for one in (more, billion)]
    assert f"need {hours[0]} core-hours instead of {hours[1]}" in text("planning.md")
    assert f"{papers.propagation_hours:.1f} core-hours for papers100M" in text("planning.md")
    read = [f"{one.traffic / 2 / 1e9:.0f} GB" for one in (papers, more)]  # once of two times
    assert f"{read[0]} each time for papers100M, {read[1]} for a billion" in text("planning.md")


def test_the_page_on_planning_has_the_exponents_of_the_stored_runs():
    with growth.FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == case]
        exponents = (f"N^{growth.slope(mine, name):.2f}" for name in ("seconds", "gib"))
        assert " | ".join(exponents) in text("planning.md"), case


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
