"""What every reader under attack has in common."""

import shutil

import torch

from attack.fuzz.mutations import mutate_bytes
from evengraph.tables import open_graph

torch.set_num_threads(1)
NODES = 30


class Reader:
    """A reader, its valid files, and how they are mutated."""

    name = ""
    accepts_errors = True
    is_text = False

    def prepare(self, folder):
        """Write the valid files, one file or folder each."""

    def mutate(self, stream, samples, folder):
        """Write a mutated copy of a valid file into a folder; returns its path."""
        sample = stream.choice(sorted(samples.iterdir()))
        folder.mkdir()
        path = folder / sample.name
        if sample.is_dir():
            shutil.copytree(sample, path)
        else:
            shutil.copy(sample, path)
        try:
            self.change(stream, path)
        except (
            RuntimeError,
            MemoryError,
            TypeError,
            IndexError,
        ):  # a file that cannot be written is no case
            Reader.change(self, stream, path)
        return path

    def change(self, stream, path):
        """Mutate a file or folder in place."""
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        file = stream.choice(files)
        content = mutate_bytes(stream, file.read_bytes())
        if self.is_text and stream.random() < 0.7:  # most damaged bytes are no text
            content = content.decode(errors="ignore").replace("\0", "").encode()
        file.write_bytes(content)

    def read(self, path):
        """Read the file; a valid result is checked."""
        check(open_graph(path))


def check(tables):
    """What holds for every graph that was read."""
    graph = tables.graph
    assert graph.x.shape[0] == graph.y.shape[0] == len(tables.ids)
    assert torch.isfinite(graph.x).all()
    if graph.edge_index.numel():
        assert 0 <= graph.edge_index.min() <= graph.edge_index.max() < len(graph.y)
    assert graph.y.max() < max(len(tables.class_names), 1)
