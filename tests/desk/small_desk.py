"""A folder of tables with few labels, and desks over it."""

import csv
import random

from evengraph.desk.desk import Desk, DeskOptions
from evengraph.desk.label_file import LabelFile
from evengraph.desk.nodes import open_nodes

KINDS = ("fraud", "honest")
SIZE = 60


def truth(id):
    """The class of a node, which its table mostly hides."""
    return KINDS[int(id[1:]) % 5 > 0]


def write_shop(folder, *, labelled=6, size=SIZE, column="kind"):
    """Accounts whose amount tells their class; like knows like."""
    draw = random.Random(0)
    ids = [f"a{place:03d}" for place in range(size)]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", column, "amount", "country"])
        for place, id in enumerate(ids):
            amount = round(draw.gauss(9 if truth(id) == "fraud" else 3, 1), 2)
            country = draw.choice(["DE", "FR", ""])
            rows.writerow([id, truth(id) if place < labelled else "", amount, country])
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target"])
        for id in ids[:-1]:  # the last one stands alone
            alike = [other for other in ids[:-1] if truth(other) == truth(id) and other != id]
            rows.writerows([id, other] for other in draw.sample(alike, 2))
    return folder


def make_desk(folder, *, start=True, classes=(), labelled=6, **options):
    """A desk over a folder, which is written first."""
    shop = write_shop(folder / "shop", labelled=labelled)
    nodes = open_nodes(str(shop), {"label": "kind"}, classes=classes)
    chosen = {"method": "logistic", "retrain_every": 0, "folder": folder / "shop.model", **options}
    desk = Desk(nodes, LabelFile(folder / "labels.sqlite", "kind"), DeskOptions(**chosen), classes)
    if start:
        desk.start()
    return desk
