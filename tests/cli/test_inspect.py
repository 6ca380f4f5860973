import json

import pytest
from command_line import COLUMNS, call, read, write


def test_inspect_shows_and_writes(tmp_path, capsys):
    assert call("inspect", "toy", "--labelled", "0.1", "--out", str(tmp_path / "look")) == 0
    shown = capsys.readouterr().out
    for word in ("toy", "class 4", "≤4", "Recommendation:", "the default", "inspect.html"):
        assert word in shown
    found = json.loads((tmp_path / "look" / "inspect.json").read_text())
    assert found["labels"]["num_labelled"] == 199
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


def test_inspect_sees_what_a_protocol_trains_on(capsys):
    words = ["--split", "step", "--minority", "2", "--ratio", "0.2", "--json"]
    assert call("inspect", "toy", *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["labels"]["labelled"]) == [4, 4, 20, 20, 20]


def test_the_seed_draws_the_labels(capsys):
    seen = []
    for seed in ("5", "5", "6"):
        assert call("inspect", "toy", "--labelled", "0.05", "--seed", seed, "--json") == 0
        seen.append(json.loads(capsys.readouterr().out)["reach"])
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["coraa"], "coraa"),
        (["toy", "--labelled", "2"], "between 0 and 1, got 2"),
        (["toy", "--labelled", "0.1", "--split", "step"], "not both"),
        (["toy", "--minority", "2"], "--minority needs --split"),
        (["toy", "--split", "steps"], "longtail"),
        (["toy", "--split", "natural", "--minority", "2"], "natural has no --minority"),
        (["toy", "--hops", "0"], "hops must be at least 1"),
    ],
)
def test_mistakes_are_one_line(words, told, tmp_path, capsys):
    assert call("inspect", *words, "--out", str(tmp_path / "look")) == 2
    shown = capsys.readouterr()
    assert told in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.out == ""
    assert not (tmp_path / "look").exists()


def test_looking_first_names_classes_and_leaks(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    for row in rows:
        row["copy"] = row["kind"]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("inspect", "shop", *COLUMNS, "--out", "look") == 0
    assert "fraud" in capsys.readouterr().out
    found = json.loads((shop / "look" / "inspect.json").read_text())
    assert any("copy" in json.dumps(leak) for leak in found["leaks"])
    assert found["commands"][0].endswith("--drop copy --save model")
    assert call("inspect", "shop", *COLUMNS, "--drop", "copy", "--out", "look") == 0
    assert not json.loads((shop / "look" / "inspect.json").read_text())["leaks"]


def test_empty_buckets_of_text_are_no_finding(shop):
    rows = read(shop / "shop" / "nodes.csv")
    for place, row in enumerate(rows):
        row["about"] = f"sells shoes and a{place} b{place}"
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    assert call("inspect", "shop", *COLUMNS, "--out", "look") == 0
    found = json.loads((shop / "look" / "inspect.json").read_text())
    assert found["features"]["hashed"] == 256
    assert not any("the same value for every node" in one["text"] for one in found["findings"])
    page = (shop / "look" / "inspect.html").read_text(encoding="utf-8")
    assert "of these, hashed text" in page
