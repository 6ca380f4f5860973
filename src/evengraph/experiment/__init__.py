"""Experiments: what to run, running it, and the paper's values to compare with."""
