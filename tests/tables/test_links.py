"""Links: rows that share a value, by brute force; earlier rows alone where there are times."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

from command_line import call
from evengraph.core.schema import read
from evengraph.methods import METHODS
from evengraph.ops.context import label_columns
from evengraph.ops.links import Link, without_link_edges
from evengraph.pipeline.sources import open_tables
from evengraph.pipeline.table_model import TableModel
from evengraph.splits import ByTime, Natural
from evengraph.splits.protocols import period_of_test
from evengraph.tables import FeatureEncoder, from_frames
from evengraph.tables.build import build_graph
from evengraph.tables.columns import TableColumns
from evengraph.tables.links import LinkFeatures, group_codes, suggest_links
from evengraph.tables.open import open_graph

DAY = 86_400


def payments(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "payment": [f"p{i}" for i in range(rows)],
            "card": [f"c{i}" for i in rng.integers(0, rows // 6, rows)],
            "shop": [f"s{i}" for i in rng.integers(0, rows // 12, rows)],
            "amount": rng.gamma(2, 10, rows).round(2),
            "at": pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 50, rows), unit="D"),
            "label": rng.choice(["yes", "no"], rows, p=[0.3, 0.7]),
        }
    )


def made(nodes, **columns):
    """The columns that links make, before they are scaled."""
    roles = TableColumns(link=["card", "shop"], **columns)
    features = LinkFeatures.fit(nodes, ["amount"], roles)
    times = nodes["at"].astype("datetime64[s]").astype("int64").to_numpy(float) if columns else None
    codes = [group_codes(nodes, link) for link in roles.link]
    return pd.DataFrame(features.compute(nodes, codes, times))


@pytest.mark.parametrize("timed", [False, True])
def test_columns_are_what_loops_over_rows_find(timed):
    nodes = payments()
    found = made(nodes, **({"time": "at"} if timed else {}))
    for row, node in nodes.iterrows():
        seen = nodes[nodes["at"] < node["at"]] if timed else nodes
        same = seen[seen["card"] == node["card"]]
        mean = same["amount"].mean()
        expected = {
            "card: rows": len(same),
            "card: mean amount": mean,
            "card: amount less its mean": node["amount"] - mean,
            "card: distinct shop": same["shop"].nunique(),
            "card and shop: rows": (same["shop"] == node["shop"]).sum(),
        }
        if timed:
            age = (node["at"] - same["at"]).dt.total_seconds()
            expected |= {
                "card: age of the last": age.min(),
                "card: rows in 7 days": (age <= 7 * DAY).sum(),
            }
        for name, value in expected.items():
            assert found[name][row] == pytest.approx(value, nan_ok=True), name


def test_nothing_of_the_future_reaches_a_row():
    nodes = payments()
    options = {"link": "card,shop,card+shop", "time": "at", "label": "label"}
    own = from_frames(nodes, None, **options)
    task = ByTime()(own.graph, seed=0)
    later = (nodes["at"] > nodes["at"][task.val.numpy()].max()).to_numpy().copy()
    assert later.sum() > 10
    assert own.graph.num_edges == 0
    assert "link_index" not in own.graph
    changed = nodes.copy()
    changed.loc[later, ["card", "shop", "amount"]] = ["c1", "s1", 1e4]
    again = from_frames(changed, None, encoder=own.encoder, **options)
    torch.testing.assert_close(again.graph.x[~later], own.graph.x[~later])
    without = from_frames(nodes[~later], None, encoder=own.encoder, **options)
    torch.testing.assert_close(without.graph.x, own.graph.x[~later])
    assert not torch.allclose(again.graph.x[later], own.graph.x[later])


def test_edges_join_the_rows_of_a_value_in_linear_number():
    values = np.random.default_rng(0).integers(0, 9, 400)
    values[:250] = 9  # a value that would have 31,125 edges
    source, target, weight = Link(np.arange(400), values, 400).edges()
    parts = nx.connected_components(nx.Graph(zip(source, target, strict=True)))
    assert {frozenset(part) for part in parts} == {
        frozenset(np.flatnonzero(values == value)) for value in range(10)
    }
    assert len(source) <= 3 * 400
    assert weight[values[source] == 9].max() < weight[values[source] != 9].min()


def test_known_labels_are_counted_over_whole_values_and_never_a_row_s_own():
    nodes = payments().assign(
        label=lambda t: t["card"].isin(["c1", "c2", "c3"]).map({True: "yes", False: "no"})
    )
    graph = from_frames(nodes, None, link="card", label="label").graph
    known = torch.arange(0, 120, 2)
    labels = graph.y[known]
    column = label_columns(graph, known, labels, 2, 1)[:, -1]
    for row in (0, 1, 7):
        same = [n for n in known.tolist() if nodes["card"][n] == nodes["card"][row]]
        share = float(labels.float().mean())
        hits = int(graph.y[same].sum())
        assert column[row] == pytest.approx((hits + share) / (len(same) + 1), rel=1e-5)
    lone = nodes.assign(card=[f"c{i}" for i in range(120)])
    graph = from_frames(lone, None, link="card", label="label").graph
    column = label_columns(graph, known, labels, 2, 1, held_out=True)[known, -1]
    assert abs(np.corrcoef(column.numpy(), labels.numpy())[0, 1]) < 0.5  # only other rows' labels


def model():
    return METHODS["boosting"](
        hops=1, context=True, max_epochs=5, stop_early=False, smallest_leaf=5
    )


def test_new_rows_link_to_known_ones_and_known_ones_are_scored_again(tmp_path):
    nodes = payments(240)
    known, new = nodes[:200], nodes[200:].drop(columns="label")
    fitted = TableModel(model()).fit(
        known, label="label", link=["card", "card+shop"], progress=False
    )
    fitted.save(tmp_path / "model")
    loaded = TableModel.load(tmp_path / "model")
    opened = loaded.open(new, known=known)
    whole = build_graph(nodes, None, opened.tables.columns, loaded.info.encoder)
    torch.testing.assert_close(opened.tables.graph.x, whole.graph.x)
    labelled = len(loaded.method_.labelled_.nodes)
    assert len(loaded.method_._known_labels(opened.tables.graph)[0]) == labelled
    again = pd.concat([new[3:5], known[10:12].drop(columns="label"), new[:1]])
    found = loaded.predict(again, known=known)
    assert found["payment"].tolist() == again["payment"].tolist()
    alone = loaded.predict(known[10:12].drop(columns="label"), known=known)
    assert alone["payment"].tolist() == ["p10", "p11"]
    torch.testing.assert_close(
        torch.tensor(fitted.predict(new, known=known)["p_yes"].to_numpy()),
        torch.tensor(loaded.predict(new, known=known)["p_yes"].to_numpy()),
    )


def test_a_new_row_is_named_by_its_own_number_and_the_command_tells_of_known_ones(tmp_path, capsys):
    nodes = payments(240)
    known, new = nodes[:200], nodes[200:].drop(columns="label").astype({"at": str})
    roles = {"label": "label", "link": "card", "time": "at", "progress": False}
    fitted = TableModel(model()).fit(known, **roles)
    fitted.save(tmp_path / "model")
    new.to_csv(tmp_path / "new.csv", index=False)
    words = ["predict", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "p.csv"]
    assert call(*words) == 0
    assert "--known names earlier rows" in capsys.readouterr().err
    new.iloc[2, new.columns.get_loc("at")] = "soon"
    with pytest.raises(ValueError, match=r"1 of 40 cells is not a date \('soon' in row 3\)"):
        fitted.open(new, known=known.astype({"at": str}))


def test_links_beside_edges_leave_the_edges_alone():
    nodes = payments()
    ends = pd.DataFrame(
        {"source": nodes["payment"][:50].array, "target": nodes["payment"][50:100].array}
    )
    plain = from_frames(nodes, ends, label="label").graph
    both = from_frames(nodes, ends, label="label", link="card").graph
    assert torch.equal(plain.edge_index, both.edge_index)
    assert without_link_edges(both) is both
    assert both.num_links == 1
    alone = from_frames(nodes, None, label="label", link="card").graph
    assert alone.num_edges
    assert not without_link_edges(alone).num_edges
    for name in ("gcn", "labelpropagation"):
        task = Natural(train=0.5, val=0.2)(alone, seed=0)
        assert METHODS[name](max_epochs=2).fit(task).predict_proba(alone).shape == (120, 2)


def test_a_value_of_nearly_all_and_empty_cells_link_nothing():
    nodes = payments().assign(shop=["unknown"] * 70 + [""] * 20 + ["a"] * 20 + ["b"] * 10)
    own = from_frames(nodes, None, label="label", link="shop")
    assert any("left out one that 70 of 120 rows share" in note for note in own.notes)
    assert set(own.graph.link_index[1].tolist()) == set(range(90, 120))


def test_an_encoder_with_links_is_stored_without_a_value():
    own = from_frames(payments(), None, label="label", link="card", time="at")
    stored = own.encoder.as_dict()
    assert FeatureEncoder.from_dict(stored) == own.encoder
    assert "c1" not in str(stored["links"])
    with pytest.raises(ValueError, match="too many"):
        read(LinkFeatures, stored["links"] | {"links": ["card"] * 99})


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("crad", "has no column 'crad'"),
        ("card+shp", "has no column 'shp'"),
        ("label", "'label' cannot be both label and link"),
        (",".join(f"card+{name}" for name in "abcdefghi"), "at most 8 links, got 9"),
    ],
)
def test_wrong_links_are_refused_in_one_line(link, message):
    with pytest.raises(ValueError, match=message):
        from_frames(payments(), None, label="label", link=link)


def transfers(rows=60):
    rng = np.random.default_rng(0)
    accounts = pd.DataFrame({"account": [f"a{i}" for i in range(20)], "label": list("xy") * 10})
    ends = rng.integers(0, 20, (2, rows))
    days = pd.to_timedelta(rng.integers(0, 60, rows), unit="D")
    payer, payee = (accounts["account"].to_numpy()[end] for end in ends)
    table = {"transfer_id": [f"t{i}" for i in range(rows)], "payer": payer, "payee": payee}
    return accounts, pd.DataFrame({**table, "date": pd.Timestamp("2024-03-01") + days})


def test_ends_are_the_columns_that_hold_ids_and_dates_give_counts_of_the_last_days():
    accounts, edges = transfers()
    own = from_frames(accounts, edges, label="label")
    assert (own.columns.source, own.columns.target) == ("payer", "payee")
    assert any("set directed to keep payer and payee apart" in note for note in own.notes)
    assert own.encoder.edges.names[-2:] == ("edges.7 days(date)", "edges.30 days(date)")
    recent = edges[edges["date"] > edges["date"].max() - pd.Timedelta(days=7)]
    between = recent[recent["payer"] != recent["payee"]]
    counts = pd.concat([between["payer"], between["payee"]]).value_counts()
    source, target = (edges[end].str[1:].astype(int).to_numpy() for end in ("payer", "payee"))
    made = own.encoder.edges.compute(edges, source, target, 20)
    found = dict(zip(accounts["account"], made["edges.7 days(date)"], strict=True))
    assert {name: count for name, count in found.items() if count} == counts.to_dict()
    assert FeatureEncoder.from_dict(own.encoder.as_dict()) == own.encoder
    directed = from_frames(accounts, edges, label="label", directed=True)
    assert not any("undirected" in note for note in directed.notes)


def test_numbers_of_edges_are_no_ends_and_their_only_dates_are_their_times():
    accounts, edges = transfers(40)
    numbers = {end: edges[end].str[1:].astype(int) for end in ("payer", "payee")}
    edges = edges.assign(transfer_id=range(40), **numbers).rename(columns={"date": "booked"})
    accounts = pd.concat([accounts, accounts, accounts]).assign(account=range(60))
    own = from_frames(accounts, edges, label="label")
    assert (own.columns.source, own.columns.target) == ("payer", "payee")
    assert (own.columns.id, own.columns.edge_time) == ("account", "booked")
    assert not any("transfer_id" in name or "account" in name for name in own.encoder.names)
    two = from_frames(accounts, edges.assign(settled=edges["booked"]), label="label")
    assert two.columns.edge_time is None


def test_windows_test_on_one_period_after_another_and_learn_from_all_before():
    graph = from_frames(payments(400), None, label="label", link="card", time="at").graph
    whole = ByTime()(graph, seed=0)
    tested = torch.zeros(400, dtype=torch.bool)
    for seed in range(4):
        task = ByTime(windows=4)(graph, seed=seed)
        seen = task.train | task.val
        assert not (tested & task.test).any()
        assert graph.time[task.train].max() < graph.time[task.val].min()
        assert graph.time[task.val].max() < graph.time[task.test].min()
        assert torch.equal(seen, graph.time <= graph.time[seen].max())
        days = [pd.Timestamp(float(t), unit="s").date() for t in graph.time[task.test].aminmax()]
        assert period_of_test(task) == f"{days[0]} to {days[1]}"
        tested |= task.test
    assert torch.equal(tested, whole.test)
    assert torch.equal(ByTime(windows=4)(graph, seed=0).train, whole.train)


def test_a_table_without_edges_is_told_its_likely_links(tmp_path):
    nodes = payments(300).assign(note="same", city=lambda t: t["shop"].str[-1] + "x")
    rings = np.arange(300) % 40
    nodes["device"] = [f"d{ring}" for ring in rings]
    nodes["label"] = np.where(rings < 4, "yes", "no")
    nodes.to_csv(tmp_path / "payments.csv", index=False)
    with pytest.raises(ValueError, match=r"such as device .* both yes \d+\.\d times") as raised:
        open_graph(tmp_path / "payments.csv", label="label")
    for column in ("payment", "amount", "note"):
        assert f"{column} (" not in str(raised.value)


def test_a_few_values_of_many_rows_do_not_hide_a_link():
    busy, rare = [f"u{i}" for i in range(10) for _ in range(40)], [f"v{i // 2}" for i in range(80)]
    draw = np.random.default_rng(0)
    nodes = pd.DataFrame({"user": busy + rare, "city": draw.integers(0, 40, 480).astype(str)})
    nodes["label"] = np.where(np.arange(480) < 420, "no", "yes")
    (found,) = suggest_links(nodes, "label")  # a city tells nothing
    assert found == "user (50 values in 480 rows; both yes 8.0 times as often as by chance)"
    assert suggest_links(nodes.assign(label=None), "label") == []


@pytest.mark.parametrize("link", ["card,shop", ["card", "shop"]])
def test_a_source_names_its_links_as_on_the_command_line(link):
    source = open_tables(payments(), label="label", link=link)
    assert source.columns["link"] == "card,shop"
    assert source.tables.columns.link == ["card", "shop"]


def test_columns_that_include_the_future_and_later_edges_are_told():
    draw, nodes = np.random.default_rng(2), payments(900).sort_values("at", ignore_index=True)
    groups = nodes.groupby("card")["amount"]
    future = {
        "all": groups.transform("size"),
        "paid": groups.transform("sum") * 3,
        "usual": groups.transform("mean") + draw.normal(0, 0.1, 900),
    }
    past = {
        "so far": groups.cumcount(),
        "limit": nodes["card"].str[1:].astype(int) ** 2 % 97,
        "euros": nodes["amount"] * 1.1,
    }
    own = from_frames(nodes.assign(**future, **past), None, label="label", link="card", time="at")
    told = [note.split("'")[1] for note in own.notes if note.kind == "future"]
    assert told == list(future)
    accounts, edges = transfers(400)
    opened = pd.Timestamp("2024-03-01") + pd.to_timedelta(draw.integers(0, 50, 20), unit="D")
    degree = pd.concat([edges["payer"], edges["payee"]]).value_counts()
    accounts = accounts.assign(opened=opened, edges=accounts["account"].map(degree))
    own = from_frames(accounts, edges, label="label", time="opened")
    [visible] = [note for note in own.notes if note.kind == "future"]
    when = accounts.set_index("account")["opened"]
    later = [(edges["date"] > edges[end].map(when)).mean() for end in ("payer", "payee")]
    assert visible.startswith(f"{np.mean(later):.0%} of the ends of edges")
