"""Pure functions on tensors: the building blocks of methods."""

from evengraph.kernels.kmeans_batch import batched_kmeans, flatten_clusters
from evengraph.ops.attach import AttachedGraph, GraphWithCopies
from evengraph.ops.attention import EdgeList, attend, list_edges
from evengraph.ops.conflict import conflict_weights
from evengraph.ops.dropout import Noise, relu_dropout
from evengraph.ops.kmeans import cluster_means, kmeans, nearest_mean
from evengraph.ops.losses import (
    balanced_softmax,
    effective_number_weights,
    focal_cross_entropy,
    inverse_class_weights,
    log_sizes,
)
from evengraph.ops.margins import soft_labels, topology_margins
from evengraph.ops.named_losses import class_loss, labelled_loss
from evengraph.ops.pagerank import personalised_pagerank
from evengraph.ops.propagate import (
    adjacency,
    normalise,
    propagation_matrix,
    undirected_adjacency,
    with_self_loops,
)
from evengraph.ops.prototypes import class_prototypes
from evengraph.ops.pseudo import PseudoLabels, balanced_pseudo_labels, confident_pseudo_labels
from evengraph.ops.sampling import (
    Copies,
    interpolate,
    nearest_in_class,
    plan_copies,
    random_shares,
    rare_classes,
    sample_neighbours,
)
from evengraph.ops.semantic import Clusters, prepare_clusters, semantic_propagate
from evengraph.ops.signature import matching_signatures, node_signatures
from evengraph.ops.sparse import Sparse, sparsify
from evengraph.ops.structural import structural_adjacency

__all__ = [
    "AttachedGraph",
    "Clusters",
    "Copies",
    "EdgeList",
    "GraphWithCopies",
    "Noise",
    "PseudoLabels",
    "Sparse",
    "adjacency",
    "attend",
    "balanced_pseudo_labels",
    "balanced_softmax",
    "batched_kmeans",
    "class_loss",
    "class_prototypes",
    "cluster_means",
    "confident_pseudo_labels",
    "conflict_weights",
    "effective_number_weights",
    "flatten_clusters",
    "focal_cross_entropy",
    "interpolate",
    "inverse_class_weights",
    "kmeans",
    "labelled_loss",
    "list_edges",
    "log_sizes",
    "matching_signatures",
    "nearest_in_class",
    "nearest_mean",
    "node_signatures",
    "normalise",
    "personalised_pagerank",
    "plan_copies",
    "prepare_clusters",
    "propagation_matrix",
    "random_shares",
    "rare_classes",
    "relu_dropout",
    "sample_neighbours",
    "semantic_propagate",
    "soft_labels",
    "sparsify",
    "structural_adjacency",
    "topology_margins",
    "undirected_adjacency",
    "with_self_loops",
]
