"""Kept models on the command line: new nodes beside known ones, flags, calibration."""

import pandas
import pytest
import torch
from command_line import COLUMNS, FAST, call, read, write

import evengraph as eg
from evengraph.cli.predict import format_probability, show_flags
from evengraph.metrics.calibration import Calibrator

NEW = ["account", "amount", "country"]


@pytest.mark.parametrize("known", [[], ["--known", "shop"]])
def test_a_table_of_no_new_nodes_is_refused(known, model, shop, capsys):
    write(shop / "n.csv", NEW)
    write(shop / "e.csv", ["from", "to"])
    assert call("predict", "model", "n.csv", "e.csv", *known) == 2
    assert "n.csv has no rows" in capsys.readouterr().err


@pytest.fixture
def two(shop):
    """A model of two classes, calibrated by hand so that the temperature matters."""
    rows = read(shop / "shop" / "nodes.csv")
    for row in rows:
        row["kind"] = "fraud" if row["kind"] == "fraud" else row["kind"] and "honest"
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
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


def test_calibration_flags_the_same_nodes(two, shop, capsys):
    raw, calibrated = predicted(shop, two), predicted(shop, two, "--calibrated")
    assert [row["flagged"] for row in raw] == [row["flagged"] for row in calibrated]
    assert [row["p_fraud"] for row in raw] != [row["p_fraud"] for row in calibrated]
    assert sum(row["flagged"] == "yes" for row in raw) == 30
    start = eg.load_model(two).extra_["flag"]["from"]
    odds = (start / (1 - start)) ** (1 / 2.5)
    carried = odds / (1 + odds)
    for row in calibrated:
        sure = float(row["p_fraud"]) - carried
        assert abs(sure) < 1e-5 or row["flagged"] == ("yes" if sure > 0 else "no")
    shown = capsys.readouterr().out
    assert f"a probability of {format_probability(carried)} or more" in shown


@pytest.mark.parametrize("place", [0, 1])
def test_a_threshold_is_carried_over_with_a_shift_too(place):
    chances = torch.linspace(0.001, 0.999, 999, dtype=torch.double)
    pairs = torch.stack([chances, 1 - chances], 1)
    calibrator = Calibrator(temperature=0.7, shift=(0.4, -0.9))
    carried = calibrator.threshold(0.3, place)
    before, after = pairs[:, place] >= 0.3 - 1e-9, calibrator(pairs)[:, place] >= carried - 1e-9
    assert torch.equal(before, after)
    assert 0 < before.sum() < len(before)


def test_a_threshold_of_one_is_carried_over_to_where_its_nodes_go():
    sure = torch.tensor([[1e-8, 1.0], [2**-25, 1.0], [1e-20, 1.0]])
    calibrator = Calibrator(temperature=2.5)
    carried = calibrator.threshold(1.0, 1)
    assert carried < 1
    assert (calibrator(sure)[:, 1] >= carried - 1e-7).all()


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
    assert f"calibrated on {nodes} validation nodes: temperature {temperature:.2f}" in shown.out
    assert f"({change})" in shown.out
    assert ("are few, fewer than 100" in shown.err) is warned
    predicted(shop, "other")
    assert "temperature" not in capsys.readouterr().out


def test_a_calibrator_that_does_nothing_says_so(two, shop, capsys):
    method = eg.load_model(two)
    few = Calibrator.fit(torch.tensor([[0.4, 0.6]]), torch.tensor([1]))
    method.save("other", extra=method.extra_ | {"calibrator": few.as_dict()})
    capsys.readouterr()
    predicted(shop, "other", "--calibrated")
    shown = capsys.readouterr().out
    assert "not calibrated: 1 validation nodes are too few" in shown


def test_class_and_flag_that_differ_are_explained(two, shop, capsys):
    capsys.readouterr()
    rows = predicted(shop, two)
    differ = sum((row["class"] == "fraud") != (row["flagged"] == "yes") for row in rows)
    assert differ
    shown = capsys.readouterr().out
    assert f"they differ for {differ} of 120 nodes: to find fraud, act on flagged" in shown


@pytest.mark.parametrize(
    ("start", "digits", "warned"),
    [(0.00012, "0.00012", True), (0.9996, "0.99960", True), (0.25, "0.250", False)],
)
def test_a_threshold_has_the_digits_it_needs(start, digits, warned, capsys):
    frame = pandas.DataFrame({"class": ["rare", "common"], "flagged": [True, False]})
    show_flags(frame, "rare", start)
    shown = capsys.readouterr()
    assert f"a probability of {digits} or more" in shown.out
    assert ("extreme" in shown.err) is warned


def test_the_node_that_set_the_threshold_is_flagged(two, shop):
    """Through percent and back, a threshold stays the very probability that a node had."""
    start = eg.load_model("first").extra_["flag"]["from"]
    graph = eg.open_graph("shop", label="kind", id="account").graph
    assert start in eg.load_model("first").predict_proba(graph)[:, 0].tolist()


@pytest.fixture
def new(shop):
    """Two new nodes that attach to known ones, and one without an edge."""
    rows = [["new-1", 5, "DE"], ["new-2", "", "XX"], ["new-3", 6, "FR"]]
    write(shop / "n.csv", NEW, *rows)
    write(shop / "e.csv", ["from", "to"], ["new-1", "a-000"], ["new-2", "new-1"])
    return ["n.csv", "e.csv"]


def test_new_nodes_without_an_edge_are_counted_by_themselves(model, new, shop, capsys):
    nodes = read(shop / "shop" / "nodes.csv")
    lonely = [["lost", "", 5, "DE"], ["alone", "", 6, "FR"]]
    write(shop / "shop" / "nodes.csv", list(nodes[0]), *(list(r.values()) for r in nodes), *lonely)
    capsys.readouterr()
    assert call("predict", "model", *new, "--known", "shop") == 0
    shown = capsys.readouterr().err
    assert "1 of 3 new nodes have no edge" in shown
    assert "features alone" in shown
    assert "123" not in shown
    write(shop / "e.csv", ["from", "to"], *(["a-000", f"new-{place}"] for place in (1, 2, 3)))
    assert call("predict", "model", *new, "--known", "shop") == 0
    assert "no edge" not in capsys.readouterr().err


@pytest.fixture
def renamed(shop):
    """A model of two tables with names of their own, which no folder holds."""
    (shop / "shop" / "nodes.csv").rename(shop / "customers.csv")
    (shop / "shop" / "edges.csv").rename(shop / "payments.csv")
    words = ["customers.csv", "--edges", "payments.csv", *COLUMNS, *FAST]
    assert call("run", *words, "--save", "model") == 0
    return ["--known", "customers.csv", "--known-edges", "payments.csv"]


def test_known_tables_may_have_names_of_their_own(renamed, new, shop):
    assert call("predict", "model", *new, *renamed, "--out", "one.csv") == 0
    (shop / "customers.csv").rename(shop / "shop" / "nodes.csv")
    (shop / "payments.csv").rename(shop / "shop" / "edges.csv")
    assert call("predict", "model", *new, "--known", "shop", "--out", "other.csv") == 0
    assert read(shop / "one.csv") == read(shop / "other.csv")


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (["--known", "customers.csv"], "--known-edges must name"),
        (["--known-edges", "payments.csv"], "--known-edges goes with --known"),
        (["--known", "shop", "--known-edges", "payments.csv"], "a folder holds both tables"),
    ],
)
def test_mistakes_with_known_tables(known, words, renamed, new, shop, capsys):
    assert call("predict", "model", *new, *known) == 2
    assert words in capsys.readouterr().err


def test_a_new_node_is_explained_beside_the_known_ones(model, new, shop, capsys):
    assert call("predict", "model", *new, "--known", "shop", "--out", "p.csv") == 0
    row = read(shop / "p.csv")[0]
    tables = ["--new-nodes", "n.csv", "--new-edges", "e.csv"]
    for known in ([], ["--known", "shop"], ["--data", "shop"]):
        capsys.readouterr()
        assert call("explain", "model", "new-1", *tables, *known, "--out", "why.svg") == 0
        shown = capsys.readouterr().out
        sure = 100 * float(row["probability"])
        assert f"new-1 is {row['class']} with {sure:.1f}%" in shown
        assert "steps away" in shown
    assert call("explain", "model", "new-1") == 2
    assert "--new-nodes" in capsys.readouterr().err
    assert call("explain", "model", "new-1", "--new-nodes", "n.csv") == 2
    assert "go together" in capsys.readouterr().err


def test_tables_are_found_from_another_folder(renamed, shop, monkeypatch, capsys):
    (shop / "elsewhere").mkdir()
    monkeypatch.chdir(shop / "elsewhere")
    assert call("explain", "../model", "a-003") == 0
    (shop / "payments.csv").rename(shop / "gone.csv")
    capsys.readouterr()
    assert call("explain", "../model", "a-003") == 2
    shown = capsys.readouterr().err
    assert "payments.csv no longer exists" in shown
    assert "--known" in shown
    moved = ["--data", "../customers.csv", "--edges", "../gone.csv"]
    assert call("explain", "../model", "a-003", *moved) == 0
