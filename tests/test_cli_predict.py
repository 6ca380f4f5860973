"""Kept models on the command line: new nodes beside known ones, flags, calibration."""

import pytest
import torch

import evengraph as eg
from evengraph.calibration import Calibrator
from evengraph.cli.predicting import probability, show_flags
from test_cli import call
from test_cli_own import COLUMNS, QUICK, model, read, shop, write

__all__ = ["model", "shop"]  # fixtures

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
    assert call("run", "shop", *COLUMNS, *QUICK, "--save", "first") == 0
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
    assert f"a probability of {probability(carried)} or more" in shown


@pytest.mark.parametrize("place", [0, 1])
def test_a_threshold_is_carried_over_with_a_shift_too(place):
    chances = torch.linspace(0.001, 0.999, 999, dtype=torch.double)
    pairs = torch.stack([chances, 1 - chances], 1)
    calibrator = Calibrator(temperature=0.7, shift=(0.4, -0.9))
    carried = calibrator.threshold(0.3, place)
    before, after = pairs[:, place] >= 0.3 - 1e-9, calibrator(pairs)[:, place] >= carried - 1e-9
    assert torch.equal(before, after)
    assert 0 < before.sum() < len(before)


@pytest.mark.parametrize(
    ("temperature", "nodes", "change", "warned"),
    [(2.5, 45, "less sure", True), (0.5, 100, "surer", False), (1.0, 250, "neither", False)],
)
def test_calibration_says_what_it_stands_on(temperature, nodes, change, warned, two, shop, capsys):
    method = eg.load_model(two)
    method.extra_["calibrator"] = Calibrator(temperature=temperature, nodes=nodes).as_dict()
    method.save("other", extra=method.extra_)
    capsys.readouterr()
    predicted(shop, "other", "--calibrated")
    shown = capsys.readouterr()
    assert f"calibrated on {nodes} validation nodes: temperature {temperature:.2f}" in shown.out
    assert f"makes the model {change}" in shown.out
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
    flags = torch.tensor([True, False])
    show_flags(flags, torch.tensor([0, 1]), {"class": 0, "from": start}, ["rare", "common"])
    shown = capsys.readouterr()
    assert f"a probability of {digits} or more" in shown.out
    assert ("extreme" in shown.err) is warned


def test_the_node_that_set_the_threshold_is_flagged(two, shop):
    """Through percent and back, a threshold stays the very probability that a node had."""
    start = eg.load_model("first").extra_["flag"]["from"]
    graph = eg.open_graph("shop", label="kind", id="account").graph
    assert start in eg.load_model("first").predict_proba(graph)[:, 0].tolist()
