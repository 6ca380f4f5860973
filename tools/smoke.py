"""A short check that evengraph works with the packages around it; prints their versions.

    python -m tools.smoke

`make smoke` runs it on a bare installation and on one with all extras, `make lowest` with the
lowest versions that pyproject.toml allows.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import torch

import evengraph as eg

PACKAGES = """
torch torch_geometric numpy scipy joblib platformdirs rich safetensors typer pandas pyarrow
scikit-learn pydantic psutil networkx threadpoolctl filelock
duckdb onnx ray starlette uvicorn
"""


def fit_methods() -> None:
    """Fit a network, a linear model and our own method on a generated graph."""
    task = eg.splits.Step(minority=2, ratio=0.5)(eg.toy(), seed=0)
    for name in ("gcn", "logistic", "unignn", "unison"):
        method = eg.METHODS[name]
        params = {"max_epochs": 5} if "max_epochs" in method.__dataclass_fields__ else {}
        probabilities = method(**params).fit(task, seed=0).predict_proba(task.graph)
        assert torch.allclose(probabilities.sum(dim=1), torch.ones(len(probabilities)), atol=1e-5)
        print(f"{name:>10} {eg.evaluate(task, probabilities)['balanced_accuracy']:.2f}")


def write_tables(folder: Path, *, size: int = 120) -> None:
    """Write two CSV tables: a ring of nodes, the last fifth of which is rare."""
    rows = [
        f"n{i},{i % 7},{'red' if i % 3 else 'blue'},{'rare' if i % 5 == 0 else 'common'}"
        for i in range(size)
    ]
    folder.mkdir()
    (folder / "nodes.csv").write_text("\n".join(["id,turnover,colour,kind", *rows]) + "\n")
    edges = [f"n{i},n{(i + step) % size}" for i in range(size) for step in (1, 5)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")


def run(*arguments: object, extra: str = "", package: str = "") -> None:
    """Run a command of evengraph; without the package of its extra, it must say what to install."""
    command = [sys.executable, "-m", "evengraph", *map(str, arguments)]
    if not package or find_spec(package):
        subprocess.run(command, check=True)
        return
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2, result.stderr
    assert f"pip install '.[{extra}]'" in result.stderr, result.stderr


def run_commands(folder: Path) -> None:
    """Train on tables, save, predict, export and pack, all through the command line."""
    tables, model, logistic = (folder / name for name in ("shops", "model", "logistic"))
    write_tables(tables)
    train = ("run", tables, "--label", "kind", "--splits", "1")
    run(*train, "--save", model, "--out", folder / "run")
    text = (folder / "run" / "result.json").read_text()
    assert json.loads(text)
    assert "not installed" not in text  # every candidate of the default could be fitted
    run("predict", model, tables, "--out", folder / "predictions.csv")
    assert len((folder / "predictions.csv").read_text().splitlines()) == 121
    run(*train, "--method", "logistic", "--save", logistic, "--out", folder / "other")
    run("export", logistic, "--out", folder / "model.onnx", extra="onnx", package="onnx")
    run("pack", tables, "--out", folder / "packed", extra="disk", package="duckdb")


def main() -> None:
    """Check, and print what it was checked with."""
    fit_methods()
    with tempfile.TemporaryDirectory() as folder:
        run_commands(Path(folder))
    for name in PACKAGES.split():
        try:
            print(f"{name:>16} {version(name)}")
        except PackageNotFoundError:
            print(f"{name:>16} not installed")


if __name__ == "__main__":
    main()
