"""DuckDB within a limit of memory, and the files that it reads."""

import gzip
import os
import signal
from threading import Timer

import numpy as np
import pandas as pd
import pytest

from evengraph.disk.engine import (
    Engine,
    find_files,
    quote_name,
    quote_value,
)
from evengraph.tables import read_table


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path / "work.duckdb", 2**28)
    yield engine
    engine.close()


def test_the_memory_limit_is_set_and_tables_survive_a_restart(engine, tmp_path):
    batches = engine.batches("SELECT i FROM range(3000000) r(i)")  # which keep the order
    rows = np.concatenate([np.asarray(batch.column(0)) for batch in batches])
    assert (rows == np.arange(3_000_000)).all()
    (limit,) = engine.values("SELECT current_setting('memory_limit')")
    assert limit == "256.0 MiB"
    engine.run("CREATE TABLE t AS SELECT i FROM range(5) r(i)")
    engine.close()
    again = Engine(tmp_path / "work.duckdb", 2**28)
    assert again.values("SELECT sum(i) FROM t") == (10,)
    again.close()


def test_names_and_values_are_quoted():
    assert quote_name('a"b') == '"a""b"'
    assert quote_value(["it's", 3]) == "['it''s', 3]"
    assert quote_value(True) == "True"


def test_ctrl_c_in_a_query_is_an_interrupt(engine):
    query = "SELECT sum(hash(range)) FROM range(10000000000)"  # DuckDB looks after every chunk
    timer = Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.values(query)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_too_little_memory_is_one_line(engine):
    engine.connection.execute("SET max_temp_directory_size = '1MB'")
    with pytest.raises(ValueError, match=r"^memory must be larger: .* 256 MiB\.$"):
        engine.run("CREATE TABLE t AS SELECT list(range::VARCHAR) FROM range(50000000)")


STRANGE = {
    "quotes": 'id,text\n1,"a, ""b""\nnext line"\n2,\n',
    "byte order mark": "\ufeffid,name\n1,ä\n",
    "line ends": "id,name\r\n1,a\r\n2,b\r\n",
    "spaces": "id, name\n1, a\n2,  b \n",
    "tabs": "id\tname\n1\ta b\n",
    "semicolons": "id;pay;note\n1;1,5;a,b\n2;2;c\n",
    "no name": "id,,x\n1,2,3\n",
    "odd names": 'id,"a""b",it\'s\n1,2,3\n',
    "codes": "id,code\n1,007\n2,1.50\n",
    "no last line end": "id,name\n1,a\n2,b",
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_strange_csv_is_read_as_by_read_table(engine, tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    expected = read_table(path)
    read = find_files(path).to_parquet(engine, tmp_path / "t.parquet")
    table = pd.read_parquet(read.paths[0])
    assert list(table.columns) == list(expected.columns)
    for column in table.columns:
        cells = [None if cell is None or cell != cell else cell for cell in table[column]]
        others = [None if cell is None or cell != cell else cell for cell in expected[column]]
        assert cells == others, column


def test_a_row_with_too_many_cells_is_an_error_of_one_line(engine, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,name\n1,a\n2,b,c\n")
    message = r"t\.csv cannot be read: .*Line: 3 .* Expected Number of Columns: 2 Found: 3\.$"
    with pytest.raises(ValueError, match=message) as error:
        find_files(path).to_parquet(engine, tmp_path / "t.parquet")
    assert "\n" not in str(error.value)


def test_paths_folders_patterns_and_lists_name_files(tmp_path):
    for name in ("a.csv", "b.csv", "c.txt"):
        (tmp_path / name).write_text("id\n1\n")
    both = (tmp_path / "a.csv", tmp_path / "b.csv")
    assert find_files(tmp_path).paths == both
    assert find_files(str(tmp_path / "*.csv")).paths == both
    assert find_files(f"{both[0]}, {both[1]}").paths == both
    assert find_files(list(both)).paths == both
    assert find_files(both[1]).name == str(both[1])
    assert find_files(tmp_path).name == f"{both[0]} and 1 more"
    before = find_files(both[0]).signature
    both[0].write_text("id\n1\n2\n")
    assert find_files(both[0]).signature != before


def test_files_that_do_not_fit_or_are_broken_are_errors(tmp_path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").write_text("name\n1\n")
    (tmp_path / "c.txt").write_text("id\n1\n")
    pd.DataFrame({"id": [1]}).to_parquet(tmp_path / "d.parquet")
    (tmp_path / "empty").mkdir()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "a.parquet").write_bytes(b"PAR1nothing")
    (broken / "b.csv.gz").write_bytes(gzip.compress(b"id\n1\n")[:9])
    (broken / "c.csv").write_text("")
    for path, told in {
        tmp_path / "nothing.csv": "nothing.csv does not exist",
        tmp_path / "empty": "holds no Parquet or CSV files",
        tmp_path / "c.txt": r"must end in .parquet",
        tmp_path: "one format, got .csv and .parquet",
        tmp_path / "?.csv": "b.csv must have the columns of",
        broken / "a.parquet": "cannot be read as Parquet",
        broken / "b.csv.gz": "cannot be unpacked",
        broken / "c.csv": "is empty",
    }.items():
        with pytest.raises((ValueError, FileNotFoundError), match=told):
            find_files(path).query()
