"""Several kinds of nodes: columns and links of the nodes, which alone are predicted."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import HeteroData

import evengraph as eg
from command_line import call
from evengraph.desk.suggestions import Pool
from evengraph.pipeline.explanation import _median, _table_columns
from evengraph.pipeline.model_info import ModelInfo
from evengraph.pipeline.scorer import Scorer
from evengraph.splits import ByTime, Natural
from evengraph.tables import from_frames, open_graph
from evengraph.tables.kinds import SEVERAL, Step, _cells

ACCOUNTS = 150


def tables(seed=0):
    """Accounts with one device each, by which fraud comes in rings, and up to three cards."""
    draw = np.random.default_rng(seed)
    device, cards = draw.integers(0, 30, ACCOUNTS), draw.integers(0, 50, 2 * ACCOUNTS)
    label = np.where((device < 6) ^ (draw.random(ACCOUNTS) < 0.05), "fraud", "ok").astype(object)
    label[draw.random(ACCOUNTS) < 0.2] = None
    ids, owner = np.arange(ACCOUNTS), draw.integers(0, ACCOUNTS, 2 * ACCOUNTS)
    age, limit = draw.gamma(2, 9, ACCOUNTS), draw.integers(1, 90, 50)
    accounts = pd.DataFrame({"account": [f"a{i}" for i in ids], "age": age, "fraud": label})
    rooted = draw.choice(["yes", "no"], 30)
    devices = pd.DataFrame({"device": [f"d{i}" for i in range(30)], "rooted": rooted})
    bank = [f"b{i % 4}" for i in range(50)]
    card = pd.DataFrame({"card": [f"c{i}" for i in range(50)], "limit": limit, "bank": bank})
    uses = pd.DataFrame({"account": accounts["account"], "device": [f"d{i}" for i in device]})
    pays = {"account": [f"a{i}" for i in owner], "card": [f"c{i}" for i in cards]}
    return {
        "accounts": accounts,
        "devices": devices,
        "cards": card,
        "uses": uses,
        "pays": pd.DataFrame({**pays, "amount": draw.gamma(2, 10, 2 * ACCOUNTS)}),
    }


def own(t, names=("devices", "cards"), edges=("uses", "pays"), **options):
    options = {"tables": {n: t[n] for n in names}, "label": "fraud"} | options
    return from_frames(t["accounts"], {name: t[name] for name in edges}, **options)


def columns(graph):
    return pd.DataFrame(graph.graph.x.numpy(), columns=graph.encoder.names)


def test_one_table_two_tables_and_edges_give_the_same_features_and_links():
    t = tables()
    keyed = t["accounts"].merge(t["uses"], on="account").rename(columns={"device": "uses"})
    flat = keyed.merge(t["devices"].rename(columns={"device": "uses", "rooted": "uses.rooted"}))
    flat = flat.set_index("account").loc[t["accounts"]["account"]].reset_index()
    one = from_frames(flat, None, label="fraud", link="uses", id="account")
    two = from_frames(keyed, tables={"devices": t["devices"]}, label="fraud")
    three = own(t, ["devices"], ["uses"])
    for other in (two, three):
        found, expected = columns(other), columns(one)
        pd.testing.assert_frame_equal(found[expected.columns], expected)
        assert torch.equal(other.graph.link_index, one.graph.link_index)
        assert torch.equal(other.graph.edge_index, one.graph.edge_index)
        assert set(other.encoder.others) >= {"uses.rooted"}


def test_every_table_that_is_reached_is_noted():
    t = tables()
    knows = pd.DataFrame({"payer": ["a1", "a2"], "payee": ["a3", "a4"]})
    notes = own({**t, "knows": knows}, edges=("uses", "pays", "knows")).notes
    assert [note.split(" ")[0] for note in notes if "columns" in note][:2] == ["Devices", "Cards"]
    assert not any("columns knows" in note for note in notes)


def test_several_rows_of_another_table_are_counted_averaged_and_listed():
    t = tables()
    graph = own(t, ["cards"], ["pays"])
    step = Step(*graph.columns.kinds[0])
    assert (step.name, step.far, step.far_key, step.several) == ("pays", "cards", "card", "several")
    encoder = {item.column: item for item in graph.encoder.columns}
    found = columns(graph)
    known = t["pays"].merge(t["cards"], on="card")
    for row in (0, 3, 50):
        mine = known[known["account"] == f"a{row}"]
        values = {
            "pays.limit": mine["limit"].mean(),
            "pays.count": len(mine),
            "pays: amount, mean": mine["amount"].mean(),
            "pays: amount, sum": mine["amount"].sum(),
        }
        for name, value in values.items():
            number = encoder[name]
            curve = number.curve(np.array([number.median if np.isnan(value) else value]))
            expected = (curve[0] - number.mean) / number.scale
            assert found[name][row] == pytest.approx(expected, abs=1e-5), name
        for bank in "0123":
            assert found[f"pays.bank=b{bank}"][row] == (f"b{bank}" in set(mine["bank"]))
    link = graph.graph.link_index
    cards = {c: i for i, c in enumerate(dict.fromkeys(c for cell in _lists(t) for c in cell))}
    pairs = {
        (int(r), cards[c]) for r, c in zip(t["pays"].account.str[1:], t["pays"].card, strict=True)
    }
    assert set(zip(link[1].tolist(), link[2].tolist(), strict=True)) == pairs


def _lists(t):
    """The cards of every account, as cells."""
    cards = t["pays"].groupby("account")["card"].agg(lambda v: sorted(set(v)))
    return cards.reindex(t["accounts"]["account"]).dropna()


def test_means_of_booleans_and_of_dates_are_told_as_such():
    t, dates = tables(), [f"2024-03-{1 + i % 2:02d}" for i in range(50)]
    t["cards"] = t["cards"].assign(lost=np.where(np.arange(50) % 2, "true", "false"), issued=dates)
    graph = own(t)
    encoder = type(graph.encoder).from_dict(json.loads(json.dumps(graph.encoder.as_dict())))
    assert [encoder.unit(f"pays.{name}") for name in ("lost", "issued", "limit")] == [
        "flag",
        "date",
        "",
    ]
    found = {column.name: column for column in _table_columns(encoder.names, encoder)}
    for name, cells in (("lost", {"false", "true"}), ("issued", {"2024-03-01", "2024-03-02"})):
        one = found[f"pays.{name}"]
        read = one.encoder.decode(graph.graph.x[:, one.features[0]].double().numpy())
        words = [_median([value], one.unit) for value in read]
        assert cells <= set(words) <= cells | {word for word in words if word.endswith("% true")}
    assert _median([-1 / 3], "flag") == "33% true"
    assert _median([90, 3480], "age") == "29.8 minutes"
    assert _median([1_063_890], "age") == "12.3 days"


def test_a_device_is_never_a_node_so_it_is_never_predicted_suggested_or_drawn(
    tmp_path, monkeypatch
):
    t = tables()
    monkeypatch.chdir(tmp_path)
    for name, table in t.items():
        table.to_csv(f"{name}.csv", index=False)
    options = ["--tables", "devices.csv,cards.csv", "--edges", "uses.csv,pays.csv"]
    options += ["--label", "fraud"]
    method = ["--method", "boosting", "--set", "max_epochs=5", "--splits", "1", "--save", "model"]
    call("run", "accounts.csv", *options, *method, "--out", "out")
    ids = set(t["accounts"]["account"])
    unlabelled = set(t["accounts"]["account"][t["accounts"]["fraud"].isna()])
    assert set(pd.read_csv("out/predictions.csv")["account"]) == unlabelled
    call("predict", "model", "accounts.csv", "uses.csv,pays.csv", *options[:2], "--top", "9")
    assert set(pd.read_csv("predictions.csv")["account"]) == ids
    model = eg.TableModel.load("model")
    assert set(model.known_graph(None, {}).ids) == ids
    pool = Pool.open(
        "accounts.csv", "uses.csv,pays.csv", tables="devices.csv,cards.csv", label="fraud"
    )
    assert set(pool.ids) == ids
    graph = own(t).graph
    task = Natural(train=0.5, val=0.2)(graph, seed=0)  # what pseudo-labels are drawn from
    assert task.graph.num_nodes == len((~task.train).tolist()) == ACCOUNTS
    fitted = eg.TableModel(eg.UniGNN(max_epochs=5)).fit(
        t["accounts"], {n: t[n] for n in ("uses", "pays")}, label="fraud", progress=False,
        tables={n: t[n] for n in ("devices", "cards")},
    )  # fmt: skip
    assert {one.id for one in fitted.most_likely("fraud", 500)} == unlabelled
    assert set(fitted.predict_unlabelled()["account"]) == unlabelled


def test_new_rows_of_every_table_are_predicted_as_if_all_were_known(tmp_path):
    t = tables()
    late, new = set(t["accounts"]["account"][120:]), {}
    known = {"accounts": t["accounts"][:120], "devices": t["devices"][:25], "cards": t["cards"]}
    new = {"accounts": t["accounts"][120:], "devices": t["devices"][25:]}
    early = set(known["devices"]["device"])
    for name in ("uses", "pays"):
        later = t[name]["account"].isin(late)
        if name == "uses":
            later |= ~t[name]["device"].isin(early)
        known[name], new[name] = t[name][~later], t[name][later]
    fit = {"label": "fraud", "tables": {n: known[n] for n in ("devices", "cards")}}
    edges = {n: known[n] for n in ("uses", "pays")}
    method = eg.METHODS["boosting"](hops=1, context=True, max_epochs=5, stop_early=False)
    fitted = eg.TableModel(method).fit(known["accounts"], edges, progress=False, **fit)
    fitted.save(tmp_path / "model")
    loaded = eg.TableModel.load(tmp_path / "model")
    before = (known["accounts"], edges, fit["tables"])
    rows, ends = new["accounts"].drop(columns="fraud"), {f"new_{n}": new[n] for n in edges}
    opened = loaded.open(rows, ends, known=before, tables={"devices": new["devices"]})
    whole = own(t, encoder=loaded.info.encoder)
    later = t["accounts"]["account"].isin(late).to_numpy().copy()
    torch.testing.assert_close(opened.tables.graph.x[opened.rows], whole.graph.x[later])
    found = loaded.predict(rows, ends, known=before, tables={"devices": new["devices"]})
    assert found["account"].tolist() == rows["account"].tolist()
    scored = Scorer(loaded, (known["accounts"], edges, fit["tables"])).score(
        rows[:1].to_dict("records"), {"uses": [{"account": rows.iloc[0, 0], "device": "d0"}]}
    )
    assert scored[0]["id"] == rows.iloc[0, 0]
    with pytest.raises(ValueError, match="'made_up' is called like none of those of training"):
        loaded.open(rows, {"made_up": new["uses"]}, known=before)


@pytest.fixture
def on_files(tmp_path, monkeypatch, capsys):
    """A model of accounts with devices, and new accounts with new and known ones."""
    monkeypatch.chdir(tmp_path)
    t = tables()
    for name in ("accounts", "devices", "uses"):
        t[name].to_csv(f"{name}.csv", index=False)
    new = {
        "accounts": pd.DataFrame({"account": ["n1", "n2"], "age": [9.5, 20]}),
        "devices": pd.DataFrame({"device": ["d90"], "rooted": ["yes"]}),
        "uses": pd.DataFrame({"account": ["n1", "n2", "n2"], "device": ["d90", "d90", "d1"]}),
    }
    for name, table in new.items():
        table.to_csv(f"new_{name}.csv", index=False)
    words = ["--tables", "devices.csv", "--edges", "uses.csv", "--label", "fraud"]
    more = ["--method", "boosting", "--set", "max_epochs=5", "--splits", "5-5", "--save", "model"]
    assert call("run", "accounts.csv", *words, *more) == 0
    capsys.readouterr()


GIVEN = ["new_accounts.csv", "new_uses.csv"]
KNOWN = ["--known", "accounts.csv", "--known-edges", "uses.csv", "--known-tables", "devices.csv"]
DEVICES = ["--tables", "new_devices.csv"]


@pytest.mark.parametrize("command", ["predict", "monitor"])
def test_predict_and_monitor_name_the_table_that_is_missing(on_files, capsys, command):
    assert call(command, "model", *GIVEN, *DEVICES, *KNOWN) == 0
    for words, shown in (
        ([*GIVEN, *DEVICES, *KNOWN[:4]], "known rows lack: devices. Option: --known-tables"),
        ([*GIVEN, *DEVICES, *KNOWN[:2], *KNOWN[4:]], "lack: uses. Option: --known-edges"),
        ([*GIVEN, *KNOWN], "Rows of another table? Name it with --tables."),
        ([GIVEN[0], *DEVICES, *KNOWN], "lack: uses. Name it after new_accounts.csv."),
        (GIVEN, "the rows lack: devices. Option: --tables"),
        ([GIVEN[0], *DEVICES], "the rows lack: uses. Name it after new_accounts.csv."),
        ([*GIVEN, *DEVICES, *KNOWN[4:]], "--known-tables goes with --known"),
    ):
        capsys.readouterr()
        assert call(command, "model", *words) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert shown in error
    pd.DataFrame(columns=["account", "device"]).to_csv("new_uses.csv", index=False)
    assert call(command, "model", *GIVEN, *KNOWN) == 0


def test_a_new_node_of_several_tables_is_explained_as_predict_predicts_it(on_files, capsys):
    assert call("predict", "model", *GIVEN, *DEVICES, *KNOWN, "--out", "p.csv") == 0
    row = pd.read_csv("p.csv").iloc[0]
    sure = 100 * row.get("probability", row.get("score"))
    new = ["--new-nodes", GIVEN[0], "--new-edges", GIVEN[1]]
    for known in ([], KNOWN):
        capsys.readouterr()
        assert call("explain", "model", "n1", *new, "--new-tables", DEVICES[1], *known) == 0
        assert f"n1: {row['class']} {sure:.1f}%" in capsys.readouterr().out
    assert call("explain", "model", "n1", *new[:2], "--new-tables", DEVICES[1]) == 2
    assert "the rows lack: uses. Option: --new-edges" in capsys.readouterr().err
    assert call("explain", "model", "a1", *KNOWN[:4]) == 2
    assert "the rows lack: devices. Option: --known-tables" in capsys.readouterr().err


def test_later_edges_to_another_table_are_hidden_from_training():
    t = tables()
    draw = np.random.default_rng(1)
    t["accounts"]["opened"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(range(150), unit="D")
    days = pd.to_timedelta(draw.integers(0, 150, 300), unit="D")
    t["pays"]["date"] = pd.Timestamp("2024-01-01") + days
    task = ByTime()(own(t, ["cards"], ["pays"], time="opened").graph, seed=0)
    cut = pd.Timestamp(float(task.graph.time[task.val].max()), unit="s")
    earlier = {**t, "pays": t["pays"][t["pays"]["date"] <= cut]}
    past = own(earlier, ["cards"], ["pays"], time="opened").graph
    torch.testing.assert_close(task.past.x, past.x)
    assert not torch.equal(task.graph.x[task.train], past.x[task.train])


def test_tables_further_away_reach_the_nodes_through_those_between():
    t = tables()
    banks = pd.DataFrame({"bank": [f"b{i}" for i in range(4)], "country": ["x", "y", "x", "y"]})
    graph = from_frames(
        t["accounts"],
        {"pays": t["pays"]},
        label="fraud",
        tables={"cards": t["cards"], "banks": banks},
    )
    assert {"pays.bank.country=x", "pays.bank.country=y"} <= set(graph.encoder.names)
    assert graph.columns.link == ["pays"]
    options = {"edges": {"pays": t["pays"]}, "tables": {"cards": t["cards"]}, "label": "fraud"}
    less = open_graph(t["accounts"], drop=["pays.bank", "age"], **options)
    assert not [name for name in less.encoder.names if "bank" in name or name == "age"]
    assert open_graph(t["accounts"], link="age", drop=["fraud"]).columns.link == ["age"]


def test_a_kind_without_a_table_is_a_hub_and_edges_between_nodes_stay_edges():
    t = tables()
    ids = t["accounts"]["account"]
    t["sends"] = pd.DataFrame({"from": ids[:70].array, "to": ids[70:140].array})
    t["visits"] = pd.DataFrame({"account": ids, "shop": [f"s{i % 9}" for i in range(ACCOUNTS)]})
    graph = own(t, ["devices"], ["sends", "visits", "uses"])
    assert graph.columns.link == ["visits", "uses"]
    assert graph.graph.num_edges == 140
    assert "visits: rows" in graph.encoder.made


def test_rows_without_edges_to_any_table_have_empty_cells():
    none = np.empty(0, np.int64)
    assert _cells(none, none.astype(object), 2, SEVERAL).tolist() == [None, None]


def test_hetero_data_is_read_as_tables_and_predicted_as_frames():
    t = tables()
    data, labels = HeteroData(), t["accounts"]["fraud"]
    data["account"].x = torch.tensor(t["accounts"][["age"]].to_numpy(), dtype=torch.float)
    data["account"].y = torch.tensor((labels == "fraud").astype(int).mask(labels.isna(), -1).array)
    data["device"].x = torch.tensor((t["devices"][["rooted"]] == "yes").to_numpy()).float()
    ends = [t["uses"][c].str[1:].astype(int).to_numpy() for c in ("account", "device")]
    data["account", "uses", "device"].edge_index = torch.from_numpy(np.stack(ends))
    data["device", "rev_uses", "account"].edge_index = torch.from_numpy(np.stack(ends[::-1]))
    graph = open_graph(data)
    assert graph.columns.link == ["uses"]
    assert graph.ids[:2].tolist() == ["account:0", "account:1"]
    assert (graph.graph.y < 0).sum() == labels.isna().sum()
    rooted = t["uses"].merge(t["devices"], on="device")["rooted"] == "yes"
    assert np.array_equal(columns(graph)["uses.x0"] > 0, rooted)
    model = eg.TableModel("boosting").fit(data, progress=False)
    del data["account"].y
    assert model.predict(data)["account_id"].tolist() == graph.ids.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"uses": lambda t: t.assign(device="d99")}, "names 'd99', which is not the id of a node"),
        ({"uses": lambda t: t.rename(columns={"device": "x"}).assign(x=t["account"].array)},
         "Nothing leads from nodes to the table devices"),
        ({"devices": lambda t: t.assign(device=range(30)),
          "accounts": lambda t: t.assign(account=range(ACCOUNTS)),
          "uses": lambda _: pd.DataFrame({"a": range(20), "b": range(20)})},
         "Column 'a' of uses fits the ids of nodes and devices; call it like one of them"),
        ({"accounts": lambda t: t.assign(uses=1)}, "has a column 'uses', a name of features"),
        ({"devices": lambda t: pd.concat([t, t])}, "device.* has no column of distinct values"),
        ({"devices": lambda t: pd.concat([t, t + " "])}, "device.* has no column of distinct"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line(change, message):
    t = tables()
    for name, function in change.items():
        t[name] = function(t[name])
    with pytest.raises(ValueError, match=message):
        own(t, ["devices"], ["uses"])


def test_stored_steps_are_checked():
    info = ModelInfo.from_dict(
        {"encoder": own(tables()).encoder.as_dict(), "columns": {"kinds": [["x"]]}}
    )
    with pytest.raises(ValueError, match=r"columns.kinds must hold steps"):
        info.check(1, 2)
