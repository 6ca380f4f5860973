"""A desk behind a real server in a thread, and a small client."""

import re
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread
from time import sleep
from urllib.parse import urlencode

from evengraph.desk.access import Access
from evengraph.desk.server import free_socket, make_server


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
