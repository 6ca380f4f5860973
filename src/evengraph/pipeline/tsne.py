"""A map of the nodes of a fit: embeddings laid out in a plane by t-SNE."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods import Method

MOST_NODES = 3000  # of a picture that is still readable


def place_nodes(method: Method, task: Task) -> dict[str, Any]:
    """Lay nodes out by t-SNE of their embeddings, or of the probabilities without any.

    Classes are the true ones, also of test nodes: nothing is learnt from the picture.
    """
    probabilities = method.predict_task(task).cpu()
    embeddings, clusters = _embeddings(method, probabilities)
    step = -(-task.graph.num_nodes // MOST_NODES)
    nodes = torch.arange(0, task.graph.num_nodes, step)
    layout = import_tsne()(init="pca", perplexity=min(30, (nodes.numel() - 1) / 3), random_state=0)
    plane = torch.from_numpy(layout.fit_transform(embeddings[nodes].numpy()))
    plane = plane - plane.amin(0)
    plane = 100 * plane / plane.amax(0).clamp(min=1e-9)
    return {
        "x": [round(value, 2) for value in plane[:, 0].tolist()],
        "y": [round(value, 2) for value in plane[:, 1].tolist()],
        "classes": task.graph.y.cpu()[nodes].tolist(),
        "predicted": probabilities.argmax(1)[nodes].tolist(),
        "clusters": None if clusters is None else clusters[nodes].tolist(),
        "train": task.train.cpu()[nodes].tolist(),
        "class_names": list(task.class_names),
        "of": "embeddings" if hasattr(method, "embeddings") else "probabilities",
    }


def import_tsne() -> Any:
    """The class of scikit-learn; ValueError if that is not installed."""
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        message = "A map needs scikit-learn; install it with: pip install 'evengraph[tables]'."
        raise ValueError(message) from None
    return TSNE


def _embeddings(method: Method, probabilities: Tensor) -> tuple[Tensor, Tensor | None]:
    """What to lay out, and clusters if the method has any."""
    if not hasattr(method, "embeddings"):
        return probabilities.clamp(min=1e-6).log(), None
    embeddings, clusters = method.embeddings()
    return embeddings.cpu(), None if clusters is None else clusters.cpu()
