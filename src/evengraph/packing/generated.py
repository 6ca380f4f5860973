"""Generated graphs of any size, written in blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evengraph.datasets.toy import PairSampler, class_sizes, word_features, word_orders, word_ranks
from evengraph.disk import PackedGraph, PackWriter
from evengraph.disk.array_file import ArrayFile
from evengraph.disk.edge_sorter import EdgeSorter
from evengraph.packing.engine import Progress, no_progress

NODE_BYTES = 100
"""Memory per node: class, popularity, order by class, and copies while they are made."""

BLOCK_PAIRS, BLOCK_ROWS = 1 << 20, 1 << 17
"""Drawn at once: the same for any memory, so that the graph is the same."""


def pack_toy(
    path: str | Path,
    *,
    num_nodes: int,
    degree: float = 20,
    num_features: int = 64,
    num_classes: int = 5,
    seed: int = 0,
    homophily: float = 0.8,
    size_ratio: float = 0.2,
    dtype: str = "float32",
    memory: int = 2**31,
    progress: Progress = no_progress,
) -> PackedGraph:
    """Generate a graph as `evengraph.datasets.toy` does, but in blocks, and pack it.

    Repeated edges are merged and not replaced, so the mean degree is a little lower.

    Args:
        path: The folder to write; it must not exist.
        num_nodes: N.
        degree: Mean number of neighbours.
        num_features: Size of the vocabulary.
        num_classes: At least two.
        seed: Seed of the generator.
        homophily: Share of the edges that stay within a class.
        size_ratio: Smallest class over largest class.
        dtype: float32 or float16, of the features.
        memory: Bytes to use.
        progress: Called with the name of a stage and the share of it that is done.
    """
    for valid, message in (
        (num_classes >= 2, f"num_classes must be at least 2, got {num_classes}."),
        (num_nodes >= num_classes, f"num_nodes must be at least {num_classes}, got {num_nodes}."),
        (num_features >= 1, f"num_features must be at least 1, got {num_features}."),
        (0 <= degree < num_nodes, f"degree must lie in [0, {num_nodes}), got {degree}."),
        (seed >= 0, f"seed must not be negative, got {seed}."),
        (
            NODE_BYTES * num_nodes < memory,
            f"memory must be above {NODE_BYTES} bytes per node, got {memory} for {num_nodes}.",
        ),
    ):
        if not valid:
            raise ValueError(message)
    streams = np.random.default_rng(seed).spawn(3)
    sizes = class_sizes(num_nodes, num_classes, size_ratio)
    labels = np.repeat(np.arange(num_classes), sizes)
    streams[0].shuffle(labels)
    options = {"degree": degree, "features": num_features, "classes": num_classes, "seed": seed}
    source = {"data": "toy", "nodes": num_nodes, **options, "dtype": dtype, "ratio": size_ratio}
    with PackWriter(path, source | {"homophily": homophily}) as writer:
        if not writer.is_done("edges"):
            draw = PairSampler(streams[1], labels, sizes, homophily)
            _write_edges(writer, draw, round(num_nodes * degree / 2), memory, progress)
            writer.finish("edges")
        _write_features(writer, streams[2], labels, num_features, num_classes, dtype, progress)
        writer.write("y", labels.astype(np.int32))
        writer.write("ids", np.arange(num_nodes))
        progress("writing checksums", None)
        names = [str(label) for label in range(num_classes)]
        return writer.publish(name="toy", class_names=names, class_counts=sizes.tolist(), notes=[])


def _write_edges(
    writer: PackWriter, draw: PairSampler, num_pairs: int, memory: int, progress: Progress
) -> None:
    num_nodes = len(draw.labels)
    sorter = EdgeSorter(writer, num_nodes, num_pairs, memory // 2)
    for start in range(0, num_pairs, BLOCK_PAIRS):
        progress("drawing edges", start / num_pairs)
        sorter.add(*np.divmod(draw(min(BLOCK_PAIRS, num_pairs - start)), num_nodes))
    progress("sorting edges", None)
    sorter.write()


def _write_features(
    writer: PackWriter,
    rng: np.random.Generator,
    labels: np.ndarray[tuple[int], np.dtype[np.int64]],
    num_features: int,
    num_classes: int,
    dtype: str,
    progress: Progress,
) -> None:
    orders = word_orders(rng, num_features, num_classes)
    with ArrayFile(writer.folder / "x.npy", dtype, num_features) as x:
        for start in range(0, len(labels), BLOCK_ROWS):
            progress("drawing features", start / len(labels))
            block = labels[start : start + BLOCK_ROWS]
            rank = word_ranks(rng, len(block), num_features)
            x.append(word_features(rng, block, rank, orders))
