"""Packed graphs: folders of memory-mapped arrays."""

import json
from hashlib import sha256

import numpy as np

from attack.fuzz.mutations import mutate_array, mutate_bytes, mutate_json
from attack.fuzz.readers.base import Reader, check
from attack.fuzz.readers.tables import ROWS, frames
from evengraph.disk import PackedGraph, pack
from evengraph.tables import open_graph

HEADER = "graph.json"


class Packed(Reader):
    """Folders that `evengraph pack` wrote."""

    name = "packed"

    def prepare(self, folder):
        nodes, edges = frames(rows=ROWS)
        tables = folder.parent / "tables"
        tables.mkdir(exist_ok=True)
        nodes.to_csv(tables / "nodes.csv", index=False)
        edges.to_csv(tables / "edges.csv", index=False)
        pack(tables / "nodes.csv", folder / "graph", edges=tables / "edges.csv")

    def change(self, stream, path):
        kind = stream.randrange(4)
        header = json.loads((path / HEADER).read_text())
        if kind == 0:
            return super().change(stream, path)
        if kind == 1:
            content = mutate_json(stream, header)
            (path / HEADER).write_text(json.dumps(content))
            return None
        file = stream.choice(sorted(path.glob("*.npy")))
        if kind == 2:
            file.write_bytes(mutate_bytes(stream, file.read_bytes()))
        else:
            np.save(file, mutate_array(stream, np.load(file)))
        return self._describe(header, file, path)

    @staticmethod
    def _describe(header, file, path):
        """Make the header fit, as somebody would who wants the folder to be opened."""
        try:
            array = np.load(file)
        except Exception:  # no array any more
            return
        known = header["arrays"].get(file.stem)
        if known is not None:
            known |= {"dtype": str(array.dtype), "shape": list(array.shape)}
            known["sha256"] = sha256(file.read_bytes()).hexdigest()
        (path / HEADER).write_text(json.dumps(header))

    def read(self, path):
        PackedGraph.open(path, verify=True)
        check(open_graph(path))
