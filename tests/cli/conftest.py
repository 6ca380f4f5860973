"""A small folder of tables, and a model that was trained on it."""

import random

import pytest

from command_line import COLUMNS, FAST, NEW, call, write


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Accounts with string ids and labels, gaps, and one rare class; fraud knows fraud."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    kinds = ["fraud"] * 12 + ["honest"] * 60 + ["shop"] * 48
    names = [f"a-{place:03d}" for place in range(len(kinds))]
    nodes = [["account", "kind", "amount", "country"]]
    for name, kind in zip(names, kinds, strict=True):
        label = kind if draw.random() < 0.7 else ""
        amount = "" if draw.random() < 0.1 else round(draw.gauss(len(kind), 1), 2)
        nodes.append([name, label, amount, draw.choice(["DE", "FR"])])
    edges = [["from", "to"]]
    for place, kind in enumerate(kinds):
        alike = [other for other, one in enumerate(kinds) if one == kind]
        edges += [[names[place], names[draw.choice(alike)]] for _ in range(3)]
        edges.append([names[place], draw.choice(names)])
    (tmp_path / "shop").mkdir()
    write(tmp_path / "shop" / "nodes.csv", *nodes)
    write(tmp_path / "shop" / "edges.csv", *edges)
    return tmp_path


@pytest.fixture
def model(shop):
    assert call("run", "shop", *COLUMNS, *FAST, "--save", "model") == 0
    return shop / "model"


@pytest.fixture
def new(shop):
    """Two new nodes that attach to known ones, and one without an edge."""
    rows = [["new-1", 5, "DE"], ["new-2", "", "XX"], ["new-3", 6, "FR"]]
    write(shop / "n.csv", NEW, *rows)
    write(shop / "e.csv", ["from", "to"], ["new-1", "a-000"], ["new-2", "new-1"])
    return ["n.csv", "e.csv"]


@pytest.fixture
def renamed(shop):
    """A model of two tables with names of their own, which no folder holds."""
    (shop / "shop" / "nodes.csv").rename(shop / "customers.csv")
    (shop / "shop" / "edges.csv").rename(shop / "payments.csv")
    words = ["customers.csv", "--edges", "payments.csv", *COLUMNS, *FAST]
    assert call("run", *words, "--save", "model") == 0
    return ["--known", "customers.csv", "--known-edges", "payments.csv"]
