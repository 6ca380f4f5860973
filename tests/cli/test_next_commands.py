"""The commands that inspect prints, pasted."""

import json
import random
import shlex

import pytest
import torch
from command_line import COLUMNS, call, read, write

import evengraph as eg

FAST = ["--method", "logistic", "--splits", "5-5"]


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
    assert call(*run[1:], *FAST) == 0
    assert "0 " in capsys.readouterr().out
    assert predict[2:] == ["model", GIVEN[0], "follows.csv", "--out", "predictions.csv"]
    assert call(*predict[1:]) == 0
    assert {row["new_id"] for row in read(raw / "predictions.csv")} == {str(i) for i in range(90)}
    assert (
        call(*compare[1 : len(words) + 2], "--method", "logistic,labelpropagation", "--splits", "2")
        == 0
    )


def test_a_class_that_may_mean_unlabelled_is_asked_about_first(raw, capsys):
    again, run, _, compare = commands(*GIVEN[:5], *ENDS, capsys=capsys)
    assert [again[1], run[1], compare[1]] == ["inspect", "run", "compare"]
    for command in (again, run, compare):
        assert command[command.index("--unlabelled") + 1] == "-1"
    assert [command[1] for command in commands(*again[2:], capsys=capsys)] == [
        "run",
        "predict",
        "compare",
    ]


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


def test_lists_and_several_edges_tables_reach_predict(raw, capsys):
    lists = {node: [f"game {node % 7}"] for node in range(90)}
    (raw / "games.json").write_text(json.dumps(lists))
    (raw / "calls.csv").write_text((raw / "follows.csv").read_text())
    given = [*GIVEN[:2], "follows.csv,calls.csv", *GIVEN[3:], *ENDS, "--lists", "games.json"]
    run, predict, _ = commands(*given, capsys=capsys)
    assert call(*run[1:], *FAST) == 0
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


def test_items_that_copy_the_label_are_named_and_dropped(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    rows = "".join(f"{i},{i % 10 > 0}\n" for i in range(300))
    (tmp_path / "own" / "nodes.csv").write_text(f"id,kind\n{rows}")
    lists = {i: ["n" if i % 10 else "y", f"p{i % 7}", f"q{i % 11}"] for i in range(300)}
    (tmp_path / "own" / "features.json").write_text(json.dumps(lists))
    ends = "".join(f"{i},{i + 1}\n" for i in range(299))
    (tmp_path / "own" / "edges.csv").write_text(f"source,target\n{ends}")
    run, _, compare = commands("own", "--label", "kind", capsys=capsys)
    assert run[run.index("--drop") + 1] == "features.json=n,features.json=y"
    assert compare[-2:] == ["--metric", "positive_average_precision"]
    assert call(*run[1:-2], "--method", "logistic", "--splits", "5-5") == 0
