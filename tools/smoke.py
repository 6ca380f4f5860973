"""A short check that evengraph works with the packages around it; prints their versions.

    python -m tools.smoke

`make lowest` runs it with the lowest versions that pyproject.toml allows.
"""

import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

import evengraph as eg

PACKAGES = """
torch torch_geometric numpy scipy joblib platformdirs rich safetensors typer
pandas pyarrow scikit-learn duckdb matplotlib onnx optuna starlette uvicorn
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


def run(*arguments: object) -> None:
    """Run a command of evengraph; a status other than zero is an error."""
    subprocess.run([sys.executable, "-m", "evengraph", *map(str, arguments)], check=True)


def run_commands(folder: Path) -> None:
    """Train on tables, save, predict, export and pack, all through the command line."""
    tables, model = folder / "shops", folder / "model"
    write_tables(tables)
    run(
        "run",
        tables,
        "--label",
        "kind",
        "--method",
        "logistic",
        "--save",
        model,
        "--out",
        folder / "run",
    )
    run("predict", model, tables, "--out", folder / "predictions.csv")
    assert len((folder / "predictions.csv").read_text().splitlines()) == 121
    run("export", model, "--out", folder / "model.onnx")
    run("pack", tables, "--out", folder / "packed")


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
