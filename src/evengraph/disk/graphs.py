"""Graphs in memory, and what writes packed ones in stages that survive a kill."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from filelock import Timeout
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph import __version__
from evengraph.core.files import locked, write_atomic
from evengraph.core.lazy import PACKED
from evengraph.core.machine import available_memory, format_size, parse_size
from evengraph.core.task import edge_weight
from evengraph.disk.packed_graph import FORMAT, MASKS, NEW, PackedGraph, PackError, file_hash
from evengraph.ops.sparse import undirected_adjacency
from evengraph.tables.build import TableGraph
from evengraph.tables.feature_encoder import FeatureEncoder

JOURNAL = "journal.json"
MIN_MEMORY = 300_000_000  # to work from disk: buffers of fixed size take as much
BYTES_PER_EDGE = 40  # of an entry of the edges while it is read: both ends as int64, and a copy


class PackWriter:
    """Writes the arrays of a graph into a hidden folder, which is renamed when it is complete.

    A stage whose facts are in the journal was finished and need not run again; a writer with
    another `source` (files with sizes and times, options) starts afresh. The hidden folder is
    locked as long as the writer is open. The folder to write must not exist.
    """

    def __init__(self, path: str | Path, source: Mapping[str, Any]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.source = json.loads(json.dumps(source))
        self._check_free()
        self.folder = self.path.parent / f".{self.path.name}.partial"
        self.facts: dict[str, dict[str, Any]] = {}

    def _check_free(self) -> None:
        if self.path.exists() or self.path.is_symlink():
            raise FileExistsError(f"{self.path} exists; remove it or name another folder.")

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(Path(f"{self.folder}.lock"), wait=False))
            except Timeout:
                raise PackError(f"{self.folder} is being written by another process.") from None
            self._check_free()  # another process may have finished meanwhile
            self.folder.mkdir(exist_ok=True)
            journal: Any = None
            with suppress(OSError, ValueError):
                journal = json.loads((self.folder / JOURNAL).read_text(encoding="utf-8"))
            if isinstance(journal, dict) and journal.get("source") == self.source:
                self.facts = journal["stages"]
            else:
                self._remove_all_but()
            self._held = stack.pop_all()
        return self

    def _remove_all_but(self, *names: str) -> None:
        for path in self.folder.iterdir():
            if path.name not in names:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        with self._held:
            if kind is not None and issubclass(kind, ValueError):  # bad input: nothing to resume
                shutil.rmtree(self.folder, ignore_errors=True)

    def is_done(self, stage: str) -> bool:
        """Whether a stage was finished, now or before a kill."""
        return stage in self.facts

    def finish(self, stage: str, **facts: Any) -> None:
        """Note that a stage is finished, and what later stages or graph.json need of it."""
        self.facts[stage] = facts
        _write_json({"source": self.source, "stages": self.facts}, self.folder / JOURNAL)

    def write(self, name: str, values: NDArray[Any]) -> None:
        np.save(self.folder / f"{name}.npy", values)

    def read(self, name: str) -> NDArray[Any]:
        """Map an array of an earlier stage."""
        array: NDArray[Any] = np.load(self.folder / f"{name}.npy", mmap_mode="r")
        return array

    def publish(self, **header: Any) -> PackedGraph:
        """Write graph.json with counts and checksums, and rename the folder."""
        arrays = {}
        for path in sorted(self.folder.glob("*.npy")):
            array, digest = self.read(path.stem), file_hash(path)
            about = {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": digest}
            arrays[path.stem] = about
        content = {
            "format": FORMAT,
            "evengraph": __version__,
            "num_nodes": arrays["y"]["shape"][0],
            "num_edges": arrays["indices"]["shape"][0],
            "num_features": arrays["x"]["shape"][1],
            **header,
            "arrays": arrays,
            "source": self.source,
        }
        self._remove_all_but(JOURNAL, *(f"{name}.npy" for name in arrays))
        _write_json(content, self.folder / PACKED)
        (self.folder / JOURNAL).unlink(missing_ok=True)
        os.rename(self.folder, self.path)
        return PackedGraph.open(self.path)


def _write_json(content: Any, path: Path) -> None:
    """Write JSON with all digits: encoders must give the same features again."""
    write_atomic((json.dumps(content, indent=1) + "\n").encode(), path)


def pack_graph(
    graph: Data,
    path: str | Path,
    *,
    ids: NDArray[Any] | None = None,
    dtype: DTypeLike = np.float32,
    source: Mapping[str, Any] | None = None,
    **header: Any,
) -> PackedGraph:
    """Write a graph that is in memory as a packed graph.

    Edges become undirected; self-loops are dropped and repeated edges merged.

    Shapes:
        graph.x: (N, F), graph.edge_index: (2, E), graph.y: (N,); ids: (N,)
    """
    num_nodes = int(graph.num_nodes or 0)
    labels = torch.full((num_nodes,), -1) if graph.y is None else graph.y.cpu()
    number = int(labels.max()) + 1 if len(labels) else 0
    names = graph.get("class_names") or [str(label) for label in range(number)]
    with PackWriter(path, source or {}) as writer:
        weight = edge_weight(graph)
        matrix = undirected_adjacency(graph.edge_index.cpu(), num_nodes, weight).copy()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        writer.write("indptr", matrix.indptr.astype(np.int64))
        writer.write("indices", matrix.indices.astype(index_dtype(num_nodes)))
        if weight is not None:
            writer.write("edge_weight", matrix.data.astype(np.float32))
        writer.write("x", np.ascontiguousarray(graph.x.detach().cpu().numpy(), dtype=dtype))
        writer.write("y", labels.numpy().astype(np.int32))
        ids = np.arange(num_nodes) if ids is None else ids
        if ids.dtype.kind in "iu":
            writer.write("ids", ids.astype(np.int64))
        else:
            texts = [str(value).encode("utf-8", "surrogatepass") for value in ids.tolist()]
            writer.write("ids", np.frombuffer(b"".join(texts), dtype=np.uint8))
            writer.write("ids_offsets", np.cumsum([0, *map(len, texts)]))
        for part in MASKS:
            mask = graph.get(f"{part}_mask")
            if isinstance(mask, Tensor) and mask.shape == (num_nodes,):
                writer.write(f"{part}_mask", mask.cpu().numpy().astype(bool))
        if isinstance(graph.get("time"), Tensor):
            writer.write("time", graph.time.cpu().numpy())
        counts = torch.bincount(labels[labels >= 0], minlength=len(names)).tolist()
        return writer.publish(class_names=list(names), class_counts=counts, **header)


def index_dtype(num_nodes: int) -> type[np.signedinteger[Any]]:
    """The smallest of int32 and int64 that numbers all nodes."""
    return np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64


def unpack_graph(packed: PackedGraph) -> Data:
    """Read a packed graph into memory, as the readers of tables and files give it.

    Shapes:
        x: float32, (N, F); edge_index: int64, (2, E), sorted; y: int64, (N,)
    """
    rows = np.repeat(np.arange(packed.num_nodes), np.diff(packed.indptr))
    graph = Data(
        x=torch.from_numpy(packed.x.astype(np.float32)),
        edge_index=torch.from_numpy(np.stack([rows, packed.indices])),
        y=torch.from_numpy(packed.y.astype(np.int64)),
    )
    if packed.edge_weight is not None:
        graph.edge_weight = torch.from_numpy(np.array(packed.edge_weight))
    if packed.class_names:
        graph.class_names = list(packed.class_names)
    for part in (*MASKS, NEW.removesuffix("_mask")):
        mask = packed.mask(part)
        if mask is not None:
            graph[f"{part}_mask"] = torch.from_numpy(np.array(mask))
    if "time" in packed.header["arrays"]:
        graph.time = torch.from_numpy(np.array(packed.array("time")))
    return graph


def read_packed(path: Path, encoder: FeatureEncoder | None = None) -> TableGraph:
    """Read a packed graph into memory; an error says how much it needs if that is too little."""
    packed = PackedGraph.open(path)
    check_encoder(packed, encoder)
    needed, free = memory_to_read(packed), available_memory()
    if needed > free:
        raise ValueError(
            f"{path} must fit into memory to be read as a whole: it needs about "
            f"{format_size(needed)}, and {format_size(free)} are free."
        )
    packed.check()
    made_by, columns = packed.encoding()
    try:
        ids = np.asarray(packed.ids[:])
    except ValueError as error:
        raise PackError(f"{path} is damaged: ids: {error}. Pack the graph again.") from None
    return TableGraph(graph=unpack_graph(packed), ids=ids, encoder=made_by, columns=columns)


def check_encoder(packed: PackedGraph, encoder: FeatureEncoder | None) -> None:
    """Raise ValueError if another encoder made the features; None stands for anything."""
    if encoder is None:
        return
    if replace(packed.encoding()[0], notes=()) != replace(encoder, notes=()):
        raise ValueError(f"{packed.path} must hold the features that the model was trained on.")


def memory_to_read(packed: PackedGraph) -> int:
    """Bytes that a graph takes in memory while it is read."""
    return packed.num_nodes * (8 * packed.num_features + 100) + BYTES_PER_EDGE * packed.num_edges


def memory_limit(memory: str | int | None, processes: int = 1) -> int:
    """Bytes to use from disk: those that were given, else half of what is free."""
    if memory is None:
        return available_memory() // (2 * processes)
    if (limit := parse_size(memory)) < MIN_MEMORY:
        raise ValueError(f"memory must be at least 300MB, got {memory}.")
    return limit
