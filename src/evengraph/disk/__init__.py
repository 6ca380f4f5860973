"""Graphs larger than memory: folders of memory-mapped arrays, written at once, read in blocks."""

from typing import TYPE_CHECKING

from evengraph.core.lazy import is_packed as is_packed
from evengraph.core.lazy import lazy

if TYPE_CHECKING:
    from evengraph.disk.graphs import PackWriter as PackWriter
    from evengraph.disk.graphs import pack_graph as pack_graph
    from evengraph.disk.graphs import unpack_graph as unpack_graph
    from evengraph.disk.packed_graph import PackedGraph as PackedGraph
    from evengraph.disk.packed_graph import PackError as PackError
    from evengraph.disk.packing import pack as pack
else:  # the main house takes the others by `evengraph.core.lazy`
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "packed_graph": ("PackError", "PackedGraph"),
            "graphs": ("PackWriter", "pack_graph", "unpack_graph", "read_packed", "memory_to_read"),
            "packing": ("pack",),
            "models": ("open_on_disk", "exceeds_memory", "check_method"),
            "inspection": ("inspect_packed", "packed_view"),
            "commands": ("predict_on_disk",),
            "cluster": ("run_on_cluster",),
        },
    )
