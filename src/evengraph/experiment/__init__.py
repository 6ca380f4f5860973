"""Experiments: what to run, running it, and the paper's figures to compare with."""

from evengraph.experiment.paper import paper_cell
from evengraph.experiment.presets import preset_for
from evengraph.experiment.runner import Run, run

__all__ = ["Run", "paper_cell", "preset_for", "run"]
