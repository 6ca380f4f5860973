"""Long runs: what is stored can be had again. Choose them with -m slow."""

import shutil
from pathlib import Path
from statistics import fmean

import pytest

from evengraph.lab.results import load_experiments
from evengraph.lab.store import Store
from evengraph.methods import METHODS
from evengraph.pipeline.run import RunPlan, run
from evengraph.splits import Step

RESULTS = Path(__file__).resolve().parents[1] / "results"


@pytest.mark.slow
@pytest.mark.parametrize("label", ["GCN", "Uni-GNN"])
def test_a_stored_result_comes_out_again(label, real_graph, tmp_path):
    # Rounding differs between machines and training magnifies it: means of three runs agree to
    # a few points, not to the digit.
    shutil.copy(RESULTS / "reproduce.sqlite", tmp_path)
    results = next(
        b for b in load_experiments(Store(tmp_path / "reproduce.sqlite")) if b.name == "table1"
    )
    cell = results.with_selection_seeds().find("cora-step-3-0.1", label)
    job = cell.rows[0].job
    plan = RunPlan(
        dataset="cora",
        graph=real_graph("cora"),
        protocol=Step(),
        methods={job.method: METHODS[job.method](**job.method_fields)},
        seeds=(5, 6, 7),
    )
    (again,) = run(plan).results
    for metric in ("balanced_accuracy", "macro_f1", "g_mean"):
        assert again["mean"][metric] == pytest.approx(fmean(cell.values(metric)), abs=6)
