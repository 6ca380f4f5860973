"""The stored comparison: what is drawn from it is what it holds, and it holds what it should."""

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

from evengraph.experiment.presets import _presets
from evengraph.methods import METHODS

RESULTS = Path(__file__).resolve().parents[1] / "results"


@pytest.fixture(scope="module")
def comparison():
    spec = importlib.util.spec_from_file_location("comparison", RESULTS / "comparison.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_drawn_from_the_runs(comparison):
    assert (RESULTS / "comparison.md").read_text(encoding="utf-8") == comparison.text()


def test_the_front_page_has_its_summary(comparison):
    assert comparison.summary() in (RESULTS.parent / "README.md").read_text(encoding="utf-8")


def test_every_method_ran_on_every_setup(comparison):
    found = comparison.chosen()
    assert len(found) == 14
    for setup, methods in found.items():
        assert len(methods) == len(METHODS) + 1, setup  # GraphSMOTE has two variants
        for runs in methods.values():
            assert sorted(row["seed"] for row in runs) == ["5", "6", "7"]


def test_no_run_is_stored_twice(comparison):
    names = ("dataset", "imbalance", "minority", "ratio", "method", "fields", "split", "seed")
    runs = Counter(tuple(row[name] for name in names) for row in comparison.rows())
    assert set(runs.values()) == {1}


def test_presets_of_lte4g_are_the_best_on_validation(comparison):
    found = comparison.chosen()
    for preset in _presets():
        if preset["method"] == "lte4g" and "validation" in preset:
            setup = (preset["dataset"], "step", str(preset["minority"]), str(preset["ratio"]))
            runs = found[setup]["LTE4G"]
            fields = {f"{name}={value}" for name, value in preset["fields"].items()}
            assert fields <= set(runs[0]["fields"].split())
            mean = sum(float(row["validation"]) for row in runs) / len(runs)
            assert mean == pytest.approx(preset["validation"]["card"], abs=0.06)
