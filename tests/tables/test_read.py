"""Files to tables: what a cell becomes, and what is wrong with a file."""

import csv
import gzip
import io
import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.csv import ReadOptions

from evengraph.core import untrusted as limits
from evengraph.tables import read, read_table
from evengraph.tables.cells import canonical_names, column_kind, to_numbers, to_signs
from evengraph.tables.read import csv_header, read_lists

WRITERS = {
    "t.csv": lambda table, path: table.to_csv(path, index=False),
    "t.csv.gz": lambda table, path: table.to_csv(path, index=False),
    "T.CSV": lambda table, path: table.to_csv(path, index=False),
    "t.tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "t.jsonl": lambda table, path: table.to_json(path, orient="records", lines=True),
    "t.ndjson.gz": lambda table, path: table.to_json(path, orient="records", lines=True),
    "t.parquet": lambda table, path: table.to_parquet(path),
}


@pytest.fixture
def write(tmp_path):
    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_table_back(tmp_path, name):
    table = pd.DataFrame(
        {
            "id": ["007", "010", "x"],
            "n": [1, 2, 3],
            "f": [1.5, None, -2.0],
            "t": ["a, b; c", 'say "=1+1"', "é\ttab"],
            "b": [True, False, True],
        }
    )
    WRITERS[name](table, tmp_path / name)
    found = read_table(tmp_path / name)
    assert found.attrs["file"] == str(tmp_path / name)
    assert list(found.columns) == list(table.columns)
    assert canonical_names(found["id"]).tolist() == ["007", "010", "x"]
    assert canonical_names(found["n"]).tolist() == ["1", "2", "3"]
    assert found["t"].tolist() == table["t"].tolist()
    assert [column_kind(found[column], "t") for column in "nftb"] == [
        "number",
        "number",
        "text",
        "boolean",
    ]
    assert to_numbers(found["f"], "t").tolist() == pytest.approx([1.5, np.nan, -2.0], nan_ok=True)
    assert to_signs(found["b"], "t").tolist() == [1, -1, 1]


def test_cells_of_csv_stay_as_they_stand(write):
    found = read_table(write("id,n,b\n007,1.50,true\n1e5,2,maybe\n12345678901234567890,3,\n"))
    assert found["id"].tolist() == ["007", "1e5", "12345678901234567890"]
    assert found["n"].tolist() == ["1.50", "2", "3"]
    assert found["b"].tolist()[:2] == ["true", "maybe"]
    assert found["b"].isna().tolist() == [False, False, True]


def test_a_formula_is_text(write):
    found = read_table(write('id,v\n1,=1+1\n2,"=HYPERLINK(""x"")"\n3,@SUM(A1)\n'))
    assert found["v"].tolist() == ["=1+1", '=HYPERLINK("x")', "@SUM(A1)"]


def test_words_for_nothing(write):
    found = read_table(write("id,n,b\nNA,1,true\nNO,NA,\nnull,nan,FALSE\n"))
    assert found["id"].tolist() == ["NA", "NO", "null"]  # the code of Namibia, not a gap
    assert np.isnan(to_numbers(found["n"], "t")).tolist() == [False, True, True]
    assert to_signs(found["b"], "t").tolist() == [1, 0, -1]


def test_semicolons_and_decimal_commas(write):
    found = read_table(write('id;"a,b,c";n\nx;1;1,5\ny;2;-2\n'))
    assert list(found.columns) == ["id", "a,b,c", "n"]
    assert to_numbers(found["n"], "t").tolist() == [1.5, -2]
    assert read_table(write("id;t\nx;1,5\ny;a,b\n"))["t"].tolist() == ["1,5", "a,b"]
    assert read_table(write("id\tn\na\t1\n"))["n"].tolist() == ["1"]


def test_small_things_of_text_files(write):
    found = read_table(write(b"\xef\xbb\xbfid, n\r\n\r\na, 1\r\n\r\nb, 2\r\n"))
    assert list(found.columns) == ["id", "n"]
    assert found["n"].tolist() == ["1", "2"]
    assert read_table(write("id,n\na,1\n   \nb,2\n \n"))["n"].tolist() == ["1", "2"]
    assert read_table(write("\tn\n0\t5\n"))["n"].tolist() == ["5"]
    assert len(read_table(write(f"t\n{'x' * 200_000}\n"))["t"][0]) == 200_000
    line = '{"t": "a\u2028b"}'
    assert read_table(write(line, "t.jsonl"))["t"].tolist() == ["a\u2028b"]
    assert len(read_table(write("id,n\n"))) == 0
    assert list(read_table(write(",n\n0,5\n")).columns) == ["Unnamed: 0", "n"]
    assert read_table(write('id,t\n1,"two\nlines"\n'))["t"].tolist() == ["two\nlines"]


def test_json_lines_with_gaps(write):
    found = read_table(write('{"id": "01", "n": 1}\n\n{"id": "2", "m": null}\n', "t.jsonl"))
    assert found["id"].tolist() == ["01", "2"]
    assert found["n"].isna().tolist() == [False, True]


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1),
            st.integers(-(2**40), 2**40),
        ),
        min_size=1,
    )
)
def test_text_comes_back(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("word", "n"), *rows])
        found = read_table(path)
    assert found["n"].tolist() == [str(n) for _, n in rows]
    words = ["" if pd.isna(word) else word.strip() for word in found["word"]]
    assert words == [word.strip() for word, _ in rows]


BAD = {
    "empty": (b"", "t.csv", "t.csv is empty."),
    "blank": (b" \n\n", "t.csv", "t.csv is empty."),
    "latin-1": ("id,n\nx,1\né,2\n".encode("latin-1"), "t.csv", "line 3: byte 0xe9 is not UTF-8"),
    "utf-16": ("id,n\nx,1\n".encode("utf-16"), "t.csv", "is UTF-16 text; save it as UTF-8."),
    "zero byte": (b"id,n\nx,\0\n", "t.csv", "line 2 holds a zero byte"),
    "too many cells": (b"id,n\nx,1\ny,2,3\n", "t.csv", "line 3 has 3 cells, the first line has 2"),
    "too few cells": (b"id,n\nx,1\ny\n", "t.csv", "line 3 has 1 cell, the first line has 2"),
    "more in every row": (b"id,n\nx,1,5\ny,2,6\n", "t.csv", "line 2 has 3 cells"),
    "open quote": (b'id,n\nx,"1\ny,2\nz,3\n', "t.csv", "row 1; is a quote not closed?"),
    "open quote after others": (b'id,n\nx,"1"\ny,"2\n', "t.csv", "row 2; is a quote not closed?"),
    "column twice": (b"id,id\nx,1\n", "t.csv", "has two columns called 'id'"),
    "no gzip": (b"id,n\n", "t.csv.gz", "cannot be unpacked"),
    "half a gzip": (gzip.compress(b"id,n\n" * 99)[:-9], "t.csv.gz", "cannot be unpacked"),
    "no JSON": (b'{"a": 1}\n{"a": \n', "t.jsonl", "line 2 is not JSON"),
    "no object": (b'{"a": 1}\n[1]\n', "t.jsonl", "line 2 must be an object"),
    "empty Parquet": (b"", "t.parquet", "t.parquet is empty."),
    "no Parquet": (b"id,n\n", "t.parquet", "cannot be read as Parquet"),
    "spreadsheet": (b"PK", "t.xlsx", "t.xlsx is a spreadsheet; save its sheet as CSV"),
    "no table": (b"", "t.txt", "cannot be read as a table; its name must end in .csv, .tsv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(write, case):
    content, name, message = BAD[case]
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_table(write(content, name))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


CELLS = st.text(st.sampled_from('ab1 ,;"\n\r\té'), max_size=4)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5), st.sampled_from([",", ";"]))
def test_both_readers_of_csv_agree(rows, separator):
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows([("word", "n"), *rows])
    tables = []
    for reader in (read._read_plain_csv, lambda *_: None):
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
            patch.setattr(read, "_read_plain_csv", reader)
            path = Path(folder) / "t.csv"
            path.write_text(text.getvalue(), encoding="utf-8", newline="")
            tables.append(read_table(path).map(lambda cell: "" if pd.isna(cell) else cell.strip()))
    assert tables[0].to_numpy().tolist() == tables[1].to_numpy().tolist()


@pytest.mark.parametrize("content", ['id,n\nx, "1,5"\n', 'id,n\nx,"1"\n  \n', '"a\nb",n\nx,1\n'])
def test_odd_files_are_read_the_slow_way(write, content):
    assert read_table(write(content)).iloc[0].str[0].tolist() == ["x", "1"]


def test_a_file_is_parsed_once(write, monkeypatch):
    path = write("id,n\na,1\n")
    past = time.time() - 60
    os.utime(path, (past, past))
    first = read_table(path)
    first["n"] = "changed"
    first.loc[0, "id"] = "changed"
    with monkeypatch.context() as patch:
        patch.setattr(read, "_parse", None)
        assert read_table(path).iloc[0].tolist() == ["a", "1"]
        assert read_table(path).attrs["file"] == str(path)
    path.write_text("id,n\nb,2\n")
    assert read_table(path).iloc[0].tolist() == ["b", "2"]
    path.write_text("id,n\nc,3\n")  # within the resolution of the clock
    assert read_table(path).iloc[0].tolist() == ["c", "3"]
    changed = path.stat().st_mtime_ns
    path.write_text("id,n\nd,4\n")
    os.utime(path, ns=(changed, changed))  # two changes at one tick of the clock
    assert read_table(path).iloc[0].tolist() == ["d", "4"]


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv does not exist"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileNotFoundError, match=r"folder\.csv is a folder, not a file"):
        read_table(tmp_path / "folder.csv")


def test_a_packed_file_that_unpacks_to_too_much(tmp_path, monkeypatch):
    path = tmp_path / "nodes.csv.gz"
    path.write_bytes(gzip.compress(b"id,label\n" + b"0,a\n" * 10**5))
    assert len(read_table(path)) == 10**5
    monkeypatch.setattr(limits, "FREE_BYTES", 10**4)
    path.write_bytes(gzip.compress(b"id,label\n" + b"0,b\n" * 10**5))
    with pytest.raises(ValueError, match=r"nodes\.csv\.gz unpacks to .*: unpack it first\.$"):
        read_table(path)


def test_too_many_columns(write, monkeypatch):
    monkeypatch.setattr(limits, "MAX_COLUMNS", 2)
    for name, content in (("a.csv", b"a,b,c\n1,2,3\n"), ("a.jsonl", b'{"a":1,"b":2,"c":3}')):
        with pytest.raises(ValueError, match=r"a\.\w+ has 3 columns; a table may have at most 2"):
            read_table(write(content, name))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ('{"0": [[1]]}', "list of node '0' must hold numbers and text alone"),
        ('{"0": [{"a": 1}]}', "list of node '0' must hold numbers and text alone"),
        ('{"0": ["\\ud800"]}', "is not JSON: half of a surrogate pair is no character"),
        ('{"0": ' + "[" * 10**5, "is not JSON: it is nested too deeply"),
        ('{"0": [' + "9" * 5000 + "]}", "is not JSON: Exceeds the limit"),
        ('{"' + "x" * 500 + '": 1}', r"node 'x{76}\.\.\. holds 1; expected a list"),
    ],
)
def test_odd_files_of_lists(tmp_path, items, message):
    path = tmp_path / "features.json"
    path.write_text(items)
    with pytest.raises(ValueError, match=rf"features\.json.*{message}"):
        read_lists(path)


def test_the_longest_cell_is_the_longest_that_arrow_reads():
    ReadOptions(block_size=read.MAX_CELL_LENGTH)
    with pytest.raises(OverflowError):
        ReadOptions(block_size=read.MAX_CELL_LENGTH + 1)


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("t.tsv", "a,b,c\td\n", ("\t", ["a,b,c", "d"])),
        ("t.csv", "a,b,c\td\n", (",", ["a", "b", "c\td"])),
        ("t.csv", "\n a;;b\n1;2;3\n", (";", ["a", "Unnamed: 1", "b"])),
    ],
)
def test_the_header_alone(write, name, content, wanted):
    assert csv_header(write(content, name)) == wanted
    packed = write(gzip.compress(content.encode()), f"{name}.gz")
    assert csv_header(packed) == wanted


def test_the_header_of_a_file_that_has_none(write):
    with pytest.raises(ValueError, match=r"t\.csv is empty"):
        csv_header(write(" \n"))
    with pytest.raises(ValueError, match=r"t\.csv\.gz cannot be unpacked"):
        csv_header(write(b"a,b\n", "t.csv.gz"))


def test_quoted_cells_are_read_the_fast_way(write, monkeypatch):
    monkeypatch.setattr(read, "_read_any_csv", None)
    assert read_table(write('id,n\nx,"1,5"\n'))["n"].tolist() == ["1,5"]


def test_the_header_is_looked_for_in_the_first_four_megabytes(write):
    long = "a" * 2**22
    assert csv_header(write(f"{long}b,c\n")) == (",", [long])


def test_too_many_columns_of_parquet_are_not_read(tmp_path, monkeypatch):
    pd.DataFrame({"a": [1], "b": [2], "c": [3]}).to_parquet(path := tmp_path / "a.parquet")
    monkeypatch.setattr(limits, "MAX_COLUMNS", 2)
    monkeypatch.setattr(pd, "read_parquet", None)
    with pytest.raises(ValueError, match=r"a\.parquet has 3 columns; a table may have at most 2"):
        read_table(path)
