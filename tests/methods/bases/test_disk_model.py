"""Which methods learn from tables on disk."""

from evengraph.methods import METHODS
from evengraph.methods.bases.disk_model import DiskModel
from evengraph.methods.bases.row_model import RowModel


def test_they_are_row_models():
    names = {name for name, kind in METHODS.items() if issubclass(kind, DiskModel)}
    rows = {name for name, kind in METHODS.items() if issubclass(kind, RowModel)}
    assert names < rows
    assert rows - names == {"doublebalancing"}  # its rows have neighbours in every layer
    assert {"unison", "iceberg", "mlp", "logistic", "boosting"} <= names
