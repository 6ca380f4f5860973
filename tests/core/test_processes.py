import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from evengraph.core.machine import is_abandoned, process_exists, process_mark

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
CHILD = """
from time import sleep
from evengraph.core.machine import end_with_parent
end_with_parent()
print("ready", flush=True)
while True:
    sleep(0.1)
"""


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")  # a zombie is dead
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_worker_ends_after_its_parent_was_killed():
    command = [sys.executable, "-c", PARENT, CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        try:
            assert is_alive(worker)
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            give_up = monotonic() + 30
            while is_alive(worker) and monotonic() < give_up:
                sleep(0.02)
            assert not is_alive(worker)
        finally:
            if is_alive(worker):
                os.kill(worker, signal.SIGKILL)


def test_a_process_exists_until_it_ends():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_exists(child.pid)
    child.communicate()
    assert not process_exists(child.pid)


def test_only_marks_of_dead_processes_of_this_machine_are_abandoned():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    pid, host, rest = process_mark().split("@")
    assert (pid, rest) == (str(os.getpid()), "")
    assert is_abandoned(f"{gone.pid}@{host}@x")
    assert not is_abandoned(f"{pid}@{host}@x")
    assert not is_abandoned(f"{gone.pid}@{host}-2@x")
    for other in ("", "x", f"{gone.pid}", f"x@{host}@", f"{host}-{gone.pid}-a"):
        assert not is_abandoned(other)
