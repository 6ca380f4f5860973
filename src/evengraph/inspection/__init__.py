"""Inspect a graph before training: classes, edges, reach, features and leaks."""

from evengraph.inspection.inspection import Finding, Inspection, inspect_graph

__all__ = ["Finding", "Inspection", "inspect_graph"]
