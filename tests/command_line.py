"""Calling the command line, and reading and writing the tables that it takes."""

import csv

import pytest

from evengraph.cli import main

NEW = ["account", "amount", "country"]
COLUMNS = ["--label", "kind", "--id", "account"]
UNIGNN = ["--method", "unignn"]
FAST = [*UNIGNN, "--set", "max_epochs=15", "--set", "clusters_per_class=2", "--splits", "5-5"]


def call(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert isinstance(stop.value.code, int)
    return stop.value.code


def write(path, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rewrite(path, change):
    """Change cells of every row: `change` gets its place and the row, and gives the new ones."""
    rows = [row | change(place, row) for place, row in enumerate(read(path))]
    write(path, list(rows[0]), *(row.values() for row in rows))
