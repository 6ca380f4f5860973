"""Users' tables and graph files: read them and build a graph with features and labels."""

from evengraph.tables.arrays import from_matrix
from evengraph.tables.build import build_graph, from_frames
from evengraph.tables.columns import TableColumns
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.graph_files import from_networkx
from evengraph.tables.ids import UnknownNodeError
from evengraph.tables.notes import Note, NoteKind
from evengraph.tables.open import open_graph
from evengraph.tables.read import read_table
from evengraph.tables.roles import NoLabelError
from evengraph.tables.table_graph import TableGraph

__all__ = [
    "FeatureEncoder",
    "NoLabelError",
    "Note",
    "NoteKind",
    "TableColumns",
    "TableGraph",
    "UnknownNodeError",
    "build_graph",
    "from_frames",
    "from_matrix",
    "from_networkx",
    "open_graph",
    "read_table",
]
