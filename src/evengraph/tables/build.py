"""TableGraph: a graph built from a nodes table and an edges table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import one_line_errors
from evengraph.ops.links import Link
from evengraph.tables.audit import note_future
from evengraph.tables.cells import CLOCK, Bools, Floats, check_columns, table_name
from evengraph.tables.columns import (
    USUAL_ENDS,
    NoLabelError,
    TableColumns,
    check_no_copy,
    encode_labels,
    feature_columns,
    join_edges,
    label_candidates,
    normalize_table,
    note_mixed_columns,
    read_split,
    read_times,
    resolve_columns,
    takes_columns,
)
from evengraph.tables.edges import (
    EdgeFeatures,
    EdgeRows,
    Links,
    common_types,
    id_index,
    link_edges,
    make_relations,
    read_edge_rows,
    undirected_edges,
)
from evengraph.tables.encoders import Date
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.kinds import UNITS, OtherTables, Step, find_steps
from evengraph.tables.links import LinkFeatures, group_codes, has_lists, link_names
from evengraph.tables.notes import Note, NoteKind, Notes


@dataclass(frozen=True, kw_only=True, eq=False)
class TableGraph:
    """A graph built from a user's tables or file.

    Args:
        graph: Features, edges and labels; where they are known also `class_names`, `train_mask`,
            `val_mask`, `test_mask` and `time`; dates are in seconds since 1970. `edge_weight` and
            `relation_index` with `relation_names`, if the edges have weights and relations.
        ids: Ids of the nodes as given.
        encoder: Makes the features, also for new rows.
        columns: The column of each role; None where there is none.
        notes: What was guessed, dropped, merged or left out.
        label_candidates: Columns that may hold the classes, if there is no label column.

    Shapes:
        graph.x: float32, (N, F); graph.edge_index: int64, (2, E), both directions of every edge
        graph.y: int64, (N,), -1 for unlabelled; graph.time: float64, (N,), NaN for unknown
        ids: (N,)
    """

    graph: Data
    ids: NDArray[Any]
    encoder: FeatureEncoder
    columns: TableColumns
    notes: tuple[Note, ...] = ()
    label_candidates: tuple[str, ...] = ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes; empty without labels."""
        return tuple(self.graph.class_names) if "class_names" in self.graph else ()


@takes_columns
def from_frames(
    nodes: Any,
    edges: Any = None,
    *,
    tables: Mapping[str, Any] | None = None,
    encoder: FeatureEncoder | None = None,
    **columns: Any,
) -> TableGraph:
    """Build a graph from a table of nodes and a table of edges.

    Edges are treated as undirected; self-loops are dropped and repeated edges merged. Rows of
    weight 0 are dropped; empty, negative and infinite weights raise an error. Columns of `edges`
    beside the ends become features of nodes: count, mean, sum, recency, count per value. Edges of
    different types, or directions if `directed`, are relations, whose neighbours some methods
    average apart. The notes of the result report all of this. An id may be spelt 3, 3.0 or "3".
    Empty labels are unlabelled nodes; classes are sorted.

    Args:
        nodes: A pandas DataFrame with one row per node.
        edges: A pandas DataFrame with one row per edge; with `tables` also a dict of them by type.
        tables: DataFrames of other kinds of nodes by name, such as devices, that edges or a column
            of ids lead to. Their columns tell of the nodes; only `nodes` are predicted.
        encoder: A fitted encoder, to encode new rows as before; then `features` is not used, and
            there are labels only if `label` is named.
        columns: The fields of `TableColumns`: label, id, source, target and others.
    """
    if tables is not None:
        named = edges if isinstance(edges, Mapping) else {} if edges is None else {"edges": edges}
        edges = OtherTables.of(tables, named, None)
    return build_graph(nodes, edges, TableColumns(**columns), encoder)


@one_line_errors()
def build_graph(
    nodes: Any, edges: Any, columns: TableColumns, encoder: FeatureEncoder | None = None
) -> TableGraph:
    """Build a graph like `from_frames`, with its column arguments as one object."""
    notes, is_new, given = Notes(), encoder is None, (nodes, edges)
    columns = replace(columns, link=list(link_names(columns.link)) or None)
    from_others = tuple[str, ...]()
    if isinstance(edges, OtherTables) and isinstance(nodes, pd.DataFrame):
        nodes, edges, columns, from_others = _attach(nodes, edges, columns, notes)
        lacking = [] if encoder is None else [n for n in encoder.others if n not in nodes.columns]
        nodes = nodes.assign(**dict.fromkeys(lacking))  # told by tables that are not given
    if edges is None and columns.link:  # the ends of none
        edges = pd.DataFrame({"source": [], "target": []}, dtype=object)
    for name, table in (("nodes", nodes), ("edges", edges)):
        if not isinstance(table, pd.DataFrame):
            raise ValueError(f"{name} must be a pandas DataFrame, got {type(table).__name__}.")
    nodes, edges = normalize_table(nodes, "nodes"), normalize_table(edges, "edges")
    table_of_nodes = table_name(nodes, "nodes")
    if not len(nodes):
        raise ValueError(f"{table_of_nodes} has no rows; at least one node is needed.")
    for text in nodes.attrs.get("notes", ()):
        notes.add(NoteKind.FEATURES, text)
    columns = resolve_columns(nodes, edges, columns, notes, guess=is_new)
    ids = pd.Series(range(len(nodes)), name="row") if columns.id is None else nodes[columns.id]
    if columns.label is not None:
        check_no_copy(nodes[columns.label], ids, table_of_nodes)
    rows = read_edge_rows(edges, id_index(ids, table_of_nodes), columns, notes)
    if columns.type is not None and columns.relations is None:
        columns = replace(columns, relations=common_types(rows.edges[columns.type], notes))
    codes, times = [group_codes(nodes, link, notes) for link in columns.link or ()], None
    if columns.time is not None:
        times = read_times(nodes[columns.time], table_of_nodes, columns.date_order)
    links = undirected_edges(rows.source, rows.target, len(nodes), notes, rows.weight)
    if codes and times is None and not len(edges):
        links = link_edges(codes)
    links = links._replace(relations=make_relations(rows, len(nodes), columns))
    ends = {str(columns.source).lower(), str(columns.target).lower()}
    if not (columns.directed or ends <= USUAL_ENDS or "(source)" in ends):
        text = f"Edges are treated as undirected; set directed to keep {columns.source} and "
        for index, note in enumerate(notes):
            if note.kind == NoteKind.UNDIRECTED:
                notes[index] = Note(note.kind, f"{text}{columns.target} apart.")
    if columns.directed:
        notes[:] = [note for note in notes if note.kind != NoteKind.UNDIRECTED]
    if links.relations is not None:
        notes.add(NoteKind.RELATIONS, f"Relations: {', '.join(links.relations.names)}.")
    full, candidates = nodes, tuple[str, ...]()
    if encoder is None:
        if columns.label is None:
            candidates = label_candidates(nodes, columns.of_nodes.values())
        features, order = feature_columns(nodes, columns, notes), columns.date_order
        lists = [link for link in columns.link or () if link in nodes and has_lists(nodes[link])]
        features = [name for name in features if name not in lists]
        has_edges = columns.features is None and len(rows.edges) > 0
        from_edges = EdgeFeatures.fit(rows.edges, columns, notes) if has_edges else None
        from_links = LinkFeatures.fit(nodes, features, columns) if codes else None
        if times is not None:
            if len(rows.edges) and columns.edge_time is None:
                text = "Edges have no times: training in a split by time sees later ones; name the"
                notes.add(NoteKind.FUTURE, f"{text} column of their times with edge_time.")
            own = [name for name in features if name not in from_others]
            by_link = dict(zip(columns.link or (), codes, strict=True))
            dated = _edge_times(rows.edges, columns)
            timed = None if dated is None else (rows.source, rows.target, dated)
            note_future(nodes, own, times, by_link, timed, notes)
        blank = FeatureEncoder(edges=from_edges, links=from_links)
        full = _with_made_columns(nodes, rows, codes, times, blank)
        names = [*features, *blank.made]
        encoder = FeatureEncoder.fit(full, names, edge_index=links.edge_index, date_order=order)
        encoder = replace(encoder, edges=from_edges, links=from_links, others=from_others)
        encoder = replace(encoder, units=tuple(nodes.attrs.get(UNITS, {}).items()))
        notes += encoder.notes
        dates = [e.column for e in encoder.columns if isinstance(e, Date) and e.form != CLOCK]
        if codes and times is None and dates:
            text = f"Through links, rows see later ones; set time to {dates[0]} to see earlier ones"
            notes.add(NoteKind.FUTURE, f"{text} alone and to test on the newest rows.")
        note_mixed_columns(nodes, features, encoder, notes)
    else:
        check_columns(nodes, encoder.input_columns, "nodes")  # before others are added
        full = _with_made_columns(nodes, rows, codes, times, encoder)
    if columns.label is None:
        notes.add(NoteKind.NO_LABEL, str(NoLabelError(candidates)))
    result = assemble(full, links, columns, encoder, notes, ids=ids.to_numpy())
    if codes and times is None:
        pairs = [
            np.stack([one.nodes * 0 + i, one.nodes, one.values]) for i, one in enumerate(codes)
        ]
        result.graph.link_index = torch.from_numpy(np.concatenate(pairs, axis=1))
        result.graph.num_links = len(codes)
        result.graph.links_only = not len(edges)
    if is_new and columns.time is not None:
        times = _edge_times(given[1] if from_others else edges, columns)
        if times is not None:
            unfitted = replace(columns, relations=None)  # which were found in all edges
            tables = given if from_others else (nodes, edges)
            result.graph.timed_tables = TimedTables(*tables, unfitted, torch.from_numpy(times))
    return replace(result, label_candidates=candidates)


def _edge_times(edges: Any, columns: TableColumns) -> Floats | None:
    """The time of every edge; None if they have none."""
    if isinstance(edges, OtherTables):
        times = edges.times(columns.edge_time, columns.date_order)
        return np.concatenate([*times.values()]) if times else None
    if columns.edge_time is None:
        return None
    return read_times(edges[columns.edge_time], table_name(edges, "edges"), columns.date_order)


def _attach(
    nodes: Any, others: OtherTables, columns: TableColumns, notes: Notes
) -> tuple[Any, Any, TableColumns, tuple[str, ...]]:
    """The nodes table with what other kinds tell of it, edges between nodes, columns and names."""
    nodes = normalize_table(nodes, "nodes")
    if columns.kinds is None:
        check_columns(nodes, columns.of_nodes.values(), "nodes")
        steps, key = find_steps(nodes, others, columns.id, [*columns.of_nodes.values()], notes)
        columns = replace(columns, id=key, kinds=[list(step) for step in steps])
    steps = [Step(*item) for item in columns.kinds or ()]
    nodes, made = others.attach(nodes, steps, columns.date_order)
    links = [*(columns.link or ()), *(step.name for step in steps if step.is_link)]
    columns = replace(columns, link=list(dict.fromkeys(links)) or None)
    names = [step.name for step in steps if step.near == step.far == ""]
    own = {name: others.edges[name] for name in names if name in others.edges}
    if len(own) < 2:
        return nodes, next(iter(own.values()), None), columns, made
    return nodes, join_edges(own, (columns.source, columns.target)), columns, made


@dataclass(frozen=True, eq=False)
class TimedTables:
    """The tables of a graph whose nodes and edges have times, for a split by time."""

    nodes: Any
    edges: Any
    columns: TableColumns
    edge_times: Tensor  # one for each row of the edges table, NaN for unknown

    def edges_at(self, time: float) -> Any:
        """The edges as they were then."""
        if isinstance(self.edges, OtherTables):
            return self.edges.until(time, self.columns.edge_time, self.columns.date_order)
        known = (self.edge_times <= time).numpy()  # not so for NaN
        return self.edges[known].reset_index(drop=True)


_BUILT: WeakKeyDictionary[TimedTables, tuple[float, tuple[Data, Data]]] = WeakKeyDictionary()


def graphs_at(tables: TimedTables, time: float) -> tuple[Data, Data]:
    """The graph as it was at a time, and that of today with the features fitted then.

    Later edges, and those without a time, have no influence on training, not even through a mean.
    The second graph holds `encoder` and `columns`.
    """
    latest, graphs = _BUILT.get(tables, (None, None))
    if graphs is None or latest != time:
        past = build_graph(tables.nodes, tables.edges_at(time), tables.columns)
        today = build_graph(tables.nodes, tables.edges, past.columns, past.encoder).graph
        today.encoder, today.columns = past.encoder, past.columns
        past.graph.pop("timed_tables", None)
        graphs = past.graph, today
        _BUILT[tables] = time, graphs
    return graphs


def _with_made_columns(
    nodes: Any,
    rows: EdgeRows,
    links: Sequence[Link],
    times: Floats | None,
    encoder: FeatureEncoder,
) -> Any:
    made = dict[str, Floats]()
    for name in encoder.made:
        if name in nodes.columns:
            raise ValueError(
                f"{table_name(nodes, 'nodes')} has a column {name!r}, a name of features from the "
                "edges or links; rename it."
            )
    if encoder.edges is not None:
        made |= encoder.edges.compute(rows.edges, rows.source, rows.target, len(nodes))
    if encoder.links is not None:
        made |= encoder.links.compute(nodes, links, times)
    if not made:
        return nodes
    table = pd.concat([nodes, pd.DataFrame(made, index=nodes.index)], axis=1)
    table.attrs = nodes.attrs
    return table


def assemble(
    nodes: Any,
    links: Links,
    columns: TableColumns,
    encoder: FeatureEncoder,
    notes: Notes,
    *,
    ids: NDArray[Any],
    masks: Mapping[str, Bools] | None = None,
) -> TableGraph:
    """Encode the features of a nodes table and read its labels, split and times."""
    table, num_nodes, edge_index = table_name(nodes, "nodes"), len(nodes), links.edge_index
    x = encoder.transform(nodes, edge_index=edge_index)
    graph = Data(x=x, edge_index=edge_index, y=torch.full((num_nodes,), -1))
    if encoder.made and encoder.of_rows.any():
        graph.of_rows = torch.from_numpy(encoder.of_rows)
    if links.edge_weight is not None:
        graph.edge_weight = links.edge_weight
    if links.relations is not None:
        graph.relation_index, graph.relation_names = links.relations.arcs, links.relations.names
        graph.num_relations = len(links.relations.names)
        if links.relations.weight is not None:
            graph.relation_weight = links.relations.weight
    if columns.label is not None:
        unlabelled = columns.unlabelled or ()
        labels, class_names = encode_labels(nodes[columns.label], table, notes, unlabelled)
        graph.y, graph.class_names = torch.tensor(labels), list(class_names)
    if columns.split is not None:
        masks = read_split(nodes[columns.split], table)
    for name, mask in (masks or {}).items():
        if not mask.any():
            continue
        graph[f"{name}_mask"] = torch.tensor(mask)
        left_out = int((graph[f"{name}_mask"] & (graph.y < 0)).sum())
        if left_out and columns.label is not None:
            text = f"Nodes marked {name} but left out, because they have no label: {left_out}."
            notes.add(NoteKind.SPLIT, text)
    if columns.time is not None:
        graph.time = torch.tensor(read_times(nodes[columns.time], table, columns.date_order))
        if unknown := int(torch.isnan(graph.time).sum()):
            notes.add(NoteKind.NO_TIME, f"Nodes without a time: {unknown} of {num_nodes}.")
    if (isolated := num_nodes - len(torch.unique(edge_index[0]))) and not columns.link:
        notes.add(NoteKind.ISOLATED_NODES, f"Nodes without edges: {isolated} of {num_nodes}.")
    columns = replace(columns, features=list(encoder.input_columns))
    return TableGraph(graph=graph, ids=ids, encoder=encoder, columns=columns, notes=tuple(notes))
