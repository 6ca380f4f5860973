"""Documentation, README, examples and notebooks: their code runs, and what they name exists.

What they say in numbers, and their pictures, are checked with a release: `make release`.
"""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest
import torch
import typer
from tools.notebooks import SOURCES, read_cells, run_cells

import evengraph as eg
from evengraph.cli import app
from evengraph.testing import METHOD_CHECKS, check_dataset, check_method

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
COMMAND_LINE = typer.main.get_command(app)


def text(page):
    return page.read_text(encoding="utf-8")


def blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", text(page), flags=re.S)


def named(path):
    return path.relative_to(ROOT).as_posix()


def module(path):
    name = f"documented_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = made = importlib.util.module_from_spec(spec)  # dataclasses look there
    try:
        spec.loader.exec_module(made)
    finally:
        del sys.modules[name]
    return made


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "docs/start.md", "docs/python.md", "docs/labelling.md"),
        *("docs/disk.md", "docs/machines.md"),
    ],
)
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert blocks(ROOT / name)
    for code in blocks(ROOT / name):
        code = code.replace('eg.load("cora")', "eg.toy()")
        code = code.replace("UniGNN()", "UniGNN(max_epochs=2)")
        code = code.replace("eg.Auto()", "eg.Auto(candidates='gcn', max_epochs=2)")
        exec(compile(re.sub(r"max_epochs=\d+", "max_epochs=2", code), name, "exec"), {})


def test_the_code_of_own_data_runs(tmp_path, monkeypatch, capsys):
    example = module(ROOT / "examples" / "accounts.py")
    example.write_tables(tmp_path / "shops", tmp_path / "next", count=600, more=20, seed=1)
    (tmp_path / "new").mkdir()  # a graph of new nodes only, like that of training
    for name in ("nodes.csv", "edges.csv"):
        (tmp_path / "new" / name).write_bytes((tmp_path / "shops" / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(DOCS / "own-data.md")
    code = code.replace("TableModel()", "TableModel(eg.Auto(candidates='gcn', max_epochs=2))")
    code = re.sub(r'explain\("[^"]+"\)', 'explain("a3")', code)
    exec(compile(code, "own-data.md", "exec"), {})
    assert eg.TableModel.load(tmp_path / "model").classes_ == ("fraud", "honest")


def test_the_tables_of_the_example_are_those_that_its_script_writes(tmp_path):
    example = module(ROOT / "examples" / "accounts.py")
    example.write_tables(tmp_path / "accounts", tmp_path / "next-month")
    written = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.csv"))
    assert len(written) == 4
    for path in written:
        assert (tmp_path / path).read_bytes() == (ROOT / "examples" / path).read_bytes()


@pytest.fixture(scope="module")
def extensions(tmp_path_factory):
    """Code blocks of extending.md as modules: two methods, a metric, a protocol, a data set."""
    names = ("smoothed", "mixedloss", "metric", "perclass", "ring")
    folder = tmp_path_factory.mktemp("extensions")
    made = {}
    for name, code in zip(names, blocks(DOCS / "extending.md"), strict=True):
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
        made[name] = module(folder / f"{name}.py")
    return made


IMPORTABLE = {"a_fitted_method_can_be_pickled"}  # needs a module that can be imported again


def test_the_method_of_the_page_keeps_the_contract(extensions):
    smoothed = extensions["smoothed"].Smoothed
    check_method(smoothed, only=METHOD_CHECKS.keys() - IMPORTABLE)
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
    check_method(mixed, only=METHOD_CHECKS.keys() - IMPORTABLE)
    task = eg.splits.Natural()(eg.toy(), seed=0)
    plain, other, gcn = (
        method.fit(task, seed=0).predict_proba(task.graph)
        for method in (mixed(max_epochs=5, mix=0), mixed(max_epochs=5), eg.GCN(max_epochs=5))
    )
    assert torch.equal(plain, gcn)
    assert not torch.equal(plain, other)


def test_the_metric_of_the_page_is_computed_and_compared(extensions, monkeypatch):
    metric = extensions["metric"].worst_recall
    monkeypatch.setitem(eg.metrics.METRICS, metric.name, metric)
    task = eg.splits.Natural()(eg.toy(), seed=0)
    scores = eg.evaluate(task, torch.eye(5)[task.graph.y.clamp(max=3)])
    assert scores["worst_recall"] == 0
    assert "worst_recall" in eg.metrics.comparable_metrics()


def test_the_protocol_and_the_data_set_of_the_page(extensions, monkeypatch):
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
    monkeypatch.setitem(eg.datasets.DATASETS, "ring", extensions["ring"].ring)
    check_dataset("ring")
    assert eg.load("ring").class_names == ["common", "rare"]


# Examples and notebooks.


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("citation", ("--epochs", "3"), ["generated graph", "[20, 20, 2, 2, 2]", "Uni-GNN"]),
        ("fraud", ("--epochs", "3", "--nodes", "10"), ["average precision", "10 likeliest"]),
        ("accounts", ("--epochs", "5"), ["average precision: ", "p_fraud"]),
    ],
)
def test_an_example_runs(name, arguments, words, monkeypatch, capsys):
    def refuse(name):  # as on a new machine without a network
        raise eg.datasets.DataNotFound(f"There is no {name} here.")

    monkeypatch.setattr(eg, "load", refuse, raising=False)
    module(ROOT / "examples" / f"{name}.py").main(arguments)
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.py")), ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    cells = read_cells(path)
    assert any(run_cells(cells, {"EPOCHS": 1, "SEEDS": [5]}))


def test_cells_of_a_notebook_take_settings_and_hide_no_error():
    cells = [("code", "EPOCHS = 300"), ("code", "print(EPOCHS)"), ("code", "EPOCHS + 1")]
    _, printed, value = run_cells(cells, {"EPOCHS": 2})
    assert printed[0]["text"] == ["2\n"]
    assert value[0]["data"]["text/plain"] == ["3"]
    with pytest.raises(ZeroDivisionError):
        run_cells([("code", "a = 1"), ("code", "a / 0")])


# What is named exists.


def all_commands(command, name):
    inner = getattr(command, "commands", None)
    if inner is None:
        return [name]
    return [one for key, value in inner.items() for one in all_commands(value, f"{name} {key}")]


def test_every_command_has_its_section():
    sections = set(re.findall(r"^## (.+)$", text(DOCS / "commands.md"), flags=re.M))
    assert sections == set(all_commands(COMMAND_LINE, "evengraph"))


def parse(command, name, arguments, parent=None):
    """Parse the arguments of a command, or of one below it, without running it."""
    if not hasattr(command, "commands"):
        command.make_context(name, arguments, parent=parent)
        return
    with command.make_context(name, arguments, parent=parent) as context:
        inner, found, rest = command.resolve_command(context, arguments)
        parse(found, inner, rest, context)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_in_pages_parse(page):
    for block in re.findall(r"```(?:bash|sh|console)?\n(.*?)```", text(page), flags=re.S):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ").partition(" #")[0].partition(" | ")[0]
            words = shlex.split(line) if re.match(r"evengraph [a-z]+ \S", line) else []
            if words and "..." not in line and not re.search(r"evengraph \w+   ", line):
                parse(COMMAND_LINE, "evengraph", words[1:])


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", text(page), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        file = page.parent / target
        is_notebook = file.with_suffix(".ipynb").exists()  # the site shows it as a page
        assert re.match(r"(https?:)?//", target) or file.exists() or is_notebook, target


FOLDERS = ("src", "docs", "tests", "release", "results", "benchmarks", "attack", "examples")
NAMED_PATH = re.compile(r"(?<![\w/.<])((?:[\w.-]+/)+[\w-]+(?:\.\w+)*)(?![\w/<*])")
# What a reader would write, as the examples name it.
NOT_HERE = {
    "src/evengraph/methods/smoothed.py",
    "src/evengraph/splits/perclass.py",
    "tests/methods/test_smoothed.py",
}
HAND_WRITTEN = [page for page in PAGES if page.parent in (ROOT, DOCS)]
HAND_WRITTEN += [ROOT / name / "README.md" for name in ("attack", "benchmarks", "results")]


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=named)
def test_a_page_names_only_files_that_exist(page):
    prose = re.sub(r"https?://\S+|```.*?```", "", text(page), flags=re.S)
    roots = (ROOT, page.parent, ROOT / "src" / "evengraph")
    for name in set(NAMED_PATH.findall(prose)) - NOT_HERE:
        if name.split("/")[0] in FOLDERS or name.endswith(".py"):
            assert any((root / name).exists() for root in roots), name


def test_the_reference_names_every_method_and_everything_that_is_exported():
    reference = "\n".join(text(page) for page in DOCS.glob("reference/*.md"))
    assert "<!-- every method -->" in reference
    documented = module(DOCS / "hooks.py")._method_entries() + "\n"
    methods = {cls.__name__ for cls in eg.METHODS.values()}
    assert all(f"::: evengraph.methods.{name}\n" in documented for name in methods)
    exported = {name for name in dir(eg) if not name.startswith("_")} - methods
    assert [name for name in exported if not re.search(rf"\b{name}\b", reference)] == []
