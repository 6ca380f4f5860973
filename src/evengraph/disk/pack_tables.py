"""TablePacker: pack tables of any size, in stages that survive a kill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evengraph.disk import PackedGraph, PackWriter
from evengraph.disk.engine import Engine, Progress, TableFiles, quote_name
from evengraph.disk.pack_edges import as_name, canonical_ends, link, number_nodes, write_edges
from evengraph.disk.pack_nodes import (
    NodeTable,
    fit_encoder,
    fitting_stride,
    write_features,
    write_ids,
    write_roles,
    write_structural,
)
from evengraph.tables import NoteKind, TableColumns
from evengraph.tables.cells import check_columns, location
from evengraph.tables.columns import (
    CHECKED_EDGES,
    check_no_copy,
    edge_ends,
    is_usual,
    resolve_columns,
)
from evengraph.tables.notes import Notes

BASE = 2**29
"""Memory of the process before it reads anything: Python, torch and Arrow."""

ENGINE_SHARE = 0.75
"""Share of the other memory that DuckDB may take; the rest is for batches of rows."""


@dataclass(kw_only=True)
class TablePacker:
    """Packs a nodes table and an edges table.

    Args:
        nodes: Files of the nodes table.
        edges: Files of the edges table.
        columns: The columns that were named.
        drop: Columns of either table to leave out.
        dtype: Of the features.
        memory: Bytes that the process may take.
        progress: Is told how far each stage is.
    """

    nodes: TableFiles
    edges: TableFiles
    columns: TableColumns
    drop: Sequence[str]
    dtype: str
    memory: int
    progress: Progress

    def pack(self, path: Path) -> PackedGraph:
        """Run all stages that were not finished before a kill."""
        source = {
            "nodes": self.nodes.signature,
            "edges": self.edges.signature,
            "columns": asdict(self.columns),
            "drop": list(self.drop),
            "dtype": self.dtype,
        }
        with PackWriter(path, source) as self.writer:
            database = self.writer.folder / "work.duckdb"
            self.engine = Engine(database, int(ENGINE_SHARE * self._room), self.progress)
            try:
                for stage in (self._convert, self._plan, self._ids, self._edges):
                    self._run(stage)
            finally:
                self.engine.close()
            self._run(self._roles)
            self._run(self._features)
            self.progress("writing checksums", None)
            facts = self.writer.facts
            return self.writer.publish(
                class_names=facts["roles"]["class_names"],
                class_counts=facts["roles"]["class_counts"],
                encoder=facts["features"]["encoder"],
                columns=facts["plan"]["columns"],
                notes=[note for stage in facts.values() for note in stage.get("notes", ())],
            )

    @property
    def _room(self) -> int:
        """Bytes for data."""
        return max(self.memory - BASE, self.memory // 4)

    def _run(self, stage: Any) -> None:
        """Run a stage unless it is finished, and write its facts into the journal."""
        name = stage.__name__.removeprefix("_")
        if not self.writer.is_done(name):
            self.writer.finish(name, **stage())
        if name == "convert" and not self.nodes.is_parquet:
            self.table = TableFiles((self.writer.folder / "nodes.parquet",))
        elif name == "convert":
            self.table = self.nodes
        if name == "plan":
            self.columns = TableColumns(**self.writer.facts["plan"]["columns"])

    def _convert(self) -> dict[str, Any]:
        """Turn CSV into Parquet, whose columns can be read one by one."""
        if not self.nodes.is_parquet:
            self.nodes.to_parquet(self.engine, self.writer.folder / "nodes.parquet")
        return {}

    def _plan(self) -> dict[str, Any]:
        """Find the columns of all roles."""
        nodes, notes = self._node_table(), Notes()
        if not len(nodes):
            raise ValueError(f"{self.nodes.name} has no rows; at least one node is needed.")
        edge_columns = [name for name in self.edges.columns if name not in self.drop]
        known = [*self.edges.columns, *self.table.columns]
        for name in self.drop:
            if name not in known:
                check_columns(nodes, [name], "nodes")
        head = self.engine.frame(f"{self.edges.query(edge_columns)} LIMIT {CHECKED_EDGES}")
        head.attrs["file"] = self.edges.name
        ends = edge_ends(head, self.columns, Notes())
        columns = resolve_columns(
            nodes, head, self.columns, notes, guess=True, fits=lambda c: self._fits(c, ends)
        )
        if columns.label is None:
            notes.add(NoteKind.NO_LABEL, "No label column: every node is unlabelled.")
        used = {columns.source, columns.target, columns.weight}
        left_out = [name for name in edge_columns if name not in used]
        if left_out:
            names = ", ".join(map(repr, left_out))
            notes.add(NoteKind.FEATURES, f"Left out columns of {self.edges.name}: {names}.")
        columns = replace(columns, type=None, edge_time=None, directed=False)
        return {"columns": asdict(columns), "notes": list(notes), "num_nodes": nodes.num_rows}

    def _fits(self, column: str, ends: tuple[str, str]) -> bool:
        """Whether a column holds unique ids, among them both ends of the first edges."""
        (type,) = self.table.types(self.engine, [column])
        if type == "BOOLEAN" or type.startswith(("DATE", "TIME")) or type.endswith("[]"):
            return False
        types = self.edges.types(self.engine, ends)
        rows = f"{self.edges.query(ends)} LIMIT {CHECKED_EDGES}"
        named = " UNION ALL ".join(
            f"SELECT {as_name(quote_name(end), kind)} AS name FROM ({rows})"
            for end, kind in zip(ends, types, strict=True)
        )
        cells = as_name(quote_name(column), type)
        ids = f"SELECT {cells} AS name FROM ({self.table.query([column])})"
        query = f"SELECT count(*) FROM ({named}) ANTI JOIN ({ids}) USING (name)"
        (unknown,) = self.engine.values(query)
        if unknown or is_usual("id", column):  # repeated ids of a usual column are an error
            return not unknown
        return bool(self.engine.values(f"SELECT count(*) = count(DISTINCT name) FROM ({ids})")[0])

    def _ids(self) -> dict[str, Any]:
        """Number the nodes, look up both ends of every edge, and write the ids."""
        ends = canonical_ends(self.engine, self.table, self.edges, self.columns)
        id, size = self.columns.id, self.writer.facts["plan"]["num_nodes"]
        if id is not None:
            number_nodes(self.engine, self.table, ends, id, location(self.nodes.name, id))
        write_ids(self.engine, self.writer, self.table, id)
        return {"notes": link(self.engine, self.edges, ends, self.columns, size)}

    def _edges(self) -> dict[str, Any]:
        """Sort the edges and write them."""
        size, weighted = self.writer.facts["plan"]["num_nodes"], self.columns.weight is not None
        return {"notes": write_edges(self.engine, self.writer, size, weighted)}

    def _roles(self) -> dict[str, Any]:
        """Write classes, masks and times."""
        self.progress("reading classes", None)
        nodes, label, id = self._node_table(), self.columns.label, self.columns.id
        if label is not None and id is not None:
            head = next(nodes.blocks([label, id], CHECKED_EDGES))
            check_no_copy(head[label], head[id], self.nodes.name)
        return write_roles(self.writer, nodes, self.columns)

    def _features(self) -> dict[str, Any]:
        """Fit the encoders and write the features."""
        nodes = self._node_table()
        self.progress("fitting encoders", None)
        roles = self.columns.of_nodes.values()
        free = [column for column in nodes.columns if column not in roles]
        stride = fitting_stride(nodes, free, self._room)
        encoder, notes = fit_encoder(self._node_table(stride), self.columns)
        if encoder.structural:
            encoder = write_structural(self.writer, nodes, self.dtype, self._room)
        else:
            write_features(self.writer, nodes, encoder, self.dtype, self._room, self.progress)
        return {"encoder": encoder.as_dict(), "notes": notes}

    def _node_table(self, stride: int = 1) -> NodeTable:
        return NodeTable(self.table, self.nodes.name, stride=stride, drop=self.drop)
