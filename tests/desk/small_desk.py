"""A folder of tables with few labels, desks over it, and a real server with a small client."""

import csv
import random
import re
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread
from time import sleep
from urllib.parse import urlencode

from evengraph.desk.desk import Desk
from evengraph.desk.label_file import LabelFile
from evengraph.desk.nodes import open_nodes
from evengraph.desk.server import Access, free_socket, make_server
from evengraph.desk.training import DeskOptions

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


@contextmanager
def serving(desk):
    """Serve a desk; gives its access."""
    listener = free_socket(0)
    access = Access(listener.getsockname()[1], "ana")
    server = make_server(desk, access)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        sleep(0.01)
    try:
        yield access
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
        desk.close()


class Client:
    """Sends requests with a cookie and the token of forms, unless told otherwise."""

    def __init__(self, access):
        self.access, self.cookie, self.form_token = access, "", ""

    def enter(self):
        status, headers, _ = self.get(f"/?token={self.access.token}")
        self.cookie = headers["set-cookie"].partition(";")[0]
        assert (status, headers["location"]) == (303, "/")
        self.form_token = re.search(r'name="form_token" value="([^"]+)"', self.get("/")[2])[1]
        return self

    def get(self, path, **headers):
        return self._send("GET", path, None, headers)

    def post(self, path, fields=None, *, token=None, **headers):
        fields = {"form_token": self.form_token if token is None else token, **(fields or {})}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._send("POST", path, urlencode(fields), {**kind, **headers})

    def _send(self, verb, path, body, headers):
        host, _, port = self.access.hosts[0].partition(":")
        connection = HTTPConnection(host, int(port), timeout=30)
        cookie = {"Cookie": self.cookie} if self.cookie else {}
        connection.request(verb, path, body, {**cookie, **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text
