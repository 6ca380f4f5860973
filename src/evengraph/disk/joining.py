"""Pack new tables as earlier ones were: with their encoders, alone or joined to their graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evengraph.disk.engine import Engine, write_pointers
from evengraph.disk.graphs import PackWriter, check_encoder, index_dtype
from evengraph.disk.pack_nodes import ids_in_arrow
from evengraph.disk.packed_graph import MASKS, NEW, ArrayFile, PackedGraph, fitting_rows
from evengraph.disk.tables import row_slices
from evengraph.pipeline.table_model import TableModel
from evengraph.tables import FeatureEncoder, TableColumns

ENTRIES = 1 << 22  # of edges that are merged at a time
ENDS = ("id", "source", "target", "weight", "date_order")  # as before, whatever tables hold


class Earlier(NamedTuple):
    """What earlier tables were encoded with; and their graph, if new nodes join it."""

    encoder: FeatureEncoder
    columns: TableColumns
    classes: tuple[str, ...]
    known: PackedGraph | None

    @classmethod
    def of(cls, like: str | Path | None, known: str | Path | None) -> Self | None:
        """Of a saved model, or else of the known graph; None if there is neither."""
        if like is None and known is None:
            return None
        graph = None if known is None else PackedGraph.open(known, verify=True)
        if like is not None:
            model = TableModel.load(like)
            if model.info.encoder is None:
                raise ValueError(f"{like} was trained on a graph and cannot encode tables.")
            found = cls(model.info.encoder, model.info.columns, model.classes_, graph)
        else:
            assert graph is not None
            found = cls(*graph.encoding(), graph.class_names, graph)
        encoder = found.encoder
        if encoder.made or encoder.others or (graph is not None and encoder.structural):
            raise ValueError(
                f"{like or known} has features made of edges or of other tables, which pack does "
                "not make for new nodes: predict their tables without packing them."
            )
        if graph is not None:
            check_encoder(graph, encoder)
            if graph.class_names != found.classes:
                raise ValueError(f"{known} must have the classes of {like}.")
            if found.columns.id is None:
                raise ValueError(f"{known} must have an id column, which new edges refer to.")
        return found

    def columns_of(self, names: Sequence[str], given: TableColumns) -> TableColumns:
        """The columns of a table with these columns: as before, but for those that were given."""
        columns = {role: getattr(self.columns, role) for role in ENDS}
        for role in ("label", "split", "time"):
            if (name := getattr(self.columns, role)) in names:
                columns[role] = name
        named = {role: name for role, name in vars(given).items() if name not in (None, False)}
        return TableColumns(**columns | named)

    @property
    def source(self) -> list[Any]:
        """Whether they are still the same."""
        graph = None if self.known is None else self.known.content_hash
        return [self.encoder.as_dict(), list(self.classes), graph]


def place_nodes(engine: Engine, known: PackedGraph, cell: str) -> NDArray[np.int64]:
    """Put the known nodes before those of the table `ids`; returns the rows of the latter, (M,).

    A known node that is given again stays where it was. `cell` is the SQL of the name of an `id`.
    """
    import pyarrow as pa

    parts = (ids_in_arrow(known, rows) for rows in row_slices(known.num_nodes))
    schema = pa.schema({"id": ids_in_arrow(known, slice(0, 0)).type})
    batches = (pa.record_batch([part], schema=schema) for part in parts)
    engine.connection.register("known", pa.RecordBatchReader.from_batches(schema, batches))
    engine.run("DROP TABLE IF EXISTS fresh")
    engine.run("ALTER TABLE ids RENAME TO fresh")
    engine.run(f"CREATE TABLE ids AS SELECT {cell} AS name FROM known", "reading known ids")
    unknown = "SELECT fresh.name FROM fresh ANTI JOIN ids USING (name) ORDER BY fresh.rowid"
    engine.run(f"INSERT INTO ids {unknown}")
    query = "SELECT ids.rowid AS place FROM fresh JOIN ids USING (name) ORDER BY fresh.rowid"
    return np.asarray(engine.frame(query)["place"], np.int64)


def join_edges(writer: PackWriter, new: PackWriter, known: PackedGraph) -> None:
    """Merge the rows of new edges into those of the known graph.

    Both are sorted, so that known entries are copied around the new ones. Weights of an edge that
    is given again are added; in memory only those of the same direction are.
    """
    pointers, columns = new.read("indptr"), new.read("indices")
    weights = None if known.edge_weight is None else new.read("edge_weight")
    total, degrees = len(pointers) - 1, np.zeros(len(pointers) - 1, np.int64)
    ends = np.append(known.indptr, np.full(total - known.num_nodes, known.num_edges))

    def entries(ends: NDArray[Any], columns: NDArray[Any], rows: slice) -> tuple[slice, Any]:
        """Where some rows are, and their entries as source * N + target."""
        bounds = np.array(ends[rows.start : rows.stop + 1])
        sources = np.repeat(np.arange(rows.start, rows.stop), np.diff(bounds))
        some = slice(bounds[0], bounds[-1])
        return some, sources * total + columns[some]

    with (
        ArrayFile(writer.folder / "indices.npy", index_dtype(total)) as indices,
        ArrayFile(writer.folder / "edge_weight.npy", np.float32) as sums,
    ):
        for rows in fitting_rows(ends + pointers, ENTRIES, 1, 1):
            old, keys = entries(ends, known.indices, rows)
            some, wanted = entries(pointers, columns, rows)
            places = np.searchsorted(keys, wanted)
            again = np.append(keys, -1)[places] == wanted
            sources, targets = np.divmod(np.insert(keys, places[~again], wanted[~again]), total)
            indices.append(targets)
            degrees[rows] = np.bincount(sources - rows.start, minlength=rows.stop - rows.start)
            if weights is not None and known.edge_weight is not None:
                values, added = np.array(known.edge_weight[old]), weights[some]
                values[places[again]] += added[again]
                sums.append(np.insert(values, places[~again], added[~again]))
    if weights is None:
        sums.path.unlink()
    write_pointers(writer, degrees)


def join_nodes(writer: PackWriter, new: PackWriter, known: PackedGraph) -> list[int]:
    """Write features, labels, masks and times of all nodes; returns the sizes of the classes.

    A known node that is given again has its new features, and its new label if there is one.
    """
    places = new.read("places")
    order = np.argsort(places)
    place = places[order]
    total = len(writer.read("indptr")) - 1
    for name, fill in {"x": 0, "y": -1, "time": np.nan, **dict.fromkeys(MASKS, False)}.items():
        name = f"{name}_mask" if name in MASKS else name
        given = new.read(name) if (new.folder / f"{name}.npy").exists() else None
        before = known.array(name) if name in known.header["arrays"] else None
        some = given if before is None else before
        if some is None:
            continue
        with ArrayFile(writer.folder / f"{name}.npy", some.dtype, *some.shape[1:]) as file:
            for rows in row_slices(total):
                block = np.full((rows.stop - rows.start, *some.shape[1:]), fill, some.dtype)
                if before is not None:
                    part = before[rows]
                    block[: len(part)] = part
                low, high = np.searchsorted(place, (rows.start, rows.stop))
                if given is not None and low < high:
                    values, own = given[order[low:high]], place[low:high] - rows.start
                    kept = name == "y" and values < 0
                    block[own] = np.where(kept, block[own], values)
                file.append(block)
    mask = np.zeros(total, bool)
    mask[places] = True
    writer.write(NEW, mask)
    labels, sizes = writer.read("y"), np.zeros(known.num_classes, np.int64)
    for rows in row_slices(total):
        sizes += np.bincount(labels[rows] + 1, minlength=len(sizes) + 1)[1:]
    return [int(size) for size in sizes]
