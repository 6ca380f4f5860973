"""Generated graphs of any size, packed in blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pyarrow import Table

from evengraph.datasets.toy import PairSampler, class_sizes, word_features, word_orders, word_ranks
from evengraph.disk import PackedGraph
from evengraph.disk.engine import Engine, write_edges
from evengraph.disk.graphs import PackWriter
from evengraph.disk.packed_graph import ArrayFile

# drawn at once: the same for any memory, so that the graph is the same
BLOCK_PAIRS, BLOCK_ROWS = 1 << 20, 1 << 17


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
    memory: int = 2**31,
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
        memory: Bytes to use.
    """
    streams = np.random.default_rng(seed).spawn(3)
    sizes = class_sizes(num_nodes, num_classes, size_ratio)
    labels = np.repeat(np.arange(num_classes), sizes)
    streams[0].shuffle(labels)
    options = {"degree": degree, "features": num_features, "classes": num_classes, "seed": seed}
    source = {"data": "toy", "nodes": num_nodes, **options, "ratio": size_ratio}
    with PackWriter(path, source | {"homophily": homophily}) as writer:
        if not writer.is_done("edges"):
            draw = PairSampler(streams[1], labels, sizes, homophily)
            _draw_edges(writer, draw, round(num_nodes * degree / 2), memory // 2)
            writer.finish("edges")
        orders = word_orders(streams[2], num_features, num_classes)
        with ArrayFile(writer.folder / "x.npy", "float32", num_features) as x:
            for start in range(0, num_nodes, BLOCK_ROWS):
                block = labels[start : start + BLOCK_ROWS]
                rank = word_ranks(streams[2], len(block), num_features)
                x.append(word_features(streams[2], block, rank, orders))
        writer.write("y", labels.astype(np.int32))
        writer.write("ids", np.arange(num_nodes))
        names = [str(label) for label in range(num_classes)]
        return writer.publish(name="toy", class_names=names, class_counts=sizes.tolist(), notes=[])


def _draw_edges(writer: PackWriter, draw: PairSampler, num_pairs: int, memory: int) -> None:
    num_nodes = len(draw.labels)
    engine = Engine(writer.folder / "work.duckdb", memory)
    try:
        engine.run("CREATE OR REPLACE TABLE links (s BIGINT, t BIGINT)")
        for start in range(0, num_pairs, BLOCK_PAIRS):
            ends = np.divmod(draw(min(BLOCK_PAIRS, num_pairs - start)), num_nodes)
            engine.connection.register("pairs", Table.from_arrays(ends, names=["s", "t"]))
            engine.run("INSERT INTO links SELECT * FROM pairs", ordered=False)
            engine.connection.unregister("pairs")
        write_edges(engine, writer, num_nodes, weighted=False)
    finally:
        engine.close()
