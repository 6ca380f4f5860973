"""Named graphs: list, fetch, verify, load, and a generated toy graph."""

from evengraph.datasets.loading import DATASETS as DATASETS
from evengraph.datasets.loading import Counts as Counts
from evengraph.datasets.loading import DataMismatch as DataMismatch
from evengraph.datasets.loading import DataNotFound as DataNotFound
from evengraph.datasets.loading import Dataset as Dataset
from evengraph.datasets.loading import Listing as Listing
from evengraph.datasets.loading import available as available
from evengraph.datasets.loading import cache_folder as cache_folder
from evengraph.datasets.loading import data_folder as data_folder
from evengraph.datasets.loading import fetch as fetch
from evengraph.datasets.loading import load as load
from evengraph.datasets.toy import toy as toy
