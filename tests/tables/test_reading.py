"""Files to tables and cells to values: what a cell becomes, and what is wrong with a file."""

import csv
import gzip
import io
import json
import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from pyarrow.csv import ReadOptions

from evengraph.core import untrusted as limits
from evengraph.core.errors import ArgumentError
from evengraph.disk.engine import find_files
from evengraph.tables import cells as values
from evengraph.tables import from_frames, read, read_table
from evengraph.tables.cells import (
    EMPTY_NUMBERS,
    canonical_name,
    canonical_names,
    column_kind,
    date_form,
    describe_mismatch,
    is_empty,
    seconds_of,
    to_numbers,
    to_signs,
)
from evengraph.tables.encoders import Date, Number, as_dict, fit_column, from_dict
from evengraph.tables.read import csv_header
from evengraph.tables.text import TextColumn

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
    kinds = [column_kind(found[column], "t") for column in "nftb"]
    assert kinds == ["number", "number", "text", "boolean"]
    assert to_numbers(found["f"], "t").tolist() == pytest.approx([1.5, np.nan, -2.0], nan_ok=True)
    assert to_signs(found["b"], "t").tolist() == [1, -1, 1]


def test_cells_of_csv_stay_as_they_stand(write):
    found = read_table(write("id,n,b\n007,1.50,true\n1e5,2,maybe\n12345678901234567890,3,\n"))
    assert found["id"].tolist() == ["007", "1e5", "12345678901234567890"]
    assert found["n"].tolist() == ["1.50", "2", "3"]
    assert found["b"].tolist()[:2] == ["true", "maybe"]
    assert found["b"].isna().tolist() == [False, False, True]
    found = read_table(write('id,v\n1,=1+1\n2,"=HYPERLINK(""x"")"\n3,@SUM(A1)\n'))
    assert found["v"].tolist() == ["=1+1", '=HYPERLINK("x")', "@SUM(A1)"]
    found = read_table(write("id,n,b\nNA,1,true\nNO,NA,\nnull,nan,FALSE\n"))
    assert found["id"].tolist() == ["NA", "NO", "null"]  # the code of Namibia, not a gap
    assert np.isnan(to_numbers(found["n"], "t")).tolist() == [False, True, True]
    assert to_signs(found["b"], "t").tolist() == [1, 0, -1]
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
    found = read_table(write('{"id": "01", "n": 1}\n\n{"id": "2", "m": null}\n', "t.jsonl"))
    assert found["id"].tolist() == ["01", "2"]
    assert found["n"].isna().tolist() == [False, True]


ANY = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1)


@given(st.lists(st.tuples(ANY, st.integers(-(2**40), 2**40)), min_size=1))
def test_text_comes_back(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("word", "n"), *rows])
        found = read_table(path)
    assert found["n"].tolist() == [str(n) for _, n in rows]
    words = ["" if pd.isna(word) else word.strip() for word in found["word"]]
    assert words == [word.strip() for word, _ in rows]


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
        patch.setattr(read, "_read_csv", None)
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
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileNotFoundError, match=r"folder\.csv is a folder, not a file"):
        read_table(tmp_path / "folder.csv")


def test_limits_of_files(tmp_path, monkeypatch, write):
    path = tmp_path / "nodes.csv.gz"
    path.write_bytes(gzip.compress(b"id,label\n" + b"0,a\n" * 10**5))
    assert len(read_table(path)) == 10**5
    monkeypatch.setattr(limits, "FREE_BYTES", 10**4)
    path.write_bytes(gzip.compress(b"id,label\n" + b"0,b\n" * 10**5))
    with pytest.raises(ValueError, match=r"nodes\.csv\.gz unpacks to .*: unpack it first\.$"):
        read_table(path)
    monkeypatch.setattr(limits, "MAX_COLUMNS", 2)
    for name, content in (("a.csv", b"a,b,c\n1,2,3\n"), ("a.jsonl", b'{"a":1,"b":2,"c":3}')):
        with pytest.raises(ValueError, match=r"a\.\w+ has 3 columns; a table may have at most 2"):
            read_table(write(content, name))
    pd.DataFrame({"a": [1], "b": [2], "c": [3]}).to_parquet(path := tmp_path / "a.parquet")
    monkeypatch.setattr(limits, "MAX_COLUMNS", 2)
    monkeypatch.setattr(parquet.ParquetFile, "read", None)
    with pytest.raises(ValueError, match=r"a\.parquet has 3 columns; a table may have at most 2"):
        read_table(path)


LONG, MANY = "x" * 2000, 3_000
ONE = pa.array(np.zeros(MANY), pa.int32())


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        (pa.DictionaryArray.from_arrays(ONE, [LONG]), {}, "unpacks to"),
        (pa.array([LONG] * MANY), {}, "unpacks to"),
        (pa.array([LONG.encode()] * MANY), {}, "unpacks to"),
        (pa.array([[LONG] * MANY]), {}, "unpacks to"),
        (pa.array([{"a": [LONG] * MANY}]), {}, "unpacks to"),
        (pa.array([[None] * 100 * MANY]), {}, "unpacks to"),
        (pa.array([LONG] * MANY), {"a": "DELTA_BYTE_ARRAY"}, "unpacks to"),
        (pa.nulls(100 * MANY), {}, "has 300,000 rows"),
        (pa.array([0] * 100 * MANY), {}, "has 300,000 rows"),
    ],
)
def test_a_small_parquet_file_unpacks_to_little(tmp_path, monkeypatch, column, options, message):
    for module in (limits, read):
        monkeypatch.setattr(module, "FREE_BYTES", 2**21)
    monkeypatch.setattr(limits, "FREE_ROWS", 2**10)
    path, table = tmp_path / "t.parquet", pa.table({"a": column})
    about = {"column_encoding": options, "use_dictionary": False} if options else {}
    parquet.write_table(table, path, compression="zstd", **about)
    assert path.stat().st_size < 20_000
    for reader in (read_table, find_files):  # in memory, and to pack it
        with pytest.raises(ValueError, match=rf"t\.parquet {message}.*: save it as CSV, uncompr"):
            reader(path)
    parquet.write_table(table.slice(0, 10), path, **about)
    if not isinstance(column, pa.ListArray | pa.StructArray):
        assert len(read_table(path)) == 10


def test_many_numbers_that_are_missing_unpack_to_little(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "FREE_BYTES", 2**21)
    path, column = tmp_path / "t.parquet", pa.nulls(10_000, pa.float64())
    parquet.write_table(pa.table({f"c{index}": column for index in range(20)}), path)
    assert read_table(path).shape == (10_000, 20)
    parquet.write_table(pa.table({f"c{index}": column for index in range(30)}), path)
    with pytest.raises(ValueError, match=r"t\.parquet unpacks to 2\.3 MiB; .*: save it as CSV"):
        read_table(path)


def test_text_that_unpacks_to_many_rows_or_cells_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "FREE_ROWS", 1000)
    monkeypatch.setattr(limits, "FREE_VALUES", 10_000)
    for name, content, what in (
        ("t.jsonl.gz", b'{"a": 1}\n' * 9000, "9,000 rows"),
        ("t.csv.gz", b"a,b\n" + b"," * 90_000, "90,001 cells"),
    ):
        (tmp_path / name).write_bytes(gzip.compress(content))
        with pytest.raises(ValueError, match=rf"{name} has {what}; a file of .* may have"):
            read_table(tmp_path / name)


def test_the_limits_of_the_fast_way(write, monkeypatch):
    ReadOptions(block_size=read.MAX_CELL_LENGTH)
    with pytest.raises(OverflowError):
        ReadOptions(block_size=read.MAX_CELL_LENGTH + 1)
    long = "a" * 2**22
    assert csv_header(write(f"{long}b,c\n")) == (",", [long])
    monkeypatch.setattr(read, "_read_any_csv", None)
    assert read_table(write('id,n\nx,"1,5"\n'))["n"].tolist() == ["1,5"]


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


def test_one_name_for_a_value():
    same = {"3": (3, 3.0, np.float32(3), "3"), "-3": [np.int8(-3)], str(2**70): [2**70]}
    same |= {"a b": [" a b "], "007": ["007"], "0.5": [0.5], "True": [True]}
    for name, cells in {**same, "False": [np.bool_(False)]}.items():
        assert {canonical_name(cell) for cell in cells} == {name}


@given(st.lists(st.one_of(st.integers(), st.text(), st.floats(allow_nan=False))))
def test_names_of_a_column_are_the_names_of_its_cells(cells):
    names = canonical_names(pd.Series(cells, dtype=object))
    assert names.tolist() == [canonical_name(cell) for cell in cells]


def test_empty_cells():
    column = pd.Series(["", " ", None, np.nan, "NA", "x", 0, False], dtype=object)
    assert is_empty(column).tolist() == [True] * 4 + [False] * 4
    assert is_empty(column, EMPTY_NUMBERS).tolist() == [True] * 5 + [False] * 3


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, 2], "number"),
        ([1, 2.5], "number"),
        (["1", "2e3", ""], "number"),
        (["01", "20"], "text"),
        (["1", "b"], "text"),
        ([True, None], "boolean"),
        (["true", "no"], "text"),
        (["2024-01-01", "2024-01-01 10:00"], "date"),
        (["01/02/2024"], "text"),
        ([pd.Timestamp(0)], "date"),
        ([None, ""], "empty"),
        (["NA", "NA"], "text"),
    ],
)
def test_kinds(cells, kind):
    assert column_kind(pd.Series(cells, name="c", dtype=object), "t") == kind


NUMBERS, DATES = ["1", "-2.5", " 3 "], ["2024-05-31", " 2024-05-31T10:00", "1999-01-01 "]


@pytest.mark.parametrize(("what", "good"), [("number", NUMBERS), ("date", DATES)])
@given(st.data())
def test_odd_cells_by_hand(what, good, data):
    some = st.sampled_from([*good, "low", "high", "", "n/a", None])
    cells = data.draw(st.lists(some, max_size=12))
    known = set(good)
    words = [(row, cell) for row, cell in enumerate(cells) if cell in ("low", "high")]
    total = len(words) + sum(cell in known for cell in cells)
    expected = None
    if words and 2 * len(words) <= total:
        are = f"is not a {what}" if len(words) == 1 else f"are not {what}s"
        shown = ", ".join(f"{cell!r} in row {row + 1}" for row, cell in words[:3])
        first = "first: " if len(words) > 3 else ""
        expected = what, f"{len(words)} of {total} cells {are} ({first}{shown})"
    assert describe_mismatch(pd.Series(cells, name="c", dtype=object)) == expected


@pytest.mark.parametrize("cells", [[True, False], [1, 2.5], ["007", "12"], [pd.Timestamp(0)], []])
def test_no_odd_cells_among_other_kinds(cells):
    assert describe_mismatch(pd.Series(cells, dtype=object)) is None
    assert describe_mismatch(pd.Series(cells)) is None


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))))
def test_numbers_and_their_text_agree(cells):
    plain = pd.Series(cells, name="c", dtype=float)
    text = pd.Series(["" if c is None else repr(c) for c in cells], name="c", dtype=object)
    np.testing.assert_array_equal(to_numbers(plain, "t"), to_numbers(text, "t"))


def test_a_long_name_is_shortened_in_a_location():
    assert len(values.location("t", "x" * 5000)) < 120


NOON = "2024-05-31 12:00"


def column(values, name="joined"):
    return pd.Series(values, name=name)


def epoch(*dates):
    return [pd.Timestamp(date, tz="UTC").timestamp() for date in dates]


@pytest.mark.parametrize(
    ("cells", "form", "dates"),
    [
        (["31/05/2024", "1/6/2024"], "day/month/year", ["2024-05-31", "2024-06-01"]),
        (["05/31/2024", "6/1/2024 "], "month/day/year", ["2024-05-31", "2024-06-01"]),
        (["31.05.2024 12:00", "01.06.2024"], "day/month/year", [NOON, "2024-06-01"]),
        (["03.04.2024", "05.04.2024"], "day/month/year", ["2024-04-03", "2024-04-05"]),
        (["31-05-2024 12:00:00"], "day/month/year", [NOON]),
        (["5/31/2024, 12:00:00 PM"], "month/day/year", [NOON]),
        (["05/31/2024 12:00 PM"], "month/day/year", [NOON]),
        (["2024/05/31", "2024/6/1"], "year/month/day", ["2024-05-31", "2024-06-01"]),
        (["May 31, 2024", "Jun 1, 2024"], "month in words", ["2024-05-31", "2024-06-01"]),
        (["31 May 2024", "December 1 2024"], "month in words", ["2024-05-31", "2024-12-01"]),
        (["31-May-2024 12:00"], "month in words", [NOON]),
        (["2024-05-31"], None, []),
        (["a/b", "31/05"], None, []),
        (["10.1.2.3", "1/2/34"], None, []),
        ([[1], [2]], None, []),
    ],
)
def test_forms(cells, form, dates):
    cells = column([*cells, None], name="x")
    assert date_form(cells, "t") == form
    if form is None:
        return
    seconds = seconds_of(cells, "t", form)
    assert seconds[:-1].tolist() == epoch(*dates)
    assert np.isnan(seconds[-1])


@pytest.mark.parametrize(
    ("name", "values", "form"),
    [
        ("created_at", [1_717_113_600, 1_717_200_000], "seconds since 1970"),
        ("updatedAt", ["1717113600000", "", "1717200000000"], "milliseconds since 1970"),
        ("timestamp", [1.7171136e9, np.nan, 1.7e9], "seconds since 1970"),
        ("followers", [1_717_113_600, 1_717_200_000], None),
        ("created_at", [12, 1_717_200_000], None),
        ("created_at", ["soon", "later"], None),
        ("seen_on", [None, None], None),
    ],
)
def test_seconds_and_milliseconds_by_name_and_range(name, values, form):
    assert date_form(column(values, name), "t") == form
    if form is not None:
        assert np.nanmax(seconds_of(column(values, name), "t", form)) < 1.8e9


def test_dates_and_their_forms():
    cells = column(["03/04/2024", "12/12/2024"])
    assert date_form(cells, "t", "dmy") == "day/month/year"
    assert date_form(cells, "t", "mdy") == "month/day/year"
    assert date_form(column(["03/04/2024", "05/31/2024"]), "t", "dmy") == "month/day/year"
    cells = column(["31/05/2024", "03/04/2024", None])
    encoder = from_dict(json.loads(json.dumps(as_dict(fit_column(cells, "t")))))
    assert type(encoder) is Date
    same = fit_column(column(["2024-05-31", "2024-04-03", None]), "t")
    theirs = same.transform(column(["2024-05-31", "2024-04-03", None]), "t")
    assert encoder.transform(cells, "t").tolist() == theirs.tolist()
    new = column(["03/04/2024"])  # ambiguous by itself
    assert encoder.transform(new, "t")[0, 0] == encoder.transform(cells, "t")[1, 0]
    old = from_dict({"kind": "date", "column": "d", "median": 0.0, "mean": 0.0, "scale": 86400.0})
    assert old.transform(column(["1970-01-03", None]), "t")[:, 0].tolist() == [2, 0]
    assert type(fit_column(column([1_717_113_600, 1_717_200_000], "followers"), "t")) is Number


def test_times_and_notes_of_a_table():
    nodes = pd.DataFrame(
        {
            "id": range(4),
            "kind": list("abab"),
            "joined": ["31/05/2024", "01/06/2024", "", "02/06/2024"],
            "seen": ["1/2/2024", "3/4/2024", "5/6/2024", ""],
            "created_at": [1_717_113_600, 1_717_200_000, 1_717_200_001, 1_717_200_002],
        }
    )
    edges = pd.DataFrame({"from": [0, 1, 2], "to": [1, 2, 3]})
    with pytest.raises(ArgumentError, match="column 'seen' holds dates such as '1/2/2024'"):
        from_frames(nodes, edges, label="kind", time="joined")
    own = from_frames(nodes, edges, label="kind", time="joined", date_order="mdy")
    assert own.graph.time[:2].tolist() == epoch("2024-05-31", "2024-06-01")
    weeks = "seen: sine of the week", "seen: cosine of the week"
    times = "created_at: sine of the day", "created_at: cosine of the day"
    assert own.encoder.names == ("seen", *weeks, "created_at", *times)
    assert "Dates: seen (month/day/year), created_at (seconds since 1970)." in own.notes


SOME = ["", "nan", "1", "+1", " -2.5e3", "1_000", "0x10", "inf", "1,5", "a b", "2024-05-31 x\ny"]
TEXTS = st.lists(st.one_of(st.text(max_size=5), st.sampled_from(SOME), st.none()))


@pytest.mark.parametrize("dtype", [object, "str"])
@given(TEXTS)
def test_cells_as_python_reads_them(dtype, cells):
    values = pd.Series(cells, dtype=dtype)
    text = TextColumn.of(values)
    known = [cell is not None for cell in cells]
    stripped = [cell.strip() if cell is not None else None for cell in cells]
    assert text.cells.to_pylist() == stripped
    words = [cell is not None and cell.lower() in EMPTY_NUMBERS for cell in stripped]
    assert text.is_one_of(EMPTY_NUMBERS).tolist() == words
    days = [bool(re.fullmatch(r"[0-9]{4}-.*", cell or "")) for cell in stripped]
    assert text.matches(r"[0-9]{4}-.*").tolist() == days
    codes, distinct = text.distinct
    assert len(set(distinct)) == len(distinct)
    assert [distinct[code] if code >= 0 else None for code in codes] == stripped
    numbers = pd.to_numeric(pd.Series(stripped, dtype=object), errors="coerce")
    np.testing.assert_array_equal(text.numbers, np.asarray(numbers, dtype=float))
    rest = text.take(np.array(known, dtype=bool)).cells.to_pylist()
    assert rest == [cell for cell in stripped if cell is not None]


def test_words_are_counted_and_left_out():
    text = TextColumn.of(pd.Series(["one", " two  words ", None, "", "a, b\nc"]))
    assert text.num_words().tolist() == [1, 2, 0, 0, 3]
    text = TextColumn.of(pd.Series(["a", None, " NA ", "", "b"], dtype="str"))
    assert text.without(EMPTY_NUMBERS).cells.to_pylist() == ["a", "b"]
    assert text.without(EMPTY_NUMBERS) is text.without(EMPTY_NUMBERS)
    assert text.without([""]).cells.to_pylist() == ["a", "NA", "b"]
    whole = TextColumn.of(pd.Series(["a", "b"], dtype="str"))
    assert whole.without(EMPTY_NUMBERS) is whole


@pytest.mark.parametrize("cells", [[1, "a"], [1.5], [["a"]], [{"a": 1}], ["\ud800"]])
def test_anything_else_is_no_text(cells):
    assert TextColumn.of(pd.Series(cells, dtype=object)) is None


def test_a_column_is_parsed_once_as_long_as_it_is_the_same():
    frame = pd.DataFrame({"n": ["1", "2"]}, dtype="str")
    text = TextColumn.of(frame["n"])
    assert TextColumn.of(frame["n"]) is text
    assert TextColumn.of(frame["n"].iloc[:1]).numbers.tolist() == [1]
    frame.loc[0, "n"] = "5"
    assert TextColumn.of(frame["n"]).numbers.tolist() == [5, 2]
    assert text.numbers.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        text.numbers[0] = 7
