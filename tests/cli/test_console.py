"""Consoles, signals, folders, and the processes that torchrun has started."""

import signal
import time
import warnings
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
import torch.distributed as dist
from rich.console import Console

from command_line import call
from evengraph.cli import commands, console, main
from evengraph.cli.commands import sigterm_interrupts
from evengraph.cli.console import (
    StageLines,
    current_ranks,
    err,
    launched_ranks,
    out,
    own_folder,
    print_error,
    print_notes,
    print_written,
    remember,
    speaks_for_all,
    typed_command,
)
from evengraph.cli.opening import check_folder
from evengraph.core.errors import ArgumentError
from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.pipeline.table_model import TableModel
from evengraph.training import ranks as core_ranks
from evengraph.training.loop import deferred_interrupts
from evengraph.training.ranks import ALONE, Ranks
from rank_workers import command, run_ranks


def test_an_error_is_one_line_with_the_option_that_fixes_it(capsys):
    print_error(ArgumentError("No split [here].", argument="split", value="my part"))
    assert capsys.readouterr().err == "Error: No split [here]. Option: --split-column 'my part'\n"


def test_notes_and_paths_are_lines_of_any_length(capsys):
    print_notes(["a [b] " * 40, "second"])
    assert capsys.readouterr().out == f"{'a [b] ' * 40}\nsecond\n"
    print_written(Path("a[b].csv"), Path("c.json"), console=err)
    assert capsys.readouterr() == ("", "wrote a[b].csv\nwrote c.json\n")


def test_a_terminal_breaks_sentences_between_words():
    terminal = Console(file=StringIO(), width=20, force_terminal=True, color_system=None)
    print_notes(["averages of several splits"], terminal)
    lines = terminal.file.getvalue().splitlines()
    assert [line.strip() for line in lines] == ["averages of several", "splits"]


def test_no_error_is_empty_and_those_of_files_name_them(capsys):
    print_error(MemoryError())
    print_error(ValueError(), prefix="GCN did not run: ")
    print_error(OSError(28, "No space left on device", "out/result.json"))
    assert capsys.readouterr().err.splitlines() == [
        "Error: Out of memory.",
        "Error: GCN did not run: ValueError.",
        "Error: out/result.json: No space left on device.",
    ]


def test_the_command_can_be_pasted():
    remember(["run", "my graph", "--set", "a=1"])
    assert typed_command() == "evengraph run 'my graph' --set a=1"
    assert typed_command("--save", "model") == "evengraph run 'my graph' --set a=1 --save model"


def receive():
    signal.raise_signal(signal.SIGTERM)
    time.sleep(0.01)  # handlers run between two instructions


@pytest.mark.parametrize("ignored", [False, True], ids=["foreground", "background"])
def test_sigterm_is_an_interrupt_also_where_ctrl_c_is_ignored(ignored):
    before, at_term = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with sigterm_interrupts() as received:
            assert received == []
            with pytest.raises(KeyboardInterrupt):
                receive()
            assert received == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(signal.SIGTERM) == at_term  # Ray sets one of its own


def test_sigterm_waits_where_an_interrupt_does():
    done = []

    def work():
        with deferred_interrupts():
            receive()
            done.append(True)

    with sigterm_interrupts(), pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]


def test_a_command_that_is_terminated_says_so_by_its_status(monkeypatch, capsys):
    def app(**arguments):
        receive()

    monkeypatch.setattr(commands, "app", app)
    with pytest.raises(SystemExit) as end:
        commands.main([])
    assert end.value.code == 143
    assert capsys.readouterr().err == "Terminated.\n"


def test_a_line_when_a_stage_is_done_and_every_few_seconds(monkeypatch, capsys):
    clock = iter([0, 1, 6, 7, 20, 30, 33, 40])
    monkeypatch.setattr(console, "monotonic", lambda: next(clock))
    lines = StageLines()
    shares = {"a": (0.1, 0.2, 0.5, 0.6, 1), "b": (0, 1), "c": (None,)}
    for stage, several in shares.items():
        for share in several:
            lines(stage, share)
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["a: 50%, 6 s", "a: done in 20 s", "b: done in 3 s", "c"]


def test_a_folder_that_can_be_written_is_left_as_it_was(tmp_path):
    check_folder(tmp_path / "deep" / "new")
    assert list(tmp_path.iterdir()) == []
    check_folder(tmp_path)
    assert tmp_path.is_dir()


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
    token = console._CURRENT.set(None)
    yield Ranks(0, 2, 2, store)
    console._CURRENT.reset(token)


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
        second.store.add("ValueError: hidden must be at least 1, got 0.", 1)
        assert not speaks_for_all(error)
        assert speaks_for_all(OSError("only here"))
        assert not err.quiet


def test_other_commands_are_started_once(second):
    with pytest.raises(ValueError, match="Several processes are for run and predict"):
        launched_ranks(["pack", "toy"]).__enter__()


def test_two_processes_write_one_model(tmp_path):
    graph, model, folder = (str(tmp_path / name) for name in ("graph", "model", "out"))
    pack_graph(toy(300, 900, 12, 3), graph)
    quick = ["--set", "max_epochs=3", "--set", "hidden=8", "--splits", "5-5"]
    words = ["run", graph, *quick, "--save", model, "--out", folder]
    first, other = run_ranks(tmp_path / "ranks", command, words)
    assert first[0] == other[0] == 0
    assert f"wrote {model}" in first[1]
    assert other[1:] == ("", "")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"result.json", "report.html"}
    assert TableModel.load(model).method.title == "Unison"


def test_version(capsys):
    from evengraph import __version__

    assert call("--version") == 0
    assert __version__ in capsys.readouterr().out


def test_without_a_word_the_help_is_shown(capsys):
    call()
    shown = capsys.readouterr()
    assert "run" in shown.out + shown.err
    assert "Error" not in shown.err


def test_what_torch_says_of_pyg_is_not_shown(monkeypatch):
    def warned(arguments):
        warnings.warn("`torch.jit.script` is deprecated. Please switch.", FutureWarning, 2)
        return 0

    monkeypatch.setattr("evengraph.cli.commands._status", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SystemExit, match="0"):
            main([])
