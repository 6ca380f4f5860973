"""Graphs by name, `load`, and graphs of one's own, `open_graph` and `from_frames`."""

from evengraph.data.checking import DataMismatch
from evengraph.data.datasets import DATASETS, Counts, Dataset
from evengraph.data.features import FeatureEncoder
from evengraph.data.frames import from_frames
from evengraph.data.graphs import from_matrix, from_networkx
from evengraph.data.loading import Listing, available, fetch, load
from evengraph.data.own import open_graph
from evengraph.data.owngraph import OwnGraph
from evengraph.data.sources import DataNotFound, cache_folder, data_folder
from evengraph.data.tables import read_table
from evengraph.data.toy import toy

__all__ = [
    "DATASETS",
    "Counts",
    "DataMismatch",
    "DataNotFound",
    "Dataset",
    "FeatureEncoder",
    "Listing",
    "OwnGraph",
    "available",
    "cache_folder",
    "data_folder",
    "fetch",
    "from_frames",
    "from_matrix",
    "from_networkx",
    "load",
    "open_graph",
    "read_table",
    "toy",
]
