"""Inspect a graph before training: classes, edges, reach, features and leaks."""

from evengraph.inspection.findings import Finding
from evengraph.inspection.inspection import Inspection, inspect_graph

__all__ = ["Finding", "Inspection", "inspect_graph"]
