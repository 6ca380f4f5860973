"""Plain reference mathematics on tensors: the building blocks of methods.

The functions that the documentation names can be imported from here; all others from their module.
"""

from evengraph.core.lazy import lazy

_NAMES = {
    "losses": (
        *("balanced_softmax", "class_cross_entropy", "class_loss", "focal_cross_entropy"),
        *("inverse_class_weights", "log_sizes"),
    ),
    "pseudo": ("balanced_pseudo_labels",),
    "semantic": (
        *("cluster_means", "kmeans", "nearest_mean", "prepare_clusters", "semantic_propagate"),
    ),
    "sparse": ("Sparse", "propagation_matrix", "sparsify", "undirected_adjacency"),
    "structural": ("structural_adjacency",),
}
__getattr__, __dir__ = lazy(__name__, _NAMES)
