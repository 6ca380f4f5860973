"""evengraph inspect, and how tables of users are opened."""

import json
import random
import shlex
from xml.etree import ElementTree

import pytest
import torch

import evengraph as eg
from command_line import COLUMNS, FAST, call, read, rewrite, write


def test_inspect_shows_and_writes(tmp_path, capsys):
    assert call("inspect", "toy", "--out", str(tmp_path / "look")) == 0
    shown = capsys.readouterr().out
    for word in ("toy", "class 4", "Recommendation:", "the default", "inspect.html"):
        assert word in shown
    found = json.loads((tmp_path / "look" / "inspect.json").read_text())
    assert found["labels"]["num_labelled"] == 2000
    assert found["reach"]["hops"] == 4
    assert "Inspection of toy" in (tmp_path / "look" / "inspect.html").read_text()
    names = sorted(path.name for path in (tmp_path / "look").iterdir())
    assert names == ["inspect.html", "inspect.json"]


def test_inspect_prints_json_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call("inspect", "toy", "--json", "--hops", "2") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "toy"
    assert found["labels"]["labelled_share"] == 1.0
    assert not list(tmp_path.iterdir())


def test_looking_first_names_classes_and_leaks(shop, capsys):
    rewrite(shop / "shop" / "nodes.csv", lambda place, row: {"copy": row["kind"]})
    assert call("inspect", "shop", *COLUMNS, "--out", "look") == 0
    assert "fraud" in capsys.readouterr().out
    found = json.loads((shop / "look" / "inspect.json").read_text())
    assert any("copy" in json.dumps(leak) for leak in found["leaks"])
    assert found["commands"][0].endswith("--drop copy --save model")
    assert call("run", "shop", *COLUMNS, *LOGISTIC, "--out", "result") == 0
    assert "Warning: Column 'copy=honest' alone almost determines" in capsys.readouterr().err
    assert call("inspect", "shop", *COLUMNS, "--drop", "copy", "--out", "look") == 0
    assert not json.loads((shop / "look" / "inspect.json").read_text())["leaks"]


LOGISTIC = ["--method", "logistic", "--splits", "5-5"]


def commands(*words, capsys):
    """What inspect prints after "Next:", split as a shell does."""
    assert call("inspect", *words) == 0
    lines = capsys.readouterr().out.splitlines()
    return [shlex.split(line) for line in lines[lines.index("Next:") + 1 :]]


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """Tables as they come: two ids, a space in names, -1 for unlabelled, a copy of the label."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    order = draw.sample(range(90), 90)
    nodes = [["id", "what kind", "views", "closed", "new_id"]]
    for row, new in enumerate(order):
        kind = -1 if row % 5 == 0 else int(row % 4 == 0)
        closed = "" if kind == -1 else ["no", "yes"][kind]
        nodes.append([70_000 + 3 * row, kind, 10 ** draw.uniform(0, 8), closed, new])
    write(tmp_path / "all users.csv", *nodes)
    pairs = [[place, "x", draw.randrange(90)] for place in range(90) for _ in range(2)]
    write(tmp_path / "follows.csv", ["who", "how", "whom"], *pairs)
    return tmp_path


GIVEN = ["all users.csv", "--edges", "follows.csv", "--label", "what kind", "--unlabelled", "-1"]
ENDS = ["--source", "who", "--target", "whom"]


def test_commands_on_raw_tables_run_as_printed(raw, capsys):
    run, predict, compare = commands(*GIVEN, *ENDS, capsys=capsys)
    words = [*GIVEN, *ENDS, "--id", "new_id", "--drop", "closed"]
    assert sorted(run[2:]) == sorted([*words, "--save", "model"])
    assert compare[:2] == ["evengraph", "compare"]
    assert sorted(compare[2 : len(words) + 2]) == sorted(words)
    assert call(*run[1:], *LOGISTIC) == 0
    assert "0 " in capsys.readouterr().out
    assert predict[2:] == ["model", GIVEN[0], "follows.csv", "--out", "predictions.csv"]
    assert call(*predict[1:]) == 0
    assert {row["new_id"] for row in read(raw / "predictions.csv")} == {str(i) for i in range(90)}
    quick = ["--method", "logistic,labelpropagation", "--splits", "2"]
    assert call(*compare[1 : len(words) + 2], *quick) == 0


def test_a_class_that_may_mean_unlabelled_is_asked_about_first(raw, capsys):
    again, run, _, compare = commands(*GIVEN[:5], *ENDS, capsys=capsys)
    assert [again[1], run[1], compare[1]] == ["inspect", "run", "compare"]
    for command in (again, run, compare):
        assert command[command.index("--unlabelled") + 1] == "-1"
    names = [command[1] for command in commands(*again[2:], capsys=capsys)]
    assert names == ["run", "predict", "compare"]


def test_ends_that_were_guessed_are_named(raw, capsys):
    run = commands(*GIVEN, "--drop", "closed", "--source", "who", "--target", "whom", capsys=capsys)
    assert run[0].count("--source") == 1
    pairs = [["who", "whom", "how"], *([str(i), str((i * 7 + 1) % 90), "x"] for i in range(90))]
    write(raw / "follows.csv", *pairs)
    run, *_ = commands(*GIVEN, "--drop", "closed", capsys=capsys)
    for flag, name in zip(ENDS[::2], ENDS[1::2], strict=True):
        assert run[run.index(flag) + 1] == name


def test_a_folder_with_usual_names_needs_no_more_than_was_given(shop, capsys):
    run, predict, compare = commands("shop", *COLUMNS, capsys=capsys)
    assert run == ["evengraph", "run", "shop", *COLUMNS, "--save", "model"]
    assert predict[2:4] == ["model", "shop"]
    assert compare[:7] == ["evengraph", "compare", "shop", *COLUMNS]
    found = commands("shop", "--label", "kind", capsys=capsys)[0]
    assert found == run  # account is found by the edges


def test_several_edges_tables_reach_predict(raw, capsys):
    (raw / "calls.csv").write_text((raw / "follows.csv").read_text())
    given = [*GIVEN[:2], "follows.csv,calls.csv", *GIVEN[3:], *ENDS]
    run, predict, _ = commands(*given, capsys=capsys)
    assert call(*run[1:], *LOGISTIC) == 0
    assert call(*predict[1:]) == 0


def test_predict_takes_the_folder_or_the_file_that_inspect_took(shop, capsys):
    (shop / "shop" / "edges.csv").rename(shop / "shop" / "edges_card.csv")
    assert commands("shop", *COLUMNS, capsys=capsys)[1][2:4] == ["model", "shop"]
    graph = eg.load("toy")
    torch.save({"x": graph.x, "edge_index": graph.edge_index, "y": graph.y}, "toy.pt")
    assert commands("toy.pt", capsys=capsys)[1][2:4] == ["model", "toy.pt"]


def test_data_sets_and_their_json(capsys):
    assert commands("toy", capsys=capsys) == [
        ["evengraph", "run", "toy"],
        ["evengraph", "compare", "toy"],
    ]
    assert call("inspect", "toy", "--json") == 0
    assert json.loads(capsys.readouterr().out)["commands"][0] == "evengraph run toy"


def test_what_is_replaced_is_said(shop, capsys):
    files = ["out/result.json", "out/report.html", "out/predictions.csv"]
    for word, model in (("wrote", "wrote model"), ("replaced", "replaced the model in model")):
        assert call("run", "shop", *COLUMNS, *FAST, "--save", "model", "--out", "out") == 0
        lines = capsys.readouterr().out.splitlines()
        said = {one.split(":")[0] for one in lines if one.startswith(("wrote", "replaced"))}
        assert said == {model, *(f"{word} {file}" for file in files)}


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


def test_a_column_that_is_half_numbers_is_told(shop, capsys):
    values = ("1.0", "2.0", "low")
    rewrite(shop / "shop" / "nodes.csv", lambda place, row: {"income": values[place % 3]})
    line = (
        "Column 'income': 40 of 120 cells are not numbers (first: 'low' in row 3, 'low' in row 6, "
        "'low' in row 9), so it is treated as categories."
    )
    short = ["--method", "gcn", "--splits", "1", "--set", "max_epochs=2"]
    for words in (["inspect"], ["run", *FAST], ["compare", *short]):
        assert call(words[0], "shop", *COLUMNS, *words[1:]) == 0
        assert capsys.readouterr().err.splitlines().count(line) == 1


def test_a_score_that_is_undefined_does_not_lose_the_model(shop, capsys):
    def change(place, row):
        if row["kind"] == "fraud":
            return {"split": "train"}
        return {"kind": "honest", "split": ("train", "val", "test")[place % 3]}

    rewrite(shop / "shop" / "nodes.csv", change)
    assert call("run", "shop", *COLUMNS, *FAST, "--save", "model") == 0
    assert eg.load_model("model").extra_["test"]["positive_average_precision"] is None


def test_an_error_names_the_option_that_fixes_it(shop, capsys):
    column = "spent a month"
    last = len(read(shop / "shop" / "nodes.csv")) - 1
    rewrite(shop / "shop" / "nodes.csv", lambda n, row: {column: "much" if n == last else n})
    assert call("run", "shop", *COLUMNS) == 2
    assert capsys.readouterr().err.endswith("drop the column. Option: --drop 'spent a month'\n")
    assert call("run", "shop", *COLUMNS, "--drop", "spent a month", "--split", "given") == 2
    assert capsys.readouterr().err.endswith("Option: --split-column\n")


def test_a_class_without_validation_nodes_is_announced(shop, capsys):
    def change(place, row):
        parts = ["train", "test"] if row["kind"] == "fraud" else ["train", "val", "test"]
        return {"part": parts[place % len(parts)] if row["kind"] else ""}

    rewrite(shop / "shop" / "nodes.csv", change)
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
    assert call("inspect", "shop") == 2
    assert "Or give both tables: nodes and edges." in " ".join(capsys.readouterr().err.split())


ODD = "\x1b]0;t\x07\x1b[2J[/b][@a=b(]"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "x[@a=b(]y"
    folder.mkdir()
    rows = [[f"{ODD}{i}", i % 7, f"{ODD}{i % 2}", f"{'ab'[i % 2]}{ODD}"] for i in range(40)]
    write(folder / "nodes.csv", ["id", "age", f"{ODD}colour", "label"], *rows)
    edges = [[f"{ODD}{i}", f"{ODD}{(i * 3 + 1) % 40}"] for i in range(40)]
    write(folder / "edges.csv", ["source", "target"], *edges)
    return folder


def test_no_command_acts_upon_names(folder, tmp_path, capsys):
    fast = ["--method", "gcn", "--set", "max_epochs=2", "--splits", "1-1"]
    commands = [
        ["inspect", folder.name],
        ["run", folder.name, *fast, "--out", "out[/]", "--save", "model[/b]"],
        ["predict", "model[/b]", folder.name, "--out", "p[/].csv"],
        ["explain", "model[/b]", f"{ODD}3", "--out", "figure.svg"],
    ]
    for command in commands:
        status = call(*command)
        text = "".join(capsys.readouterr())
        assert status == 0, text
        assert not {"\x1b", "\x07"} & set(text), command
        assert "Traceback" not in text
    ElementTree.parse(tmp_path / "figure.svg")
    page = (tmp_path / "out[/]" / "report.html").read_text(encoding="utf-8")
    assert not {"\x1b", "\x07"} & set(page)


@pytest.mark.parametrize(
    "command", [["inspect"], ["results"], ["reproduce"], ["predict", "model"], ["run"]]
)
def test_a_newline_in_a_path_keeps_errors_on_one_line(command, tmp_path, capsys):
    name = "a\nb.toml" if command == ["reproduce"] else "a\nb"
    assert call(*command, tmp_path / name) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Traceback" not in line
