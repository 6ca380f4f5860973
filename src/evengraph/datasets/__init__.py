"""Named graphs: list, fetch, verify, load, and a generated toy graph."""

from evengraph.datasets.loading import Listing, available, fetch, load
from evengraph.datasets.registry import DATASETS, Counts, Dataset
from evengraph.datasets.sources import DataNotFound, cache_folder, data_folder
from evengraph.datasets.toy import toy
from evengraph.datasets.verify import DataMismatch

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
