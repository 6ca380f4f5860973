"""Pure functions on tensors: the operations that methods are made of."""

from evengraph.ops.kmeans import cluster_means, kmeans, nearest_mean
from evengraph.ops.losses import inverse_class_weights
from evengraph.ops.propagate import Sparse, adjacency, features, normalised
from evengraph.ops.pseudo import PseudoLabels, balanced_pseudo_labels, confident_pseudo_labels
from evengraph.ops.semantic import Clusters, prepare_clusters, semantic_propagate
from evengraph.ops.structural import structural_adjacency

__all__ = [
    "Clusters",
    "PseudoLabels",
    "Sparse",
    "adjacency",
    "balanced_pseudo_labels",
    "cluster_means",
    "confident_pseudo_labels",
    "features",
    "inverse_class_weights",
    "kmeans",
    "nearest_mean",
    "normalised",
    "prepare_clusters",
    "semantic_propagate",
    "structural_adjacency",
]
