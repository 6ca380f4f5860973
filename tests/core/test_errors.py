"""Errors of input: the message, the argument that fixes it, the name that was meant."""

import pandas as pd
import pytest

import evengraph as eg
from evengraph.core import errors
from evengraph.lab.spec import read_spec
from evengraph.lab.store import Store


def test_the_nearest_name_is_offered():
    assert "Did you mean beta?" in errors.unknown("letter", "bta", ["alpha", "beta"])
    assert "Did you mean" not in errors.unknown("letter", "qqq", ["alpha", "beta"])


@pytest.mark.parametrize("name", ["trees", "Tree", "xg-boost", "XGBOOST", "boosting"])
def test_names_that_others_use_lead_to_ours(name):
    others = {"trees": "boosting", "xgboost": "boosting"}
    assert "Did you mean boosting?" in errors.unknown("method", name, ["gcn", "boosting"], others)


def test_texts_in_messages_are_short_and_on_one_line():
    assert errors.first_line(ValueError("one.\ntwo")) == "one"
    assert errors.first_line(EOFError()) == "EOFError"
    assert errors.listed(["a", 2]) == "a, 2"
    assert errors.listed([]) == "none"
    assert len(errors.listed(range(100_000))) == 1000
    assert errors.short("a\nb") == "'a\\nb'"
    assert errors.short("x" * 500) == "'" + "x" * 76 + "..."
    assert errors.short(10**5000) == "a number of more than 4300 digits"
    assert len(errors.unknown("key", "x" * 10**6, ["title"])) < 200


def test_names_in_messages_do_not_break_the_line():
    with pytest.raises(errors.ArgumentError) as found, errors.one_line_errors():
        raise errors.ArgumentError("a\nb\x1b[2J.csv is empty.\r", argument="edges")
    assert str(found.value) == r"a\nb\x1b[2J.csv is empty.\x0d"
    assert found.value.argument == "edges"

    @errors.one_line_errors()
    def open_folder():
        raise FileNotFoundError(2, "none", "a\nb")

    with pytest.raises(FileNotFoundError) as missing:
        open_folder()
    assert (missing.value.errno, missing.value.filename) == (2, "a\nb")


HOSTILE = "a\nb\x1b]0;t\x07\x1b[2J\u202e"


def _fail(kind, folder):
    """Open a damaged file of some kind in a folder with a hostile name."""
    if kind == "store":
        (folder / "s.sqlite").write_text("x" * 600)
        Store(folder / "s.sqlite")
    elif kind == "store below a file":
        (folder / "s").write_text("")
        Store(folder / "s" / "s.sqlite")
    elif kind == "spec":
        (folder / "s.toml").write_text("seeds = [")
        read_spec(str(folder / "s.toml"))
    elif kind == "model":
        (folder / "model.json").write_text("{")
        eg.TableModel.load(folder)
    elif kind == "packed":
        (folder / "graph.json").write_text("{")
        eg.open_graph(folder)
    elif kind == "tables":
        (folder / "nodes.csv").write_text("id,id\n1,2\n")
        eg.open_graph(folder)
    elif kind == "columns":
        table = pd.DataFrame({f"{HOSTILE}": [1.0, 2.0], "id": [1, 2]})
        eg.from_frames(table, pd.DataFrame({"source": [1]}), label=f"{HOSTILE}x")
    else:
        (folder / f"g{kind}").write_text("<")
        eg.open_graph(folder / f"g{kind}")


KINDS = [".npz", ".pt", ".graphml", "tables", "columns", "store", "store below a file", "spec"]


@pytest.mark.parametrize("kind", [*KINDS, "model", "packed"])
def test_foreign_names_are_printable_in_errors_of_the_library(tmp_path, kind):
    (folder := tmp_path / HOSTILE).mkdir()
    with pytest.raises((ValueError, OSError)) as found:
        _fail(kind, folder)
    text = str(found.value)
    assert text.isprintable(), text
    assert r"\x1b" in text
