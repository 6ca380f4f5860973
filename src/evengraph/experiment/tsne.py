"""embed_nodes(): repeat a run and lay its embeddings out in a plane by t-SNE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from evengraph.core.store import JobSpec
from evengraph.experiment.stored import resolve

MOST_NODES = 3000  # of a picture that is still readable


def embed_nodes(
    spec: JobSpec, *, device: str = "cpu", root: Path | None = None
) -> dict[str, Any] | None:
    """Fit, and lay the embeddings out by t-SNE; None for a method that has no embeddings.

    Classes are the true ones, also of test nodes: nothing is learnt from the picture.
    """
    job = resolve(spec, root)
    method = job.method
    if not hasattr(method, "embeddings"):
        return None
    from sklearn.manifold import TSNE

    task = job.make_task(device)
    method.fit(task, seed=job.seed, progress=False)
    embeddings, clusters = method.embeddings()
    step = -(-task.graph.num_nodes // MOST_NODES)
    nodes = torch.arange(0, task.graph.num_nodes, step)
    layout = TSNE(init="pca", perplexity=min(30, (nodes.numel() - 1) / 3), random_state=0)
    plane = torch.from_numpy(layout.fit_transform(embeddings.cpu()[nodes].numpy()))
    plane = plane - plane.amin(0)
    plane = 100 * plane / plane.amax(0).clamp(min=1e-9)
    return {
        "x": [round(value, 2) for value in plane[:, 0].tolist()],
        "y": [round(value, 2) for value in plane[:, 1].tolist()],
        "classes": task.graph.y.cpu()[nodes].tolist(),
        "clusters": None if clusters is None else clusters.cpu()[nodes].tolist(),
        "train": task.train.cpu()[nodes].tolist(),
        "class_names": list(task.class_names),
    }
