"""Layers that methods are built from."""

from evengraph.nn.layers import GraphClassifier, GraphConv, relu_dropout

__all__ = ["GraphClassifier", "GraphConv", "relu_dropout"]
