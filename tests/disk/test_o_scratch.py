"""Folders for a time: gone at the end, after errors, and after the next start."""

import os
import socket
import subprocess
import sys

import pytest

from evengraph.disk.tables import PREFIX, scratch_folder


def test_a_folder_is_gone_at_the_end(tmp_path):
    with scratch_folder(tmp_path / "new", 10) as folder:
        assert folder.parent == tmp_path / "new"
        (folder / "file").write_text("x")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_folder_is_gone_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path, 0):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_folders_of_killed_processes_are_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host = socket.gethostname()
    names = [f"{PREFIX}{pid}@{host}@a" for pid in (ended.pid, os.getpid())]
    elsewhere = f"{PREFIX}{ended.pid}@{host}-2@b"  # a machine whose name begins like this one
    for name in (*names, elsewhere, "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    with scratch_folder(tmp_path, 0):
        pass
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {names[1], elsewhere, "other"}


def test_a_full_disk_is_noticed_before_anything_is_written(tmp_path):
    with pytest.raises(OSError, match=r"needs .* for rows to learn from, and .* are free"):
        scratch_folder(tmp_path, 2**60).__enter__()
    assert list(tmp_path.iterdir()) == []
