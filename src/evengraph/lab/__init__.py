"""Experiment files, the store of their runs, and the tables of the paper."""
