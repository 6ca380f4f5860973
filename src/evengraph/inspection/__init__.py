"""Inspect a graph before training: classes, edges, reach, features and leaks."""

from evengraph.inspection.inspection import Finding, Inspection, doubt, inspect_graph, leak_warnings

__all__ = ["Finding", "Inspection", "doubt", "inspect_graph", "leak_warnings"]
