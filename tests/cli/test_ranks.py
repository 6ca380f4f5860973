"""`evengraph run` as several processes."""

from contextlib import contextmanager
from pathlib import Path

import pytest
import torch.distributed as dist

from evengraph.cli import ranks as cli_ranks
from evengraph.cli.console import err, out
from evengraph.cli.ranks import current_ranks, launched_ranks, own_folder, speaks_for_all
from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.pipeline.table_model import TableModel
from evengraph.training import ranks as core_ranks
from evengraph.training.ranks import ALONE, Ranks
from rank_workers import command, run_ranks


@pytest.fixture
def second(monkeypatch):
    """This process is the second of two."""
    store = dist.HashStore()

    @contextmanager
    def joined():
        yield Ranks(1, 2, 2, store)

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(core_ranks, "joined_ranks", joined)
    monkeypatch.setattr(out, "quiet", False)
    monkeypatch.setattr(err, "quiet", False)
    token = cli_ranks._CURRENT.set(None)
    yield Ranks(0, 2, 2, store)
    cli_ranks._CURRENT.reset(token)


def test_alone_nothing_changes(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with launched_ranks(["predict"]):
        assert current_ranks() is ALONE
        assert own_folder(Path("model"), "model") == Path("model")
        assert speaks_for_all(ValueError("one"))


def test_the_second_process_is_quiet_and_writes_elsewhere(second):
    with launched_ranks(["run", "graph"]):
        assert current_ranks().rank == 1
        assert out.quiet
        assert err.quiet
        folder = own_folder(Path("model"), "model")
        assert folder.parent.exists()
        assert folder != Path("model")
    assert not folder.parent.exists()


def test_an_error_of_all_is_printed_once(second):
    error = ValueError("hidden must be at least 1, got 0.")
    with launched_ranks(["run", "graph"]):
        assert second.is_first_with("ValueError: hidden must be at least 1, got 0.")
        assert not speaks_for_all(error)
        assert speaks_for_all(OSError("only here"))
        assert not err.quiet


def test_other_commands_are_started_once(second):
    with pytest.raises(ValueError, match="Several processes are for evengraph run"):
        launched_ranks(["predict", "model"]).__enter__()


def test_two_processes_write_one_model(tmp_path):
    graph, model, folder = (str(tmp_path / name) for name in ("graph", "model", "out"))
    pack_graph(toy(300, 900, 12, 3), graph)
    quick = ["--set", "max_epochs=3", "--set", "hidden=8", "--seeds", "5"]
    words = ["run", graph, *quick, "--save", model, "--out", folder]
    first, other = run_ranks(tmp_path / "ranks", command, words)
    assert first[0] == other[0] == 0
    assert f"wrote {model}" in first[1]
    assert other[1:] == ("", "")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"result.json", "report.html"}
    assert TableModel.load(model).method.title == "Unison"


def test_trees_under_torchrun_are_an_error(tmp_path):
    graph = str(tmp_path / "graph")
    pack_graph(toy(100, 300, 8, 3), graph)
    words = ["run", graph, "--method", "boosting", "--seeds", "5"]
    results = run_ranks(tmp_path / "ranks", command, words)
    assert [status for status, *_ in results] == [2, 2]
    assert "Boosting is trained by one process; for 2 use one of" in results[0][2]
