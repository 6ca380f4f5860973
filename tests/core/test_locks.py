import shutil
from threading import Event, Thread

import pytest

from evengraph.core import files as locks
from evengraph.core.files import locked, temporary_folder

pytestmark = pytest.mark.skipif(locks.fcntl is None, reason="Windows has no such locks")


def test_one_at_a_time_holds_a_folder(tmp_path):
    inside = Event()

    def other():
        with locked(tmp_path):
            inside.set()

    thread = Thread(target=other)
    with locked(tmp_path):
        thread.start()
        assert not inside.wait(0.05)
    thread.join(5)
    assert inside.is_set()


def test_a_temporary_folder_goes_and_what_others_left_goes_before(tmp_path):
    model = tmp_path / "model[1]"
    left = tmp_path / ".model[1].abc.tmp"
    left.mkdir()
    (left / "file").touch()
    others = [
        tmp_path / ".model2.abc.tmp",
        tmp_path / ".model[1].notes",
        tmp_path / ".model1.a.tmp",
    ]
    for other in others:
        other.mkdir()
    with temporary_folder(model) as folder:
        assert folder.is_dir()
        assert not left.exists()
        with temporary_folder(model) as second:  # of another writer, while the first is at work
            assert folder.is_dir()
            assert second != folder
    assert sorted(tmp_path.iterdir()) == sorted(others)


def test_a_folder_that_was_removed_before_it_was_held_is_made_again(tmp_path, monkeypatch):
    made = []
    make = locks.tempfile.mkdtemp

    def make_and_lose(**options):
        made.append(make(**options))
        if len(made) == 1:
            shutil.rmtree(made[0])
        return made[-1]

    monkeypatch.setattr(locks.tempfile, "mkdtemp", make_and_lose)
    with temporary_folder(tmp_path / "model") as folder:
        assert str(folder) == made[1]
