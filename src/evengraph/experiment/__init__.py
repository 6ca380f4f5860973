"""Experiments: what to run, running it, and the paper's values to compare with."""

from evengraph.experiment.published import paper_cell, preset_for
from evengraph.experiment.run import RunPlan, run

__all__ = ["RunPlan", "paper_cell", "preset_for", "run"]
