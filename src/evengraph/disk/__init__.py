"""Graphs larger than memory: folders of memory-mapped arrays, written at once, read in blocks."""

from typing import TYPE_CHECKING

from evengraph.core.lazy import lazy

if TYPE_CHECKING:
    from evengraph.disk.packed_graph import PackedGraph as PackedGraph
    from evengraph.disk.packed_graph import PackError as PackError
    from evengraph.disk.packed_graph import is_packed as is_packed
    from evengraph.disk.writer import PackWriter as PackWriter
    from evengraph.disk.writer import pack_graph as pack_graph
    from evengraph.disk.writer import unpack_graph as unpack_graph
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "packed_graph": ("PackError", "PackedGraph", "is_packed"),
            "writer": ("PackWriter", "pack_graph", "unpack_graph"),
        },
    )
