import pytest

from command_line import COLUMNS, call, read, write
from evengraph.desk import server
from evengraph.desk.desk import Desk
from evengraph.desk.label_file import Event, LabelFile
from evengraph.pipeline.table_model import TableModel

DESK = ["desk", "shop", *COLUMNS, "--retrain-every", "0"]


@pytest.fixture
def served(monkeypatch):
    """What would be served."""
    calls = []

    def serve(desk, access, listener):
        calls.append((desk, access))
        listener.close()
        desk.close()

    monkeypatch.setattr(server, "serve", serve)
    return calls


def test_the_desk_prints_its_address_and_its_file(shop, served, capsys, monkeypatch):
    monkeypatch.setattr("evengraph.desk.commands.getuser", lambda: "ana")
    assert call(*DESK, "--time-limit", "5s") == 0
    ((desk, access),) = served
    shown = capsys.readouterr().out
    assert access.address in shown
    assert "shop-kind.labels.sqlite, 0 so far" in shown
    assert access.who == "ana"
    assert desk.options.time_limit == 5
    assert desk.classes == ("fraud", "honest", "shop")
    assert desk.waiting()


def test_labels_of_before_are_there_again(shop, served, capsys):
    LabelFile(shop / "mine.sqlite", "kind").add(Event(node="a-001", label="fraud"))
    assert call(*DESK, "--labels", "mine.sqlite") == 0
    assert "mine.sqlite, 1 so far" in capsys.readouterr().out
    assert served[0][0].answers.labels() == {"a-001": "fraud"}


def test_the_exported_table_is_trained_on_as_it_is(shop, capsys):
    empty = [row["account"] for row in read(shop / "shop" / "nodes.csv") if not row["kind"]]
    events = [Event(node=id, label="shop") for id in empty]
    LabelFile(shop / "shop-kind.labels.sqlite", "kind").add(
        *events, Event(node="gone", label="shop")
    )
    assert call(*DESK, "--export", "out.csv") == 0
    shown = capsys.readouterr().out
    assert "wrote out.csv" in shown
    assert f"{len(empty)} labels from shop-kind.labels.sqlite; 1 are of nodes" in shown
    assert not [row for row in read(shop / "out.csv") if not row["kind"]]
    words = ["out.csv", "--edges", "shop/edges.csv", *COLUMNS, "--method", "logistic"]
    assert call("run", *words, "--splits", "5-5") == 0


def test_labels_of_a_file_or_of_the_desk_are_merged_into_a_run(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    empty = [row["account"] for row in rows if not row["kind"]][:3]
    other = next(row for row in rows if row["kind"] == "honest")["account"]
    answers = [*((id, "fraud") for id in empty), (other, "shop"), ("gone", "shop")]
    write(shop / "back.csv", ["account", "kind"], *answers)
    events = [Event(node=id, label=label) for id, label in answers]
    LabelFile(shop / "back.sqlite", "kind").add(*events)
    for name in ("back.csv", "back.sqlite"):
        words = ["--labels", name, "--method", "logistic", "--splits", "5-5", "--out", name[-3:]]
        assert call("run", "shop", *COLUMNS, *words, "--save", "model") == 0
        shown = " ".join(capsys.readouterr().err.split())
        assert f"Labels merged: 4; replaced: 1 ('{other}' from 'honest' to 'shop')" in shown
        assert "of nodes that the table does not have: 1" in shown
        again = TableModel.load("model").info.refit
        assert again.train + again.validation == sum(bool(row["kind"]) for row in rows) + 3
    write(shop / "back.csv", ["account", "kind"], [other, "shop"], [other, "fraud"])
    assert call("run", "shop", *COLUMNS, "--labels", "back.csv") == 2
    assert f"labels '{other}' as 'shop' and 'fraud'" in capsys.readouterr().err
    assert call("run", "shop", *COLUMNS, "--labels", "none.sqlite") == 2


def test_a_model_gives_suspects(shop, model, served):
    assert call("desk", "shop", "--model", "model", "--find", "fraud") == 0
    desk = served[0][0]
    assert desk.find == "fraud"
    assert all(map(desk.is_open, desk.queue))


def test_a_model_is_served_with_a_token(shop, model, monkeypatch, capsys):
    class Server:
        def run(self, sockets):
            sockets[0].close()
            raise KeyboardInterrupt

    monkeypatch.setattr(server, "impatient_server", lambda app: Server())
    (shop / "token").write_text("sixteen or more letters\n")
    assert call("serve", "model", "--port", "0", "--token-file", "token") == 0
    assert "Authorization: Bearer sixteen or more letters" in capsys.readouterr().out
    (shop / "token").write_text("short")
    assert call("serve", "model", "--port", "0", "--token-file", "token") == 2
    assert "at least 16" in capsys.readouterr().err
    assert call("serve", "model", "--known-edges", "shop/edges.csv") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["desk", "shop", "--label", "kidn"], "has no column 'kidn'; to start one, name its"),
        (["desk", "shop", *COLUMNS, "--find", "fraud"], "--find goes with --model."),
        (["desk", "shop", *COLUMNS, "--time-limit", "soon"], "a duration must be written such as"),
        (["desk", "shop", *COLUMNS, "--method", "magic"], "magic"),
        (
            ["desk", "shop", *COLUMNS, "--labels", "shop/nodes.csv"],
            "is not an evengraph label file",
        ),
        (["desk", "shop", *COLUMNS, "--export", "x.txt"], "must end in .csv or .parquet"),
        (["desk", "toy"], "Every node of toy has a label already."),
    ],
)
def test_mistakes_are_named_in_one_line(shop, served, capsys, words, message):
    assert call(*words) == 2
    shown = capsys.readouterr().err
    assert message in " ".join(shown.split())
    assert served == []


def test_a_class_to_find_must_be_one_of_the_model(shop, model, served, capsys):
    assert call("desk", "shop", "--model", "model", "--find", "fruad") == 2
    assert "Did you mean fraud?" in capsys.readouterr().err
    assert call("desk", "shop", "--model", "model") == 2
    assert "name the one to --find" in capsys.readouterr().err


def test_a_new_column_starts_without_labels(shop, served):
    words = ["desk", "shop", "--id", "account", "--label", "risk", "--classes", "low, high"]
    assert call(*words) == 0
    desk = served[0][0]
    assert desk.classes == ("low", "high")
    assert desk.nodes.column == "risk"
    assert desk.waiting()


def test_a_desk_without_work_ends_its_training(shop, monkeypatch):
    closed = []
    monkeypatch.setattr(Desk, "close", lambda self: closed.append(self.trainer.stop()))
    assert call("desk", "toy") == 2
    assert closed == [None]
