"""The scoring service: a real server, many clients, slow ones, wrong requests, a replaced model."""

import json
from contextlib import contextmanager
from http.client import HTTPConnection
from socket import create_connection
from threading import Event, Thread
from time import sleep
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from small_desk import write_shop

import evengraph as eg
from evengraph.desk import server, service
from evengraph.desk.server import free_socket, impatient_server
from evengraph.desk.service import Limits, Refusal, Service, make_app

TOKEN = "a token of more than sixteen"
ROW = {"id": "n", "amount": 8.5, "country": "FR"}
EDGES = [{"source": "n", "target": "a005"}, {"source": "a010", "target": "n"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A shop, its model, and another model of it."""
    path = tmp_path_factory.mktemp("served")
    shop = write_shop(path / "shop", labelled=40)
    for name, hops in (("model", 1), ("other", 0)):
        model = eg.TableModel(eg.Logistic(hops=hops))
        model.fit(shop, label="kind", id="id", progress=False).save(path / name)
    return path


@pytest.fixture
def served(folder):
    return Service(folder / "model", folder / "shop")


@contextmanager
def serving(made):
    """Serve; gives the port."""
    listener, stop = free_socket(0), Event()
    port = listener.getsockname()[1]
    made_server = impatient_server(make_app(made, TOKEN, [f"127.0.0.1:{port}"]))
    threads = [Thread(target=made_server.run, kwargs={"sockets": [listener]}, daemon=True)]
    threads.append(Thread(target=made.watch, args=(stop,), daemon=True))
    for thread in threads:
        thread.start()
    while not made_server.started:
        sleep(0.01)
    try:
        yield port
    finally:
        made_server.should_exit = True
        stop.set()
        for thread in threads:
            thread.join(10)
        listener.close()


def ask(port, path="/score", content=None, *, token=TOKEN, verb="POST", **headers):
    """Status, headers and JSON of an answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    body = content if content is None or isinstance(content, bytes) else json.dumps(content)
    connection.request(verb, path, body, {"Authorization": f"Bearer {token}", **headers})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), json.loads(text) if text[:1] == "{" else text


def test_answers_are_those_of_predict(served, folder):
    request = {"rows": [ROW], "edges": EDGES, "reasons": 2}
    model, known = served.served.scorer.model, str(folder / "shop")
    expected = served.served.scorer.score([ROW], EDGES, reasons=2)
    alone = served.served.scorer.score([ROW])
    with serving(served) as port:
        status, headers, found = ask(port, content=request)
        assert (status, found) == (200, {"model": served.served.version, "results": expected})
        assert headers["content-type"] == "application/json"
        status, _, found = ask(port, "/batch", {"requests": [request, {"rows": [ROW]}]})
        assert (status, found["results"]) == (200, [expected, alone])
        assert ask(port, "/health", verb="GET", token="")[2]["status"] == "ready"
    predicted = model.predict(*map(eg.pipeline.scorer._frame, ([ROW], EDGES)), known=known)
    assert predicted["class"][0] == expected[0]["class"]


def test_payments_are_scored_by_what_they_share(tmp_path):
    days = [f"2024-05-{1 + place % 28:02d} 10:00" for place in range(120)]
    table = pd.DataFrame({"card": [place % 17 for place in range(120)], "at": days})
    table["amount"] = table["card"] % 5 + table.index % 3
    table["kind"] = np.where(table["amount"] > 4, "fraud", "honest")
    table.to_csv(tmp_path / "payments.csv", index=False)
    model = eg.TableModel(eg.Logistic(), refit=False)
    model.fit(tmp_path / "payments.csv", label="kind", link="card", time="at", progress=False)
    model.save(tmp_path / "model")
    made = Service(tmp_path / "model", None)
    row = {"card": 3, "at": "2024-06-01 08:00", "amount": 2}
    (found,) = json.loads(made.answer(json.dumps({"rows": [row]}).encode()))["results"]
    expected = model.predict_proba(pd.DataFrame([row]), known=table)[0]
    assert list(found["probabilities"].values()) == pytest.approx(expected.tolist())
    for wrong, path in (({"edges": [{}]}, ["edges"]), ({"rows": [{"card": 3}]}, ["rows", 0, "at"])):
        with pytest.raises(Refusal) as caught:
            made.answer(json.dumps({"rows": [row]} | wrong).encode())
        assert caught.value.content["path"] == path


def test_the_description_has_the_columns_and_is_shown(served):
    with serving(served) as port:
        status, _, found = ask(port, "/openapi.json", verb="GET")
        assert (status, found["openapi"]) == (200, "3.1.0")
        row = found["components"]["schemas"]["Row"]
        assert set(row["required"]) == {"id", "amount", "country"}
        text = json.dumps(found)
        for name in set(text.split("#/components/schemas/")[1:]):
            assert name.partition('"')[0] in found["components"]["schemas"]
        status, _, shown = ask(port, f"/?token={TOKEN.replace(' ', '%20')}", verb="GET", token="")
        assert status == 200
        assert "amount" in shown
        assert ask(port, "/", verb="GET", token="no")[0] == 401


@pytest.mark.parametrize(
    ("content", "status", "path", "text"),
    [
        (b"{", 400, [], "JSON"),
        (b"[" * 100_000, 400, [], "JSON"),
        (b'{"rows": [{"id": "n", "amount": NaN, "country": ""}]}', 422, ["rows", 0, "amount"], ""),
        ({"rows": [{"id": "n", "country": "FR"}]}, 422, ["rows", 0, "amount"], "required"),
        ({"rows": [ROW | {"amount": "much"}]}, 422, ["rows", 0, "amount"], "number"),
        ({"rows": []}, 422, ["rows"], "at least 1"),
        ({"rows": [ROW], "row": 1}, 422, ["row"], "not permitted"),
        ({"rows": [ROW] * 1_001}, 422, ["rows"], "at most 1000"),
        ({"rows": [ROW, ROW]}, 422, [], "repeats the id"),
        ({"rows": [ROW], "edges": [{"source": "n"}]}, 422, ["edges", 0, "target"], "required"),
        (
            {"rows": [ROW], "edges": [*EDGES, {"source": "n", "target": "x"}]},
            422,
            ["edges", 2, "target"],
            "not the id of a node",
        ),
    ],
)
def test_wrong_requests_name_the_field(served, content, status, path, text):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(Refusal) as caught:
        served.answer(body)
    assert (caught.value.status, caught.value.content["path"]) == (status, path)
    assert text in caught.value.content["error"]
    assert len(caught.value.content["error"]) < 300


def test_strangers_and_large_bodies_are_refused(served):
    with serving(served) as port:
        assert ask(port, content={"rows": [ROW]}, token="guess")[0] == 401
        assert ask(port, content={"rows": [ROW]}, Host="evil.example")[0] == 421
        assert ask(port, content=b" " * (served.limits.bytes + 1))[0] == 413
        assert ask(port, "/nothing", verb="GET")[::2] == (404, {"error": "Not Found", "path": []})
        many = {"requests": [{"rows": [ROW] * 600}] * 2}
        assert ask(port, "/batch", many)[::2][1]["path"] == ["requests"]


def test_who_would_wait_too_long_is_told_to_try_again(folder, monkeypatch):
    made = Service(folder / "model", folder / "shop", Limits(queue=2, seconds=0.5))
    let = Event()
    monkeypatch.setattr(made, "answer", lambda *_: let.wait(20) and b"{}")
    with serving(made) as port:
        found = []
        clients = [Thread(target=lambda: found.append(ask(port, content={}))) for _ in range(6)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert [(one[0], one[1]["retry-after"]) for one in found] == [(503, "1")] * 6
        assert sum("wait" in one[2]["error"] for one in found) >= 3
        let.set()
        monkeypatch.undo()
        while made.waiting:
            sleep(0.01)
        assert ask(port, content={"rows": [ROW]})[0] == 200


def test_fifty_clients_and_a_replaced_model_lose_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(service, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    models = [eg.TableModel.load(folder / name) for name in ("model", "other")]
    models[0].save(tmp_path / "model")
    made = Service(tmp_path / "model", folder / "shop", Limits(queue=60))
    request, found, stop = {"rows": [ROW], "edges": EDGES}, [], Event()

    def client(port):
        while not stop.is_set():
            found.append(ask(port, content=request))

    with serving(made) as port:
        head = (
            f"POST /score HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        )
        slow = [create_connection(("127.0.0.1", port)) for _ in range(3)]
        for connection, sent in zip(
            slow, ("", head, f"{head}Content-Length: 9\r\n\r\n{{"), strict=True
        ):
            connection.sendall(sent.encode())
        gone = create_connection(("127.0.0.1", port))
        gone.sendall(f'{head}Content-Length: 13\r\n\r\n{{"rows": [{{}}'.encode())
        gone.close()
        clients = [Thread(target=client, args=(port,)) for _ in range(50)]
        for thread in clients:
            thread.start()
        for place in (1, 0, 1):
            sleep(0.7)
            models[place].save(tmp_path / "model")
        while made.served.version != made.version():
            sleep(0.01)
        sleep(0.3)
        stop.set()
        for thread in clients:
            thread.join()
        assert [connection.recv(12) for connection in slow] == [b"", b"", b"HTTP/1.1 408"]
        for connection in slow:
            connection.close()
    assert {status for status, _, _ in found} == {200}
    pairs = {(one["model"], json.dumps(one["results"])) for _, _, one in found}
    assert len(pairs) == len({version for version, _ in pairs}) == 2


def test_a_model_that_cannot_be_read_leaves_the_old_one(folder, tmp_path):
    eg.TableModel.load(folder / "model").save(tmp_path / "model")
    made, file = Service(tmp_path / "model", folder / "shop"), tmp_path / "model" / "model.json"
    before, text = made.served, file.read_text()
    file.write_text(text[:-9])
    made.refresh()
    assert made.served is before
    assert "model" in made.health()["reload"]
    file.write_text(text)
    made.refresh()
    assert "reload" not in made.health()


def test_a_busy_connection_is_kept_and_an_idle_one_cut():
    from uvicorn.server import ServerState

    config = impatient_server(make_app(SimpleNamespace(limits=Limits()), TOKEN)).config
    config.load()
    looks, closed = [], []
    loop = SimpleNamespace(call_later=lambda _, look, last: looks.append((look, last)))
    transport = SimpleNamespace(
        get_extra_info=lambda *_: None, close=lambda: closed.append(1), is_closing=lambda: False
    )
    made = config.http_protocol_class(config, ServerState(), {}, _loop=loop)
    made.connection_made(transport)

    def next_look():
        look, last = looks.pop()
        look(last)

    for done in (False, True, False):  # a request under way, one answered meanwhile, a new one
        made.cycle = SimpleNamespace(response_complete=done)
        next_look()
    made.cycle.response_complete = True
    next_look()
    assert not closed
    next_look()  # nothing came since
    assert closed
