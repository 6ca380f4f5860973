import signal
import time

import pytest

from evengraph.cli import commands
from evengraph.cli.commands import sigterm_interrupts
from evengraph.training.loop import deferred_interrupts


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
