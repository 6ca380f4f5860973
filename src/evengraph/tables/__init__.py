"""Users' tables and graph files: read them and build a graph with features and labels."""

from evengraph.tables.build import TableGraph as TableGraph
from evengraph.tables.build import build_graph as build_graph
from evengraph.tables.build import from_frames as from_frames
from evengraph.tables.columns import NoLabelError as NoLabelError
from evengraph.tables.columns import TableColumns as TableColumns
from evengraph.tables.edges import UnknownNodeError as UnknownNodeError
from evengraph.tables.feature_encoder import FeatureEncoder as FeatureEncoder
from evengraph.tables.graph_files import from_matrix as from_matrix
from evengraph.tables.graph_files import from_networkx as from_networkx
from evengraph.tables.notes import Note as Note
from evengraph.tables.notes import NoteKind as NoteKind
from evengraph.tables.open import open_graph as open_graph
from evengraph.tables.read import read_table as read_table
