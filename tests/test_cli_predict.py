"""Kept models on the command line: new nodes beside known ones, flags, calibration."""

import pytest

from test_cli import call
from test_cli_own import model, shop, write

__all__ = ["model", "shop"]  # fixtures

NEW = ["account", "amount", "country"]


@pytest.mark.parametrize("known", [[], ["--known", "shop"]])
def test_a_table_of_no_new_nodes_is_refused(known, model, shop, capsys):
    write(shop / "n.csv", NEW)
    write(shop / "e.csv", ["from", "to"])
    assert call("predict", "model", "n.csv", "e.csv", *known) == 2
    assert "n.csv has no rows" in capsys.readouterr().err
