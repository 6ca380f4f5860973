"""Pack graphs: tables of any size, data sets and generated graphs into folders on disk."""

from evengraph.packing.pack import pack as pack
