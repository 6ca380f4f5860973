"""Layers and networks of the methods."""

from evengraph.core.lazy import lazy

_NAMES = {
    "connectivity": ("SemanticLayer", "StructuralLayer", "structural_connectivity"),
    "networks": ("GraphNetwork",),
}
__getattr__, __dir__ = lazy(__name__, _NAMES)
