"""Graphs by name: `load` gives one, `available` lists them, `fetch` brings one here."""

from evengraph.data.checking import DataMismatch
from evengraph.data.datasets import DATASETS, Counts, Dataset
from evengraph.data.loading import Listing, available, fetch, load
from evengraph.data.sources import DataNotFound, cache_folder, data_folder
from evengraph.data.toy import toy

__all__ = [
    "DATASETS",
    "Counts",
    "DataMismatch",
    "DataNotFound",
    "Dataset",
    "Listing",
    "available",
    "cache_folder",
    "data_folder",
    "fetch",
    "load",
    "toy",
]
