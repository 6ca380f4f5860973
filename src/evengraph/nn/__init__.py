"""Layers and networks of the methods."""

from evengraph.core.lazy import lazy

__getattr__, __dir__ = lazy(__name__, {"networks": ("GraphNetwork",)})
