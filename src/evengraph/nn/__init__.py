"""Layers and networks that methods are built from."""

from evengraph.nn.layers import GraphClassifier, GraphConv, relu_dropout
from evengraph.nn.unified import Connectivity, UnifiedNetwork

__all__ = ["Connectivity", "GraphClassifier", "GraphConv", "UnifiedNetwork", "relu_dropout"]
