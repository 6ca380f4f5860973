"""Graphs on disk: a folder of memory-mapped arrays, written atomically and read in blocks."""

from evengraph.disk.packed_graph import PackedGraph as PackedGraph
from evengraph.disk.packed_graph import PackError as PackError
from evengraph.disk.packed_graph import is_packed as is_packed
from evengraph.disk.writer import PackWriter as PackWriter
from evengraph.disk.writer import pack_graph as pack_graph
from evengraph.disk.writer import unpack_graph as unpack_graph
