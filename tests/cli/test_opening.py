"""A user's tables as DATA of inspect, run and compare: columns, splits, notes and errors."""

import json

import pytest
from command_line import COLUMNS, FAST, call, read, write

import evengraph as eg


def test_the_kept_model_has_its_own_figure(shop, capsys):
    words = [*FAST[:-1], "5,6", "--save", "model", "--out", "out"]
    assert call("run", "shop", *COLUMNS, *words) == 0
    runs = json.loads((shop / "out" / "result.json").read_text())["runs"]
    scores = {one["seed"]: f"{one['metrics']['balanced_accuracy']:.1f}" for one in runs}
    (line,) = [one for one in capsys.readouterr().out.splitlines() if "wrote model" in one]
    seed = int(line.split("of seed ")[1].split(",")[0])
    assert f"balanced accuracy {scores[seed]} on its test nodes" in line


def test_what_is_replaced_is_said(shop, capsys):
    compared = ["--method", "gcn", "--splits", "1", "--set", "max_epochs=2", "--out", "c"]
    several = ["--method", "gcn,reweight", "--set", "max_epochs=2", "--splits", "5-5", "--out", "s"]
    first = {
        "wrote out/result.json",
        "wrote out/report.html",
        "wrote model",
        "wrote s/comparison.html",
    }
    first |= {"wrote c/comparison.html", "wrote out/predictions.csv"}
    again = {line.replace("wrote", "replaced") for line in first} - {"replaced model"}
    for expected in (first, again | {"replaced the model in model"}):
        assert call("run", "shop", *COLUMNS, *FAST, "--save", "model", "--out", "out") == 0
        assert call("compare", "shop", *COLUMNS, *compared) == 0
        assert call("run", "shop", *COLUMNS, *several) == 0
        lines = capsys.readouterr().out.splitlines()
        said = {one.split(":")[0] for one in lines if one.startswith(("wrote", "replaced"))}
        assert said == expected


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
    words = ["--method", "gcn,reweight", "--splits", "2", "--set", "max_epochs=5"]
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
        (["compare", "shop", *COLUMNS, "--method", "gnc"], ["gnc", "gcn"]),
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


def test_a_column_that_is_half_numbers_is_told(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["income"] = ("1.0", "2.0", "low")[place % 3]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    line = (
        "Column 'income': 40 of 120 cells are not numbers (first: 'low' in row 3, 'low' in row 6, "
        "'low' in row 9), so it is treated as categories."
    )
    short = ["--method", "gcn", "--splits", "1", "--set", "max_epochs=2"]
    for words in (["inspect"], ["run", *FAST], ["compare", *short]):
        assert call(words[0], "shop", *COLUMNS, *words[1:]) == 0
        assert capsys.readouterr().err.splitlines().count(line) == 1


def test_a_label_that_is_the_word_none_stays_a_class(tmp_path):
    rows = [[str(n), ("none", "1", "2")[n % 3]] for n in range(30)]
    write(tmp_path / "nodes.csv", ["id", "label"], *rows)
    write(tmp_path / "edges.csv", ["source", "target"], *([n, (n + 3) % 30] for n in range(30)))
    assert eg.open_graph(tmp_path).class_names == ("1", "2", "none")


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
    assert call("run", "shop", *COLUMNS, "--drop", "spent a month", "--split", "given") == 2
    assert capsys.readouterr().err.endswith("Option: --split-column\n")


def test_columns_can_be_left_out(shop, capsys):
    assert call("run", "shop", *COLUMNS, *FAST, "--drop", "country", "--save", "model") == 0
    names = eg.load_model("model").extra_["columns"]["features"]
    assert names == ["amount"]
    assert call("inspect", "shop", *COLUMNS, "--drop", "colour") == 2
    assert "colour" in capsys.readouterr().err


def test_a_class_without_validation_nodes_is_announced(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    part = {"fraud": ["train", "test"], "honest": ["train", "val", "test"]}
    for place, row in enumerate(rows):
        kinds = part.get(row["kind"], part["honest"])
        row["part"] = kinds[place % len(kinds)] if row["kind"] else ""
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    words = [*COLUMNS, "--split-column", "part", "--set", "max_epochs=2"]
    warning = "Warning: no validation node is of class fraud: the best epoch and model"
    assert call("run", "shop", *words, "--method", "gcn", "--splits", "5-5") == 0
    assert warning in capsys.readouterr().err
    assert call("compare", "shop", *words, "--method", "gcn", "--splits", "1") == 0
    assert warning in capsys.readouterr().err
    assert call("run", "shop", *COLUMNS, *FAST) == 0
    assert "no validation node" not in capsys.readouterr().err


def test_a_folder_of_other_names_is_told_how_to_name_the_tables(shop, capsys):
    (shop / "shop" / "nodes.csv").rename(shop / "shop" / "accounts.csv")
    (shop / "shop" / "edges.csv").rename(shop / "shop" / "transfers.csv")
    wanted = "Or pass both tables: shop/accounts.csv --edges shop/transfers.csv"
    (shop / "shop" / "old.csv").symlink_to("moved.csv")  # which is gone
    (shop / "shop" / "transfers.csv").write_text("a,b\n" + "1,2\n" * 50)
    for table in ("a,b\n" + "1,2\n" * 10, "a,b,c\n" + "1,2,a long text\n" * 50):
        (shop / "shop" / "accounts.csv").write_text(table)
        assert call("inspect", "shop") == 2
        assert wanted in " ".join(capsys.readouterr().err.split())
