"""evengraph predict."""

import json
import re

import pandas
import pytest

import evengraph as eg
from command_line import COLUMNS, FAST, call, read, rewrite, write
from evengraph.cli.predict import show_drift, show_flags
from evengraph.metrics.calibration import Calibrator
from evengraph.pipeline.predictions import NodePredictions


@pytest.fixture
def two(shop):
    """A model of two classes, calibrated by hand so that the temperature matters."""
    kinds = {"fraud": "fraud", "": ""}
    rewrite(shop / "shop" / "nodes.csv", lambda n, row: {"kind": kinds.get(row["kind"], "honest")})
    assert call("run", "shop", *COLUMNS, *FAST, "--save", "first") == 0
    method = eg.load_model("first")
    shown = method.predict_proba(eg.open_graph("shop", label="kind", id="account").graph)
    chances = shown[:, 0].sort().values
    method.extra_["flag"] = {"class": 0, "from": float(chances[90])}  # a quarter is flagged
    method.extra_["calibrator"] = Calibrator(temperature=2.5, nodes=45).as_dict()
    method.save("two", extra=method.extra_)
    return "two"


def predicted(shop, *arguments):
    tables = ["shop/nodes.csv", "shop/edges.csv"]
    assert call("predict", *arguments, *tables, "--out", "p.csv") == 0
    return read(shop / "p.csv")


@pytest.mark.parametrize(
    ("temperature", "nodes", "change", "warned"),
    [
        (2.5, 45, "less confident", True),
        (0.5, 100, "more confident", False),
        (1.0, 250, "confidence unchanged", False),
    ],
)
def test_calibration_says_what_it_stands_on(temperature, nodes, change, warned, two, shop, capsys):
    method = eg.load_model(two)
    method.extra_["calibrator"] = Calibrator(temperature=temperature, nodes=nodes).as_dict()
    method.save("other", extra=method.extra_)
    capsys.readouterr()
    predicted(shop, "other", "--calibrated")
    shown = capsys.readouterr()
    assert f"calibrated on {nodes} held-out nodes: temperature {temperature:.2f}" in shown.out
    assert f"({change})" in shown.out
    assert ("are few, fewer than 100" in shown.err) is warned
    predicted(shop, "other")
    assert "temperature" not in capsys.readouterr().out


def test_the_node_that_set_the_threshold_is_flagged(two, shop):
    """Through percent and back, a threshold stays the very probability that a node had."""
    start = eg.load_model("first").extra_["flag"]["from"]
    graph = eg.open_graph("shop", label="kind", id="account").graph
    assert start in eg.load_model("first").predict_proba(graph)[:, 0].tolist()


def test_new_nodes_without_an_edge_are_counted_by_themselves(model, new, shop, capsys):
    nodes = read(shop / "shop" / "nodes.csv")
    lonely = [["lost", "", 5, "DE"], ["alone", "", 6, "FR"]]
    write(shop / "shop" / "nodes.csv", list(nodes[0]), *(list(r.values()) for r in nodes), *lonely)
    capsys.readouterr()
    assert call("predict", "model", *new, "--known", "shop") == 0
    shown = capsys.readouterr().err
    assert "New nodes without edges: 1 of 3;" in shown
    assert "cannot use the graph" in shown
    assert "123" not in shown


def test_known_tables_may_have_names_of_their_own(renamed, new, shop):
    assert call("predict", "model", *new, *renamed, "--out", "one.csv") == 0
    (shop / "customers.csv").rename(shop / "shop" / "nodes.csv")
    (shop / "payments.csv").rename(shop / "shop" / "edges.csv")
    assert call("predict", "model", *new, "--known", "shop", "--out", "other.csv") == 0
    assert read(shop / "one.csv") == read(shop / "other.csv")


def test_costs_set_the_threshold_when_training_and_when_predicting(two, shop, capsys):
    def flags(model, *words):
        rows = predicted(shop, model, *words)
        return sum(row["flagged"] == "True" for row in rows)

    few, many = (flags(two, *words) for words in (["--cost-alarm", 1e6], ["--cost-miss", 1e6]))
    assert few <= many
    capsys.readouterr()
    words = [*COLUMNS, *FAST, "--cost-miss", "1e6", "--save", "dear", "--out", "dear-run"]
    assert call("run", "shop", *words) == 0
    result = json.loads((shop / "dear-run" / "result.json").read_text())
    assert result["costs"] == {"miss": 1e6, "alarm": 1.0}
    assert result["runs"][0]["base_rates"][0].keys() >= {"base_rate", "alarms", "cost"}
    assert "a miss costs 1e+06, an alarm 1" in capsys.readouterr().out
    assert flags("dear") == flags("dear", "--cost-miss", 1e6) >= flags("dear", "--cost-alarm", 1e6)
    assert "or more, the lowest cost on validation" in capsys.readouterr().out


def test_the_most_suspicious_are_listed_with_reasons(two, shop, capsys):
    rows = predicted(shop, two)
    capsys.readouterr()
    predicted(shop, two, "--top", "4")
    lines = capsys.readouterr().out.splitlines()
    (head,) = [place for place, line in enumerate(lines) if "speaks for it" in line]
    shown = [line.split() for line in lines[head + 1 : head + 5]]
    assert [line[0] for line in shown] == ["1", "2", "3", "4"]
    best = sorted((float(row["p_fraud"]) for row in rows), reverse=True)[:4]
    assert [float(line[2]) for line in shown] == pytest.approx(best, abs=1e-3)
    assert any("amount" in line for line in lines[head + 1 : head + 5])


def test_shares_and_abstention_are_told(model, shop, capsys):
    shares = "fraud=0.2,honest=0.5,shop=0.3"
    assert call("predict", "model", "shop", "--out", "p.csv", "--prior", shares) == 0
    assert "class shares: fraud 20.0%, honest 50.0%, shop 30.0%; assumes" in capsys.readouterr().out
    assert call("predict", "model", "shop", "--out", "p.csv", "--abstain", 0.2) == 0
    shown = capsys.readouterr().out
    count = sum(row["abstained"] == "True" for row in read(shop / "p.csv"))
    assert f"{count}  abstained: confidence below 0." in shown
    assert call("predict", "model", "shop", "--out", "p.csv", "--max-error", 0.99) == 0
    assert "0  abstained: the error on" in capsys.readouterr().out
    assert "held-out nodes that leaves" in shown
    assert call("predict", "model", "shop", "--out", "p.csv", "--prior", "fraud=much") == 2
    assert "--prior takes estimate or yes=0.1,no=0.9, got fraud=much" in capsys.readouterr().err


def test_columns_that_have_moved_are_moved_back_unless_kept(model, shop, capsys, monkeypatch):
    monkeypatch.setattr("evengraph.pipeline.sources.ENOUGH", 2)
    monkeypatch.setattr("evengraph.pipeline.sources.DISTINCT", 2)
    (shop / "n.csv").write_text((shop / "shop" / "nodes.csv").read_text())
    rewrite(shop / "n.csv", lambda n, row: {"amount": 30 + float(row["amount"] or 0)})
    assert call("predict", "model", "n.csv", "shop/edges.csv", "--out", "p.csv") == 0
    assert "moved back: amount by +" in (shown := capsys.readouterr().err)
    assert "--no-align keeps them." in shown
    assert "ifferent from training" not in shown  # one message about a column, not two
    assert call("predict", "model", "n.csv", "shop/edges.csv", "--out", "p.csv", "--no-align") == 0
    assert "moved back" not in (shown := capsys.readouterr().err)
    assert "Warning: Different from training: amount is" in shown


def test_classes_that_are_integers_are_counted(shop, capsys):
    rows = pandas.read_csv(shop / "shop" / "nodes.csv").fillna({"kind": "honest"})
    codes = rows.assign(kind=(rows["kind"] == "fraud").astype(int))
    edges = pandas.read_csv(shop / "shop" / "edges.csv")
    eg.TableModel("logistic").fit(codes, edges, label="kind", id="account").save("model")
    capsys.readouterr()
    assert call("predict", "model", "shop", "--out", "p.csv") == 0
    counts = re.findall(r"^ +(\d+)  ([01])$", capsys.readouterr().out, re.MULTILINE)
    assert [name for _, name in counts] == ["0", "1"]
    assert sum(int(count) for count, _ in counts) == len(rows)


@pytest.mark.parametrize(
    ("start", "digits", "warned"),
    [(0.00012, "0.00012", True), (0.9996, "0.99960", True), (0.25, "0.250", False)],
)
def test_a_threshold_has_the_digits_it_needs(start, digits, warned, capsys):
    frame = pandas.DataFrame({"class": ["rare", "common"], "flagged": [True, False]})
    show_flags(frame, "rare", start)
    shown = capsys.readouterr()
    assert f"p(rare) is {digits} or more" in shown.out
    assert ("extreme" in shown.err) is warned


def test_what_was_moved_back_what_differs_and_what_was_not_corrected(capsys):
    predictions = NodePredictions(None, ["Also different: b."], None, None, "Moved back: a.")
    show_drift(predictions._replace(doubt="Not corrected."))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "Moved back: a. --no-align keeps them.",
        "Warning: Also different: b.",
        "Warning: Not corrected.",
    ]
