import gzip

import pandas as pd
import pytest

from evengraph.disk.engine import Engine, TableFiles, find_files
from evengraph.tables import read_table


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path / "work.duckdb", 2**28)
    yield engine
    engine.close()


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


def test_files_that_do_not_fit_are_errors(tmp_path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").write_text("name\n1\n")
    (tmp_path / "c.txt").write_text("id\n1\n")
    pd.DataFrame({"id": [1]}).to_parquet(tmp_path / "d.parquet")
    with pytest.raises(FileNotFoundError, match=r"nothing.csv does not exist"):
        find_files(tmp_path / "nothing.csv")
    with pytest.raises(ValueError, match=r"must end in .parquet"):
        find_files(tmp_path / "c.txt")
    with pytest.raises(ValueError, match=r"one format, got .csv and .parquet"):
        find_files(tmp_path)
    with pytest.raises(ValueError, match=r"b.csv must have the columns of"):
        find_files(tmp_path / "?.csv").query()
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no Parquet or CSV files"):
        find_files(tmp_path / "empty")


def test_broken_files_are_errors(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1nothing")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        _ = find_files(tmp_path / "a.parquet").columns
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"id\n1\n")[:9])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        _ = find_files(tmp_path / "b.csv.gz").columns
    (tmp_path / "c.csv").write_text("")
    with pytest.raises(ValueError, match="is empty"):
        _ = find_files(tmp_path / "c.csv").columns


def test_the_signature_changes_with_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id\n1\n")
    before = TableFiles((path,)).signature
    path.write_text("id\n1\n2\n")
    assert TableFiles((path,)).signature != before
