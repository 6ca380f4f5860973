"""Pure functions on tensors: the operations that methods are made of."""

from evengraph.ops.attach import Attached, Repeated
from evengraph.ops.conflict import conflict_weights
from evengraph.ops.kmeans import cluster_means, kmeans, nearest_mean
from evengraph.ops.links import Links, attend, links_of
from evengraph.ops.losses import (
    balanced_softmax,
    class_balanced,
    compensated,
    effective_number_weights,
    focal_cross_entropy,
    inverse_class_weights,
    log_sizes,
    logit_adjusted,
)
from evengraph.ops.margins import soft_labels, topology_margins
from evengraph.ops.named_losses import class_loss, labelled_loss
from evengraph.ops.pagerank import personalised_pagerank
from evengraph.ops.propagate import (
    Sparse,
    adjacency,
    closed,
    features,
    normalise,
    normalised,
    undirected_adjacency,
)
from evengraph.ops.prototypes import class_prototypes
from evengraph.ops.pseudo import PseudoLabels, balanced_pseudo_labels, confident_pseudo_labels
from evengraph.ops.sampling import (
    Copies,
    class_shares,
    copies_of_rare,
    interpolate,
    nearest_peers,
    rare_classes,
    sample_neighbours,
)
from evengraph.ops.semantic import Clusters, prepare_clusters, semantic_propagate
from evengraph.ops.signature import node_signatures, unchanged
from evengraph.ops.structural import structural_adjacency

__all__ = [
    "Attached",
    "Clusters",
    "Copies",
    "Links",
    "PseudoLabels",
    "Repeated",
    "Sparse",
    "adjacency",
    "attend",
    "balanced_pseudo_labels",
    "balanced_softmax",
    "class_balanced",
    "class_loss",
    "class_prototypes",
    "class_shares",
    "closed",
    "cluster_means",
    "compensated",
    "confident_pseudo_labels",
    "conflict_weights",
    "copies_of_rare",
    "effective_number_weights",
    "features",
    "focal_cross_entropy",
    "interpolate",
    "inverse_class_weights",
    "kmeans",
    "labelled_loss",
    "links_of",
    "log_sizes",
    "logit_adjusted",
    "nearest_mean",
    "nearest_peers",
    "node_signatures",
    "normalise",
    "normalised",
    "personalised_pagerank",
    "prepare_clusters",
    "rare_classes",
    "sample_neighbours",
    "semantic_propagate",
    "soft_labels",
    "structural_adjacency",
    "topology_margins",
    "unchanged",
    "undirected_adjacency",
]
