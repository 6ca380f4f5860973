"""Layers and networks of the methods."""

from evengraph.nn.backbones import (
    BACKBONES,
    CONVS,
    LAST_CONVS,
    PYG_CONVS,
    AttentionConv,
    Backbone,
    SageConv,
)
from evengraph.nn.connectivity import SemanticLayer, StructuralLayer, structural_connectivity
from evengraph.nn.decoders import EdgeDecoder, Reconstruction
from evengraph.nn.layers import Convolution, GraphClassifier, GraphConv
from evengraph.nn.networks import GraphNetwork, Inputs, PlainNetwork
from evengraph.nn.unified import Connectivity, UnifiedNetwork

__all__ = [
    "BACKBONES",
    "CONVS",
    "LAST_CONVS",
    "PYG_CONVS",
    "AttentionConv",
    "Backbone",
    "Connectivity",
    "Convolution",
    "EdgeDecoder",
    "GraphClassifier",
    "GraphConv",
    "GraphNetwork",
    "Inputs",
    "PlainNetwork",
    "Reconstruction",
    "SageConv",
    "SemanticLayer",
    "StructuralLayer",
    "UnifiedNetwork",
    "structural_connectivity",
]
