"""Look first: what a graph and its labels are like, in figures and in plain words."""

from evengraph.inspection.findings import Finding
from evengraph.inspection.inspection import Inspection, inspect_graph

__all__ = ["Finding", "Inspection", "inspect_graph"]
