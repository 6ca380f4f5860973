import builtins
import os
import signal
from threading import Timer

import numpy as np
import pytest

from evengraph.core.errors import MissingPackageError
from evengraph.disk.engine import Engine, import_duckdb, quote_name, quote_value


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path / "work.duckdb", 2**28)
    yield engine
    engine.close()


def test_the_memory_limit_is_set(engine):
    (limit,) = engine.values("SELECT current_setting('memory_limit')")
    assert limit == "256.0 MiB"


def test_tables_survive_a_restart(engine, tmp_path):
    engine.run("CREATE TABLE t AS SELECT i FROM range(5) r(i)")
    engine.close()
    again = Engine(tmp_path / "work.duckdb", 2**28)
    assert again.values("SELECT sum(i) FROM t") == (10,)
    again.close()


def test_batches_keep_the_order(engine):
    batches = engine.batches("SELECT i FROM range(3000000) r(i)")
    rows = np.concatenate([np.asarray(batch.column(0)) for batch in batches])
    assert (rows == np.arange(3_000_000)).all()


def test_long_queries_report_their_progress(tmp_path, monkeypatch):
    monkeypatch.setattr("evengraph.disk.engine.POLL_SECONDS", 0.001)
    reports = []
    engine = Engine(tmp_path / "work.duckdb", 2**28, lambda *report: reports.append(report))
    engine.run("CREATE TABLE t AS SELECT random() AS x FROM range(2000000)", "drawing")
    engine.close()
    assert reports[0] == ("drawing", None)
    assert len(reports) > 1
    assert all(share is None or 0 <= share <= 1 for _, share in reports)


def test_errors_have_one_line(engine):
    with pytest.raises(ValueError, match="The tables cannot be read") as error:
        engine.values("SELECT * FROM read_csv('nothing.csv')")
    assert "\n" not in str(error.value)


def test_names_and_values_are_quoted():
    assert quote_name('a"b') == '"a""b"'
    assert quote_value(["it's", 3]) == "['it''s', 3]"
    assert quote_value(True) == "True"


def test_a_missing_package_is_named(monkeypatch):
    real = builtins.__import__

    def fail(name, *rest, **more):
        if name == "duckdb":
            raise ImportError
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(MissingPackageError, match=r"pip install 'evengraph\[disk\]'"):
        import_duckdb()


def test_ctrl_c_in_a_query_is_an_interrupt(engine):
    query = "SELECT sum(hash(a.range, b.range)) FROM range(200000) a, range(200000) b"
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
