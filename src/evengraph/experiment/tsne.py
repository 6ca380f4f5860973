"""embed_nodes(): a run once more, to see where its nodes lie in a plane."""

from __future__ import annotations

from typing import Any

import torch

from evengraph.core.store import Job
from evengraph.experiment.engines import Place, make_task
from evengraph.methods import METHODS, UniGNN

MOST_NODES = 3000  # of a picture that is still readable


def embed_nodes(job: Job, *, place: Place) -> dict[str, Any] | None:
    """Fit, and lay the embeddings out by t-SNE; none for a method that tells no embeddings.

    Classes are the true ones, of test nodes too: the picture shows what was found, and nothing
    is learnt from it.
    """
    method = METHODS[job.method](**job.method_fields)
    if not isinstance(method, UniGNN):
        return None
    from sklearn.manifold import TSNE

    task = make_task(job, torch.device(place.device), place.root)
    method.fit(task, seed=job.seed, progress=False)
    embeddings, clusters = method.embeddings()
    step = -(-task.graph.num_nodes // MOST_NODES)
    chosen = torch.arange(0, task.graph.num_nodes, step)
    layout = TSNE(init="pca", perplexity=min(30, (chosen.numel() - 1) / 3), random_state=0)
    plane = torch.from_numpy(layout.fit_transform(embeddings.cpu()[chosen].numpy()))
    plane = plane - plane.amin(0)
    plane = 100 * plane / plane.amax(0).clamp(min=1e-9)
    return {
        "x": [round(value, 2) for value in plane[:, 0].tolist()],
        "y": [round(value, 2) for value in plane[:, 1].tolist()],
        "classes": task.graph.y.cpu()[chosen].tolist(),
        "clusters": None if clusters is None else clusters.cpu()[chosen].tolist(),
        "train": task.train.cpu()[chosen].tolist(),
        "class_names": list(task.class_names),
    }
