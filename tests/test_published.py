"""Long runs: what the README says can be had again. Choose them with -m slow."""

import json
from pathlib import Path

import pytest
import torch

from evengraph.experiment import Run, run

RESULTS = Path(__file__).resolve().parents[1] / "results"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cora-step-3-10-gcn", "cora-step-3-10-unignn"])
def test_a_stored_result_comes_out_again(name, real_graph):
    # Rounding differs between machines and training magnifies it: means of three runs agree to
    # a few points, not to the digit.
    stored = json.loads((RESULTS / f"{name}.json").read_text())
    fields = stored["method"]["fields"]
    plan = Run(dataset="cora", method=stored["method"]["name"], method_fields=fields)
    again = run(plan, real_graph("cora"), torch.device("cpu"))
    for metric in ("balanced_accuracy", "macro_f1", "g_mean"):
        assert again["mean"][metric] == pytest.approx(stored["mean"][metric], abs=5)
