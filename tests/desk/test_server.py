"""Who may use the desk, and what its pages and forms do."""

import csv
import logging
import re
from socket import create_connection

import pytest
from small_desk import Client, make_desk, serving

from evengraph.desk import server
from evengraph.desk.label_file import Event
from evengraph.desk.pages import class_answer, more_labels
from evengraph.desk.server import MAX_FORM, MAX_SESSIONS, Access, free_socket

pytest.importorskip("starlette")


NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return make_desk(tmp_path_factory.mktemp("served"), classes=(NASTY,))


@pytest.fixture(scope="module")
def access(desk):
    with serving(desk) as found:
        yield found


@pytest.fixture
def client(access):
    return Client(access).enter()


def heading(page):
    return page.partition("<h1>")[2].partition("</h1>")[0]


def test_without_the_token_nothing_is_shown_or_written(access, desk):
    stranger = Client(access)
    before = desk.file.events()
    for path in ("/", "/node/7", "/side", "/export.csv", "/desk.js", "/?token=wrong"):
        status, headers, text = stranger.get(path)
        assert status == 403, path
        assert "set-cookie" not in headers
        assert "a0" not in text
    assert stranger.post("/answer", {"row": "7", "answer": class_answer("fraud")})[0] == 403
    stranger.cookie = f"{access.cookie}=guess"
    assert stranger.get("/")[0] == 403
    assert desk.file.events() == before


def test_the_cookie_is_out_of_reach_of_others_and_kept(client, access):
    _, headers, _ = Client(access).get(f"/?token={access.token}")
    assert "HttpOnly" in headers["set-cookie"]
    assert "samesite=strict" in headers["set-cookie"].lower()
    assert headers["location"] == "/"  # the token leaves the address
    client.post("/who", {"who": "cleo"})
    assert "set-cookie" not in client.get(f"/?token={access.token}")[1]
    assert 'value="cleo"' in client.get("/")[2]


def test_only_names_of_this_machine_are_known(client, access):
    port = access.hosts[0].partition(":")[2]
    assert client.get("/done", Host=f"LOCALHOST:{port}")[0] == 200
    for host in (f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""):
        assert client.get("/done", Host=host)[0] == 421
        assert client.post("/train", Host=host)[0] == 421


def test_forms_of_others_are_refused(client, desk):
    before = desk.file.events()
    answer = {"row": "7", "answer": class_answer("fraud")}
    assert client.post("/answer", answer, token="")[0] == 403
    assert client.post("/answer", answer, token="wrong")[0] == 403
    assert client.post("/answer", answer, token=Client(client.access).enter().form_token)[0] == 403
    for origin in ("http://evil.example", "null"):
        assert client.post("/answer", answer, Origin=origin)[0] == 403
    assert client.get("/answer")[0] == 405
    assert client.post("/answer", {**answer, "note": "x" * MAX_FORM})[0] == 403  # too large
    assert desk.file.events() == before


def test_every_page_is_strict(client):
    for path in ("/", "/queue", "/done", "/node/7", "/node/7/why", "/export.csv"):
        status, headers, text = client.get(path)
        assert status == 200, path
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"
        assert " style=" not in text
        assert NASTY not in text
        assert "http://" not in text.replace("http://www.w3.org", "")


def test_a_node_shows_row_reason_neighbours_and_buttons(client, desk):
    _, _, page = client.get("/")
    row = desk.nodes.rows[heading(page)]
    guess = f"{desk.thought(row)['fraud']:.0%}"
    for words in (desk.queue[row], "amount", "neighbours.", "&lt;script&gt;", guess):
        assert words in page
    assert page.count('name="answer"') == len(desk.classes) + 1


def test_an_answer_leads_to_the_next_node_and_an_undo_back(client, desk):
    _, _, page = client.get("/")
    row = desk.nodes.rows[heading(page)]
    fields = {"row": str(row), "answer": class_answer("honest"), "note": " two words "}
    status, headers, _ = client.post("/answer", fields)
    assert status == 303
    assert headers["location"] != f"/node/{row}"
    event = desk.answers.of(desk.nodes.ids[row])
    assert (event.label, event.note, event.who) == ("honest", "two words", "ana")
    _, _, page = client.get(headers["location"])
    assert f"{event.node}: honest (two words)" in page
    assert "two words" in client.get("/done")[2]
    _, headers, _ = client.post("/undo", {"number": str(event.number)})
    assert headers["location"] == f"/node/{row}"
    assert desk.answers.of(event.node) is None
    fields = {"row": str(row), "answer": "unknown"}
    status, _, text = client.post("/answer", fields, Accept="application/json")
    assert status == 200
    assert text.startswith('{"next":"/node/')


def test_notes_names_and_classes(client, desk):
    for name in (" bea  & co\n", " "):  # an empty name changes nothing
        client.post("/who", {"who": name})
    assert "bea &amp; co" in client.get("/")[2]
    _, headers, _ = client.post("/note", {"row": "12", "note": NASTY})
    assert headers["location"] == "/node/12"
    page = client.get("/node/12")[2]
    assert "by bea &amp; co" in page
    assert NASTY not in page
    client.post("/who", {"who": "x" * 1000})
    assert f'value="{"x" * 60}"' in client.get("/")[2]
    client.post("/class", {"class": " odd  one "})
    assert desk.classes[-1] == "odd one"


def test_an_answer_names_its_class_whatever_the_name(client, desk):
    for row, name in ((21, NASTY), (22, "two\nlines"), (23, "\u200fright\u200e"), (24, " a ")):
        desk.add_class(name, who="", session="")
        page = client.get(f"/node/{row}")[2]
        place = list(desk.classes).index(name)
        value = re.findall(r'<button[^>]* name="answer"[^>]* value="([^"]+)"', page)[place]
        client.post("/answer", {"row": str(row), "answer": value})
        assert desk.answers.of(desk.nodes.ids[row]).label == name


def test_a_full_disk_and_a_lost_file_are_told(client, desk, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device", "labels.sqlite")

    for name in ("look", "events", "add"):
        with monkeypatch.context() as patch:
            patch.setattr(desk.file, name, full)
            status = client.get("/node/7")[0], client.post("/note", {"row": "7", "note": "x"})[0]
        assert status == {"look": (503, 303), "events": (503, 400), "add": (200, 400)}[name]
    path = desk.file.path.rename(desk.file.path.with_suffix(".moved"))
    try:
        status, _, text = client.get("/")
        assert (status, "labels.sqlite" in text) == (503, True)
    finally:
        path.rename(desk.file.path)


def test_slow_and_cut_connections_take_nothing_from_others(client, access, monkeypatch):
    logged = []
    monkeypatch.setattr(
        logging.getLogger("uvicorn.error"), "error", lambda *of, **_: logged.append(of)
    )
    monkeypatch.setattr(server, "PATIENCE", 0.3)
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 20)
    host, _, port = access.hosts[0].partition(":")
    head = f"POST /answer HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {client.cookie}\r\n"
    form = f"{head}Content-Length: 99\r\n\r\nrow="
    cut = create_connection((host, int(port)))
    cut.sendall(form.encode())
    cut.close()
    slow = [create_connection((host, int(port))) for _ in range(3)]
    for connection, sent in zip(slow, ("", head, form), strict=True):
        connection.sendall(sent.encode())
        connection.settimeout(10)
    answers = [connection.recv(99) for connection in slow]
    assert [answer[:12] for answer in answers] == [b"", b"", b"HTTP/1.1 400"]
    many = [create_connection((host, int(port))) for _ in range(40)]
    assert sum(_is_cut(connection) for connection in many[20:]) >= 19
    for connection in (*slow, *many):
        connection.close()
    assert client.get("/done")[0] == 200
    assert not logged


def _is_cut(connection):
    connection.settimeout(0.1)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_errors_are_strict_too_and_strangers_cause_none(client, access, desk, monkeypatch):
    stranger = Client(access)
    many = {f"field{place}": "" for place in range(30)}
    assert stranger.post("/who", many)[0] == 403
    assert stranger.post("/who", many, Host="evil.example")[0] == 421
    monkeypatch.setattr(desk, "next_row", None)
    for path, expected in (("/", 500), ("/nothing", 404), ("/answer", 405), ("/node/x", 404)):
        status, headers, _ = client.get(path)
        assert (status, headers["cache-control"]) == (expected, "no-store")
        assert "default-src 'none'" in headers["content-security-policy"]


def test_the_table_can_be_fetched(client, desk):
    desk.file.add(Event(node="a020", label="fraud", who="bea"))  # by a colleague's desk
    _, headers, text = client.get("/export.csv")
    assert "attachment" in headers["content-disposition"]
    rows = {row["id"]: row["kind"] for row in csv.DictReader(text.splitlines())}
    assert rows["a020"] == "fraud"
    assert len(rows) == 60


def test_strange_requests_are_no_errors(client, desk):
    before = len(desk.file.events())
    for path in ("/node/60", "/node/x", "/node/-1", "/node/999999999999999999999", "/node/²"):
        assert client.get(path.replace("²", "%C2%B2"))[0] == 404, path
    for fields in ({}, {"row": "3"}, {"row": "3", "answer": "x"}):
        assert client.post("/answer", fields)[0] == 303
    for name in ("", "0", "9" * 5000, "Fraud"):
        assert client.post("/answer", {"row": "3", "answer": f"class-{name}"})[0] == 400
    for path, name, size in (("/class", "class", 201), ("/note", "note", 2001)):
        status, _, text = client.post(path, {"row": "3", name: "x" * size})
        assert (status, f"not {size:,}" in text) == (400, True)
    assert client.post("/who", {f"field{place}": "" for place in range(30)})[0] == 400
    for number in ("", "0", "999", "x", "9" * 40):
        assert client.post("/undo", {"number": number})[0] == 303
    assert client.post("/class", {"class": "  "})[0] == 303
    assert client.get("/nothing")[0] == 404
    assert len(desk.file.events()) == before


def test_a_port_that_is_taken_is_named():
    with free_socket(0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} cannot be used: "):
            free_socket(port)
    with pytest.raises(ValueError, match="port 70000 cannot be used"):
        free_socket(70000)


def test_few_labels_are_named_as_the_reason_only_where_they_are_few(tmp_path):
    few = make_desk(tmp_path / "few", start=False, labelled=6)
    assert "it takes 10 labels" in str(more_labels(few))
    many = make_desk(tmp_path / "many", start=False, labelled=40)
    assert more_labels(many) == []  # not measured yet


@pytest.fixture
def door():
    return Access(80, "ana")


def test_tokens_open_sessions(door):
    cookies = {door.enter(door.token) for _ in range(3)}
    assert len(cookies - {None}) == 3  # any number
    assert door.address == f"http://127.0.0.1:80/?token={door.token}"
    token = door.one_time_address().partition("=")[2]
    assert len({token, door.token, Access(80, "ana").token}) == 3
    assert len(token) >= 32
    assert door.enter(token)
    assert [door.enter(wrong) for wrong in (token, "", "wrong\u20ac")] == [None] * 3
    assert door.session({door.cookie: ""}) is door.session({}) is None


def test_old_sessions_make_room(door):
    first = door.enter(door.token)
    for _ in range(MAX_SESSIONS):
        last = door.enter(door.token)
    assert door.session({door.cookie: first}) is None
    assert door.session({door.cookie: last})
