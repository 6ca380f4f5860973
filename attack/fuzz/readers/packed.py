"""Packed graphs: folders of memory-mapped arrays."""

import json
import os
from hashlib import sha256

import numpy as np
import torch

from attack.fuzz.mutations import mutate_array, mutate_bytes, mutate_json
from attack.fuzz.readers.base import Reader, check
from attack.fuzz.readers.tables import ROWS, frames
from evengraph.datasets import toy
from evengraph.disk import PackedGraph, pack, pack_graph
from evengraph.disk.models import DiskGraph
from evengraph.disk.propagation import Walk
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


class Cache(Reader):
    """Features that a run has stored beside a packed graph, damaged before the next run."""

    name = "cache"
    accepts_errors = False

    def prepare(self, folder):
        pack_graph(toy(60, 120, 8, 3), folder / "graph")

    def change(self, stream, path):
        self._propagate(path)  # what is stored belongs to this copy
        file = stream.choice(sorted(path.rglob("columns-*.npy")))
        kind = stream.randrange(5)
        if kind == 0:
            file.write_bytes(mutate_bytes(stream, file.read_bytes()))
        elif kind == 1:
            np.save(file, mutate_array(stream, np.load(file)))
        elif kind == 2:
            np.save(file, np.roll(np.load(file), 1 + stream.randrange(59), axis=0))
        elif kind == 3:
            other = stream.choice(sorted(path.rglob("columns-*.npy")))
            file.write_bytes(other.read_bytes())
        else:
            os.mkfifo(file.with_name(f"{file.name[: stream.randrange(9, 40)]}.npy"))

    def read(self, path):
        found, expected = self._propagate(path), self._propagate(path, path / "afresh")
        assert torch.equal(found, expected)

    @staticmethod
    def _propagate(path, folder=None):
        disk = DiskGraph.open(PackedGraph.open(path), 10_000, folder=folder)
        return disk.space.propagate(disk.x, Walk("symmetric", 2)).read(slice(0, 60))
