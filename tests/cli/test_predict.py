"""evengraph predict."""

import json
import re

import pandas
import pytest

import evengraph as eg
from command_line import COLUMNS, FAST, call, read, rewrite, write
from evengraph.cli.predict import format_probability, show_drift
from evengraph.pipeline.predictions import NodePredictions


@pytest.fixture
def two(shop):
    """A model of two classes."""
    kinds = {"fraud": "fraud", "": ""}
    rewrite(shop / "shop" / "nodes.csv", lambda n, row: {"kind": kinds.get(row["kind"], "honest")})
    assert call("run", "shop", *COLUMNS, *FAST, "--save", "two") == 0
    return "two"


def predicted(shop, *arguments):
    tables = ["shop/nodes.csv", "shop/edges.csv"]
    assert call("predict", *arguments, *tables, "--out", "p.csv") == 0
    return read(shop / "p.csv")


def test_what_probabilities_stand_on_is_told(two, shop, capsys):
    method = eg.load_model(two)
    for counts, columns, words in (
        (
            [30, 90],
            ["probability", "p_fraud"],
            "calibrated on 120 held-out nodes (fraud: 30, honest: 90",
        ),
        ([4, 116], ["score", "score_fraud"], "Scores, not probabilities: 120 held-out nodes"),
    ):
        method.extra_["calibrator"] |= {"counts": counts, "nodes": 120}
        method.save("other", extra=method.extra_)
        capsys.readouterr()
        assert set(columns) < set(predicted(shop, "other")[0])
        assert words in " ".join(capsys.readouterr().out.split())
    assert "p_fraud" in predicted(shop, "other", "--no-calibrated")[0]


def test_models_of_version_0_2_are_used_as_they_were(two, shop, capsys):
    method = eg.load_model(two)
    shown = method.predict_proba(eg.open_graph("shop", label="kind", id="account").graph)
    value = float(shown[:, 0].sort().values[90])  # a quarter is flagged
    method.extra_["calibrator"] = {"temperature": 2.5, "shift": [], "nodes": 45, "note": ""}
    method.extra_["flag"] = {"class": 0, "from": value}
    del method.extra_["decision"], method.extra_["sets"]
    method.save("old", extra=method.extra_)
    capsys.readouterr()
    rows = predicted(shop, "old")
    flags = [row["flagged"] == "True" for row in rows]
    assert flags == (shown[:, 0] >= value).tolist()
    assert [row["class"] == "fraud" for row in rows] == (shown[:, 0] > 0.5).tolist()
    assert [float(row["p_fraud"]) for row in rows] == pytest.approx(shown[:, 0].tolist(), abs=1e-6)
    calibrated = predicted(shop, "old", "--calibrated")
    assert [row["flagged"] == "True" for row in calibrated] == flags


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


def test_models_of_directed_edges_find_the_graph_that_they_were_trained_on(new, shop, capsys):
    words = [*COLUMNS, *FAST, "--directed", "--save", "arrows", "--out", "arrows-run"]
    assert call("run", "shop", *words) == 0
    assert call("predict", "arrows", *new, "--known", "shop") == 0
    assert eg.TableModel.load("arrows").info.trained_on.columns["directed"] is True
    capsys.readouterr()
    assert call("predict", "arrows", "shop", "--known", "shop", "--out", "again.csv") == 0
    assert "No edge connects" not in capsys.readouterr().err


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
    options = result["decision"]["options"]
    assert [row["cost"] >= 0 for row in options] == [True] * len(options)
    assert "(a miss costs 1e+06, a false alarm 1)" in " ".join(capsys.readouterr().out.split())
    assert flags("dear") == flags("dear", "--cost-miss", 1e6) >= flags("dear", "--cost-alarm", 1e6)
    assert "or more, the lowest cost (a miss costs 1e+06" in capsys.readouterr().out


def test_run_and_predict_name_the_same_threshold_and_what_it_does(two, shop, capsys):
    words = [*COLUMNS, *FAST, "--alerts", "10%", "--save", "few", "--out", "few-run"]
    assert call("run", "shop", *words) == 0
    options = json.loads((shop / "few-run" / "result.json").read_text())["decision"]["options"]
    (chosen,) = [row for row in options if row["chosen"]]
    assert chosen["flagged"] <= 0.1 * chosen["nodes"]
    capsys.readouterr()
    predicted(shop, "few")
    shown = capsys.readouterr().out
    assert f"score(fraud) is {chosen['threshold']:.3f} or more, flagging 10% of the nodes" in shown
    found, size = (round(chosen[name]) for name in ("found", "positives"))
    assert (
        f"On {chosen['nodes']:.0f} held-out nodes it finds {found} of {size} nodes of class fraud ("
        in " ".join(shown.split())
    )
    for words, goal in (
        (["--precision", 0.6], "a precision of 60%"),
        (["--recall", 0.9], "a recall of 90%"),
        (["--alerts", 7], "the most probable ones"),
    ):
        rows = predicted(shop, "few", *words)
        assert f", {goal}" in (shown := capsys.readouterr().out)
    assert sum(row["flagged"] == "True" for row in rows) == 7
    assert "held-out nodes it" not in shown
    assert "set" in predicted(shop, "few", "--coverage", 0.8)[0]
    for words, message in (
        (["--alerts", "many"], "alerts must be a number of nodes or a share, 50 or 1%, got 'many'"),
        (["--alerts", 5, "--recall", 0.5], "--alerts excludes costs, --precision and --recall"),
    ):
        assert call("predict", "few", "shop", "--out", "p.csv", *words) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_the_most_suspicious_are_listed_with_reasons(two, shop, capsys):
    rows = predicted(shop, two)
    capsys.readouterr()
    predicted(shop, two, "--top", "4")
    lines = capsys.readouterr().out.splitlines()
    (head,) = [place for place, line in enumerate(lines) if "reasons" in line]
    table = lines[head + 1 : lines.index("", head)]
    shown = [line.split() for line in table if not line.startswith(" ")]  # reasons are wrapped
    assert [line[0] for line in shown] == ["1", "2", "3", "4"]
    best = sorted((float(row["score_fraud"]) for row in rows), reverse=True)[:4]
    assert [float(line[2]) for line in shown] == pytest.approx(best, abs=1e-3)
    assert any("(usually" in line for line in table)


def test_shares_are_told(model, shop, capsys):
    shares = "fraud=0.2,honest=0.5,shop=0.3"
    assert call("predict", "model", "shop", "--out", "p.csv", "--prior", shares) == 0
    assert "class shares: fraud 20.0%, honest 50.0%, shop 30.0%; assumes" in capsys.readouterr().out
    assert call("predict", "model", "shop", "--out", "p.csv", "--prior", "fraud=much") == 2
    assert "--prior takes shares such as yes=0.1,no=0.9, got fraud=much" in capsys.readouterr().err


def test_columns_that_have_moved_are_moved_back_unless_kept(model, shop, capsys, monkeypatch):
    monkeypatch.setattr("evengraph.pipeline.predictions.ENOUGH", 2)
    monkeypatch.setattr("evengraph.pipeline.predictions.DISTINCT", 2)
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
    ("value", "digits"), [(0.00012, "0.00012"), (0.9996, "0.99960"), (0.25, "0.250")]
)
def test_a_probability_has_the_digits_it_needs(value, digits):
    assert format_probability(value) == digits


def test_what_was_moved_back_what_differs_and_what_was_not_corrected(capsys):
    predictions = NodePredictions(None, ["Also different: b."], None, "Moved back: a.")
    show_drift(predictions._replace(doubt="Not corrected."))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "Moved back: a. --no-align keeps them.",
        "Warning: Also different: b.",
        "Warning: Not corrected.",
    ]
