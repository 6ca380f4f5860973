"""Layers and networks of the methods."""

from evengraph.core.lazy import lazy

_NAMES = {
    "networks": ("GraphNetwork",),
    "transforms": ("SemanticLayer", "StructuralLayer", "structural_connectivity"),
}
__getattr__, __dir__ = lazy(__name__, _NAMES)
