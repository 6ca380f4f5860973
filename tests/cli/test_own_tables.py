"""One's own tables on the command line: look, train, keep, predict, explain, and mistakes."""

import json

import pytest
from command_line import COLUMNS, FAST, call, read, write

import evengraph as eg


def test_two_tables_to_predictions_in_two_commands(model, shop, capsys):
    assert call("predict", "model", "shop/nodes.csv", "shop/edges.csv", "--out", "p.csv") == 0
    rows = read(shop / "p.csv")
    assert [row["id"] for row in rows] == [f"a-{place:03d}" for place in range(120)]
    assert set(rows[0]) == {"id", "class", "probability", "p_fraud", "p_honest", "p_shop"}
    for row in rows:
        chances = {name: float(row[f"p_{name}"]) for name in ("fraud", "honest", "shop")}
        assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
        assert row["class"] == max(chances, key=chances.get)
    own = eg.open_graph("shop", label="kind", id="account")
    expected = eg.load_model("model").predict_proba(own.graph)
    found = [[float(row[f"p_{name}"]) for name in ("fraud", "honest", "shop")] for row in rows]
    assert found == pytest.approx(expected.numpy(), abs=1e-5)
    assert "fraud" in capsys.readouterr().out


def test_the_kept_model_has_its_own_figure(shop, capsys):
    words = [*FAST[:-1], "5,6", "--save", "model", "--out", "out"]
    assert call("run", "shop", *COLUMNS, *words) == 0
    runs = json.loads((shop / "out" / "result.json").read_text())["runs"]
    scores = {one["seed"]: f"{one['metrics']['balanced_accuracy']:.1f}" for one in runs}
    (line,) = [one for one in capsys.readouterr().out.splitlines() if "wrote model" in one]
    seed = int(line.split("of seed ")[1].split(",")[0])
    assert f"balanced accuracy {scores[seed]} on its test nodes" in line


def test_what_is_replaced_is_said(shop, capsys):
    compared = ["--methods", "gcn", "--splits", "1", "--set", "max_epochs=2", "--out", "c"]
    several = ["--method", "gcn,reweight", "--set", "max_epochs=2", "--seeds", "5", "--out", "s"]
    first = {"wrote out/result.json", "wrote out/report.html", "wrote model", "wrote s"}
    first |= {"wrote c/comparison.csv", "wrote c/comparison.json"}
    again = {line.replace("wrote", "replaced") for line in first} - {"replaced model"}
    for expected in (first, again | {"replaced the model in model"}):
        assert call("run", "shop", *COLUMNS, *FAST, "--save", "model", "--out", "out") == 0
        assert call("compare", "shop", *COLUMNS, *compared) == 0
        assert call("run", "shop", *COLUMNS, *several) == 0
        lines = capsys.readouterr().out.splitlines()
        said = {one.split(":")[0] for one in lines if one.startswith(("wrote", "replaced"))}
        assert said == expected


def test_new_nodes_attach_to_the_known_graph(model, shop):
    write(shop / "n.csv", ["account", "amount", "country"], ["new-1", 5, "DE"], ["new-2", "", "XX"])
    write(shop / "e.csv", ["from", "to"], ["new-1", "a-000"], ["new-2", "new-1"])
    words = ["n.csv", "e.csv", "--known", "shop", "--out", "new.parquet"]
    assert call("predict", "model", *words) == 0
    import pandas

    found = pandas.read_parquet(shop / "new.parquet")
    assert found["id"].tolist() == ["new-1", "new-2"]
    assert found.filter(like="p_").sum(axis=1).tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


def test_calibrated_probabilities_keep_the_class(model, shop):
    tables = ["model", "shop/nodes.csv", "shop/edges.csv"]
    assert call("predict", *tables, "--out", "raw.csv") == 0
    assert call("predict", *tables, "--calibrated", "--out", "calibrated.csv") == 0
    raw, calibrated = read(shop / "raw.csv"), read(shop / "calibrated.csv")
    assert [row["class"] for row in raw] == [row["class"] for row in calibrated]


def test_a_prediction_is_explained_and_drawn(model, shop, capsys):
    assert call("explain", "model", "a-003", "--out", "why.svg") == 0
    shown = capsys.readouterr().out
    for word in ("a-003", "features of labelled nodes", "layer 2", "steps away"):
        assert word in shown
    assert (shop / "why.svg").read_text().startswith("<svg")


def test_looking_first_names_classes_and_leaks(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    for row in rows:
        row["copy"] = row["kind"]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("inspect", "shop", *COLUMNS, "--out", "look") == 0
    assert "fraud" in capsys.readouterr().out
    found = json.loads((shop / "look" / "inspect.json").read_text())
    assert any("copy" in json.dumps(leak) for leak in found["leaks"])
    assert "compare DATA --label kind)" in " ".join(found["recommendation"])


def test_empty_buckets_of_text_are_no_finding(shop):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["about"] = f"sells shoes and hats {place % 9}0"
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("inspect", "shop", *COLUMNS, "--out", "look") == 0
    found = json.loads((shop / "look" / "inspect.json").read_text())
    assert found["features"]["hashed"] == 256
    assert not any("the same value for every node" in one["text"] for one in found["findings"])
    page = (shop / "look" / "inspect.html").read_text(encoding="utf-8")
    assert "of these, hashed text" in page


def test_run_counts_edges_as_inspect_does(shop):
    edges = {frozenset(row.values()) for row in read(shop / "shop" / "edges.csv")}
    number = sum(len(ends) == 2 for ends in edges)
    assert call("inspect", "shop", *COLUMNS, "--out", "look") == 0
    assert call("run", "shop", *COLUMNS, *FAST, "--out", "out") == 0
    looked = json.loads((shop / "look" / "inspect.json").read_text())
    result = json.loads((shop / "out" / "result.json").read_text())
    assert looked["edges"]["pairs"] == result["dataset"]["num_edges"] == number
    assert result["dataset"]["num_edges_left"] == number
    assert f"<b>{number}</b> edges" in (shop / "out" / "report.html").read_text()


def test_methods_are_compared_on_ones_own_tables(shop, capsys):
    words = ["--methods", "gcn,reweight", "--splits", "2", "--set", "max_epochs=5"]
    assert call("compare", "shop", *COLUMNS, *words) == 0
    assert "GCN" in capsys.readouterr().out


def test_a_split_column_decides(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["part"] = ("train", "train", "val", "test")[place % 4]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    words = [*COLUMNS, "--split-column", "part", "--out", "out"]
    assert call("run", "shop", *words, *FAST) == 0
    result = json.loads((shop / "out" / "result.json").read_text())
    assert result["imbalance"]["name"] == "given"


def test_time_decides(shop):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["since"] = f"2024-01-{1 + place % 28:02d}"
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    words = [*COLUMNS, "--time-column", "since", "--out", "out"]
    assert call("run", "shop", *words, *FAST) == 0
    result = json.loads((shop / "out" / "result.json").read_text())
    assert result["imbalance"]["name"] == "bytime"


def test_a_table_beside_its_edges(shop):
    words = ["shop/nodes.csv", "--edges", "shop/edges.csv", *COLUMNS, "--json"]
    assert call("inspect", *words) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "shap"], ["shap", "cora"]),
        (["run", "shop/none.csv", "--edges", "shop/edges.csv"], ["none.csv"]),
        (["run", "shop", "--label", "sort", "--id", "account"], ["sort", "kind"]),
        (["run", "shop", "--label", "kind", "--id", "who"], ["who", "account"]),
        (["run", "shop/nodes.csv", *COLUMNS], ["edges"]),
        (["run", "cora", "--label", "kind"], ["--label", "./cora"]),
        (["run", "shop", *COLUMNS, "--save", "shop", *FAST], ["shop", "other files"]),
        (["run", "shop", *COLUMNS, "--save", "m", "--method", "gcn,smote"], ["--save", "one"]),
        (["run", "shop", *COLUMNS, "--minority", "2"], ["--minority", "--train"]),
        (["predict", "nowhere", "shop/nodes.csv", "shop/edges.csv"], ["nowhere"]),
        (["predict", "shop", "shop/nodes.csv", "shop/edges.csv"], ["shop", "not a model"]),
        (["explain", "nowhere", "a-001"], ["nowhere"]),
        (["compare", "shop", *COLUMNS, "--methods", "gnc"], ["gnc", "gcn"]),
    ],
)
def test_mistakes_get_one_line_and_status_two(arguments, words, shop, capsys):
    before = sorted(path.name for path in shop.iterdir())
    assert call(*arguments) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    for word in words:
        assert word in lines[0]
    assert sorted(path.name for path in shop.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "model", "nobody"], ["nobody", "a-000"]),
        (["predict", "model", "shop/nodes.csv", "shop/edges.csv", "--out", "p.txt"], [".csv"]),
        (
            ["predict", "model", "shop/nodes.csv", "shop/edges.csv", "--known", "shop"],
            ["already", "a-000"],
        ),
    ],
)
def test_mistakes_with_a_model(arguments, words, model, capsys):
    assert call(*arguments) == 2
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("Error: ")]
    for word in words:
        assert word in line


def test_a_model_of_a_known_graph_says_that_it_has_no_columns(shop, capsys):
    assert call("run", "toy", *FAST, "--save", "toy-model", "--out", "out") == 0
    assert call("predict", "toy-model", "shop/nodes.csv", "shop/edges.csv") == 2
    assert "trained on a graph" in capsys.readouterr().err


@pytest.mark.parametrize("values", [("true", "false", "maybe"), ("1.0", "2.0", "beta")])
def test_a_cell_means_the_same_in_other_company(shop, values):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["grade"] = values[place % 3]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("run", "shop", *COLUMNS, *FAST, "--save", "model") == 0
    new = [["account", "amount", "country", "grade"], ["new-1", 5, "DE", values[0]]]
    write(shop / "a.csv", *new, ["new-2", 5, "DE", values[2]])
    write(shop / "b.csv", *new, ["new-2", 5, "DE", values[1]])  # all of one kind now
    write(shop / "e.csv", ["from", "to"], ["new-1", "new-1"])
    for name in ("a", "b"):
        words = [f"{name}.csv", "e.csv", "--out", f"{name}-out.csv"]
        assert call("predict", "model", *words) == 0
    first, second = (read(shop / f"{name}-out.csv")[0] for name in ("a", "b"))
    assert first == second


def test_a_column_that_is_half_numbers_is_told(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["income"] = ("1.0", "2.0", "low")[place % 3]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    line = (
        "Column 'income': 40 of 120 values are not numbers (first: 'low' in row 3), so it is "
        "treated as categories."
    )
    short = ["--methods", "gcn", "--splits", "1", "--set", "max_epochs=2"]
    for words in (["inspect"], ["run", *FAST], ["compare", *short]):
        assert call(words[0], "shop", *COLUMNS, *words[1:]) == 0
        assert capsys.readouterr().err.splitlines().count(line) == 1


def test_a_label_that_is_the_word_none_stays_a_class(tmp_path):
    rows = [[str(n), ("none", "1", "2")[n % 3]] for n in range(30)]
    write(tmp_path / "nodes.csv", ["id", "label"], *rows)
    write(tmp_path / "edges.csv", ["source", "target"], *([n, (n + 3) % 30] for n in range(30)))
    assert eg.open_graph(tmp_path).class_names == ("1", "2", "none")


def test_more_rows_are_explained_with_the_stored_encoder(model, shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    more = [{**rows[0], "account": f"late-{n}", "amount": "900"} for n in range(40)]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(r.values()) for r in [*rows, *more]))
    assert call("explain", "model", "a-003") == 0
    assert "steps away" in capsys.readouterr().out


def test_a_score_that_is_undefined_does_not_lose_the_model(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["kind"] = "fraud" if row["kind"] == "fraud" else "honest"
        row["split"] = "train" if row["kind"] == "fraud" else ("train", "val", "test")[place % 3]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("run", "shop", *COLUMNS, *FAST, "--save", "model") == 0
    assert eg.load_model("model").extra_["test"]["positive_average_precision"] is None


def test_time_that_is_named_goes_before_a_split_that_is_guessed(shop):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["split"] = ("train", "val", "test")[place % 3]
        row["since"] = f"2024-01-{1 + place % 28:02d}"
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("run", "shop", *COLUMNS, "--time-column", "since", "--out", "out", *FAST) == 0
    result = json.loads((shop / "out" / "result.json").read_text())
    assert result["imbalance"]["name"] == "bytime"


def test_new_nodes_without_their_ids(model, shop, capsys):
    write(shop / "n.csv", ["amount", "country"], [5, "DE"])
    write(shop / "e.csv", ["from", "to"], ["a-000", "a-001"])
    assert call("predict", "model", "n.csv", "e.csv", "--known", "shop") == 2
    assert "no column 'account'" in capsys.readouterr().err


def test_tables_without_labels_cannot_be_learnt_from(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    for row in rows:
        del row["kind"]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("run", "shop", "--id", "account", "--out", "out") == 2
    assert "label" in capsys.readouterr().err
    assert not (shop / "out").exists()


@pytest.mark.parametrize("command", ["inspect", "run", "compare"])
def test_a_label_that_nobody_named_is_asked_for(command, shop, capsys):
    assert call(command, "shop", "--id", "account") == 2
    told = capsys.readouterr().err
    assert (
        "set label to the column with the classes, perhaps 'kind' or 'country'. Option: --label"
        in (" ".join(told.split()))
    )


def test_an_error_names_the_option_that_fixes_it(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    spent = [str(index) for index in range(len(rows) - 1)] + ["much"]
    rows = [row | {"spent a month": value} for row, value in zip(rows, spent, strict=True)]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("run", "shop", *COLUMNS) == 2
    assert capsys.readouterr().err.endswith("drop the column. Option: --drop 'spent a month'\n")


def test_columns_can_be_left_out(shop, capsys):
    assert call("run", "shop", *COLUMNS, *FAST, "--drop", "country", "--save", "model") == 0
    names = eg.load_model("model").extra_["columns"]["features"]
    assert names == ["amount"]
    assert call("inspect", "shop", *COLUMNS, "--drop", "colour") == 2
    assert "colour" in capsys.readouterr().err


def test_a_missing_column_is_seen_beside_a_known_graph_too(model, shop, capsys):
    write(shop / "n.csv", ["account", "country"], ["new-1", "DE"])
    write(shop / "e.csv", ["from", "to"], ["new-1", "a-000"])
    assert call("predict", "model", "n.csv", "e.csv", "--known", "shop") == 2
    assert "n.csv has no column 'amount'" in capsys.readouterr().err


def test_a_row_has_its_own_number_beside_a_known_graph_too(model, shop, capsys):
    write(shop / "n.csv", ["account", "amount", "country"], ["new-1", "lots", "DE"])
    write(shop / "e.csv", ["from", "to"], ["new-1", "a-000"])
    assert call("predict", "model", "n.csv", "e.csv", "--known", "shop") == 2
    assert "n.csv, column 'amount', row 1 holds 'lots'" in capsys.readouterr().err
    write(shop / "n.csv", ["account", "amount", "country"], ["new-1", "2", "DE"])
    write(shop / "e.csv", ["from", "to"], ["new-1", "nobody"])
    assert call("predict", "model", "n.csv", "e.csv", "--known", "shop") == 2
    assert "e.csv, column 'to', row 1 names 'nobody'" in capsys.readouterr().err


def test_edges_to_old_nodes_ask_for_the_known_graph(model, shop, capsys):
    write(shop / "n.csv", ["account", "amount", "country"], ["new-1", "2", "DE"])
    write(shop / "e.csv", ["from", "to"], ["new-1", "a-000"])
    assert call("predict", "model", "n.csv", "e.csv") == 2
    assert "--known" in capsys.readouterr().err


def test_two_classes_are_flagged_by_the_threshold_of_validation(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    for row in rows:
        row["kind"] = "fraud" if row["kind"] == "fraud" else row["kind"] and "honest"
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("run", "shop", *COLUMNS, *FAST, "--save", "model") == 0
    flag = eg.load_model("model").extra_["flag"]
    assert call("predict", "model", "shop/nodes.csv", "shop/edges.csv", "--out", "p.csv") == 0
    for row in read(shop / "p.csv"):
        sure = float(row["p_fraud"]) - flag["from"]
        assert abs(sure) < 1e-5 or row["flagged"] == ("yes" if sure > 0 else "no")


def test_class_names_that_were_changed_are_noticed(model, shop, capsys):
    path = model / "model.json"
    path.write_text(path.read_text().replace("fraud", "fr4ud"))
    assert call("predict", "model", "shop/nodes.csv", "shop/edges.csv") == 2
    assert "damaged" in capsys.readouterr().err


def test_a_picture_is_an_svg_file(model, capsys):
    assert call("explain", "model", "a-003", "--out", "why.png") == 2
    assert ".svg" in capsys.readouterr().err
