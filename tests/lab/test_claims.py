import os
import socket
import subprocess
import sys

import pytest

from evengraph.lab import store as claims
from evengraph.lab.store import STALE, Claimant, boot_id, this_process

NOW = 1e9
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def alive(claimant, seen=NOW):
    return claimant.alive(seen=seen, now=NOW)


def test_this_process_is_alive_however_old_its_claim():
    assert alive(this_process(), seen=0.0)
    assert this_process().process == os.getpid()


@linux
def test_a_process_id_that_is_used_again_is_another_process():
    me = this_process()
    assert me.started
    assert not alive(me._replace(started=str(int(me.started) - 1)))
    assert alive(me._replace(started=""))  # of an earlier version, which did not say


@linux
def test_claims_from_before_the_last_boot_are_dead():
    assert boot_id()
    assert not alive(this_process()._replace(boot="another"))
    assert alive(this_process()._replace(boot=""))


def test_a_dead_process_is_dead():
    child = subprocess.Popen([sys.executable, "-c", ""])
    claimant = Claimant(socket.gethostname(), child.pid)
    child.wait()
    assert not alive(claimant)


def test_a_process_of_another_user_is_alive(monkeypatch):
    def forbidden(process, number):
        raise PermissionError

    monkeypatch.setattr(claims.os, "kill", forbidden)
    assert alive(Claimant(socket.gethostname(), os.getppid()))


@pytest.mark.parametrize("sign", [-1, 1], ids=["past", "future"])
def test_on_another_machine_the_time_decides_also_one_in_the_future(sign):
    other = Claimant("another machine", os.getpid())
    assert alive(other, seen=NOW + sign * (STALE - 1))
    assert not alive(other, seen=NOW + sign * (STALE + 1))


def test_a_run_of_a_day_is_not_taken_over():
    assert STALE == 24 * 3600  # longer blocks a sweep for days, shorter runs long fits twice


def test_without_proc_only_the_process_id_counts(monkeypatch):
    monkeypatch.setattr(claims, "_state", lambda process: ("", ""))
    assert alive(this_process()._replace(started="1"))


@linux
def test_a_dead_process_that_nobody_waited_for_is_dead():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    assert not alive(Claimant(socket.gethostname(), child.pid))
    child.wait()


@linux
def test_the_start_of_a_process_is_not_changed_by_what_it_does():
    before = this_process().started
    memory = bytearray(2**26)
    assert this_process().started == before
    assert memory


@pytest.mark.parametrize("process", [0, -1, 2**40, "12", None, b"", 1.5], ids=str)
def test_a_damaged_claim_is_that_of_nobody(process):
    assert not alive(this_process()._replace(process=process))


@pytest.mark.parametrize("seen", ["today", None, b"", float("inf")], ids=str)
def test_a_claim_without_a_time_is_that_of_nobody(seen):
    assert not alive(Claimant("another machine", os.getpid()), seen=seen)
