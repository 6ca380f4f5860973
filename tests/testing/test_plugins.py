"""A third party's package: found through its entry points, in a process of its own."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import evengraph as eg

EXAMPLE = Path(__file__).parent / "example_plugin"


def install(folder):
    """Do what pip does without the build backend, which would need the network."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLE / "evengraph_example", folder / "evengraph_example")
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    name, version = project["name"], project["version"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the example package installed."""
    folder = tmp_path_factory.mktemp("site")
    install(folder)
    return folder


def python(site, *arguments, cwd):
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"PYTHONPATH": path, "EVENGRAPH_CACHE": str(cwd / "cache"), "COLUMNS": "200"}
    command = [sys.executable, "-W", "ignore", *arguments]
    options = {"capture_output": True, "text": True, "check": False, "cwd": cwd}
    done = subprocess.run(command, **options, env=os.environ | own)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


COMMANDS = """
import sys
from contextlib import redirect_stdout
from pathlib import Path
from evengraph.cli import main

def evengraph(words):
    with Path("shown.txt").open("w") as file, redirect_stdout(file):
        try: main(words.split())
        except SystemExit as end: assert not end.code, words
    return Path("shown.txt").read_text()

assert "nearestmean" in evengraph("methods")
assert "spread" in evengraph("methods nearestmean")
listed = [line for line in evengraph("data list").splitlines() if line.startswith("rings")]
assert "270" in listed[0] and "package evengraph-example" in listed[0], listed
assert str(Path("cache/rings").resolve()) in evengraph("data fetch rings").replace("\\n", "")
assert Path("cache/rings/rings.npz").exists()
assert "Nearest mean" in evengraph(
    "run rings --split natural --method nearestmean --set max_epochs=3 --splits 1 --out runs"
)
assert Path("runs/result.json").exists()
assert "Nearest mean" in evengraph(
    "compare toy --method gcn,nearestmean --splits 2 --set max_epochs=2 --out compared"
)
"""


def test_the_commands_know_both(site, tmp_path):
    python(site, "-c", COMMANDS, cwd=tmp_path)


def test_the_library_knows_both(site, tmp_path):
    code = """
import torch
import evengraph as eg
from evengraph.testing import check_dataset, check_method
from evengraph_example.method import NearestMean

assert eg.METHODS["nearestmean"] is NearestMean
assert list(eg.METHODS)[-1] == "nearestmean"
check_method(NearestMean, train_accuracy=0.5)
check_dataset("rings")
graph = eg.load("rings")
assert graph.class_names == ["a", "b", "c"]
task = eg.splits.Natural()(graph, seed=0)
model = NearestMean(max_epochs=5).fit(task, seed=0)
model.save("model")
again = eg.load_model("model")
assert type(again) is NearestMean
assert torch.equal(again.predict_proba(graph), model.predict_proba(graph))
"""
    python(site, "-c", code, cwd=tmp_path)
    with pytest.raises(ValueError, match="nearestmean"):  # where the package is not installed
        eg.load_model(tmp_path / "model")


def test_help_reads_no_entry_points(site, tmp_path):
    code = (
        "import sys\n"
        "from evengraph.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert 'evengraph_example' not in sys.modules\n"
        "assert 'torch' not in sys.modules"
    )
    python(site, "-c", code, cwd=tmp_path)
