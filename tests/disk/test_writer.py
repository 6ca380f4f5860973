import json

import numpy as np
import pytest

from evengraph.disk import PackError, PackWriter, is_packed


def write_all(writer):
    writer.write("indptr", np.array([0, 1, 2]))
    writer.write("indices", np.array([1, 0], dtype=np.int32))
    writer.write("x", np.ones((2, 3), dtype=np.float32))
    writer.write("y", np.array([0, -1], dtype=np.int32))
    writer.write("ids", np.arange(2))


def test_the_folder_appears_only_when_it_is_complete(tmp_path):
    with PackWriter(tmp_path / "graph", {}) as writer:
        write_all(writer)
        assert not (tmp_path / "graph").exists()
        packed = writer.publish(class_names=["a"])
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]
    names = {path.name for path in packed.path.iterdir()}
    assert names == {f"{name}.npy" for name in packed.header["arrays"]} | {"graph.json"}
    assert packed.header["arrays"]["x"]["shape"] == [2, 3]


def begin(path, error):
    """Write one stage and end with an error."""
    with PackWriter(path, {"a": 1}) as writer:
        array = writer.create("x", np.float32, (2, 3))
        array[:] = 7
        array.flush()
        writer.finish("features", scale=0.1 + 0.2)
        raise error


def test_finished_stages_survive_a_kill(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "graph", KeyboardInterrupt())
    assert not is_packed(tmp_path / "graph")
    with PackWriter(tmp_path / "graph", {"a": 1}) as writer:
        assert writer.resumed
        assert writer.is_done("features")
        assert not writer.is_done("edges")
        assert writer.facts["features"]["scale"] == 0.1 + 0.2
        assert (writer.read("x") == 7).all()


def test_other_inputs_start_afresh(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "graph", KeyboardInterrupt())
    with PackWriter(tmp_path / "graph", {"a": 2}) as writer:
        assert not writer.resumed
        assert not list(writer.folder.glob("*.npy"))


def test_a_damaged_journal_starts_afresh(tmp_path):
    folder = tmp_path / ".graph.partial"
    folder.mkdir()
    (folder / "journal.json").write_text("{")
    with PackWriter(tmp_path / "graph", {}) as writer:
        assert not writer.resumed


def test_bad_input_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match="bad cell"):
        begin(tmp_path / "graph", ValueError("bad cell"))
    assert list(tmp_path.iterdir()) == []


def test_two_writers_of_one_folder_exclude_each_other(tmp_path):
    with PackWriter(tmp_path / "graph", {}) as first:
        write_all(first)
        with pytest.raises(PackError, match="another process"), PackWriter(tmp_path / "graph", {}):
            pass
        first.publish(class_names=[])
    with pytest.raises(FileExistsError, match="exists; remove it"):
        PackWriter(tmp_path / "graph", {})


def test_empty_arrays_are_written(tmp_path):
    with PackWriter(tmp_path / "graph", {}) as writer:
        write_all(writer)
        writer.create("indices", np.int32, (0,))
        packed = writer.publish(class_names=[])
    assert packed.num_edges == 0
    assert json.loads((packed.path / "graph.json").read_text())["num_edges"] == 0
