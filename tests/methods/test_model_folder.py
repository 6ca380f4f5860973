"""A model's folder: whole or not at all, and refused in clear words."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from evengraph.methods import GCN, Auto
from evengraph.methods.bases import saving as module
from evengraph.methods.bases.method import pack_method, restore_method
from evengraph.methods.bases.saving import Description, read_model, seal, write_model
from small_graphs import small_task

ABOUT = {"method": "gcn", "colour": "grün"}
TENSORS = {"a": torch.arange(6).view(2, 3), "b": torch.tensor([True]), "c": torch.zeros(0, 4)}
MORE = {"a": torch.ones(2)}


@pytest.fixture
def saved(tmp_path):
    write_model(tmp_path / "model", ABOUT, TENSORS)
    return tmp_path / "model"


def check(folder, about=ABOUT, tensors=TENSORS):
    saved_about, saved_tensors = read_model(folder)
    assert saved_about.items() >= about.items()
    assert saved_tensors.keys() == tensors.keys()
    for name, value in tensors.items():
        assert torch.equal(saved_tensors[name], value)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_there_and_back(saved, tmp_path):
    check(saved)
    assert names(tmp_path) == ["model"]
    json_name, tensors_name = names(saved)
    assert json.loads((saved / json_name).read_text())["format"] == 1
    assert load_file(saved / tensors_name).keys() == TENSORS.keys()  # other tools can read it
    assert (saved.stat().st_mode & 0o777, (saved / "model.json").stat().st_mode & 0o777) == (
        0o755,
        0o644,
    )


def test_tensors_that_share_memory_or_are_views(tmp_path):
    whole = torch.arange(12.0).view(3, 4)
    tensors = {"whole": whole, "turned": whole.t(), "part": whole[1:, ::2]}
    write_model(tmp_path / "new" / "model", ABOUT, tensors)  # in a folder that is made
    check(tmp_path / "new" / "model", tensors=tensors)


def test_an_empty_folder_is_filled_and_a_model_replaced(saved, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", saved):
        write_model(folder, {"method": "lte4g"}, MORE)
        check(folder, {"method": "lte4g"}, MORE)
        assert len(names(folder)) == 2
    write_model(saved, {"method": "lte4g"}, MORE)  # the same again
    check(saved, {"method": "lte4g"}, MORE)


def test_other_peoples_files_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds other files and no model"):
        write_model(tmp_path, ABOUT, TENSORS)
    with pytest.raises(ValueError, match="is a file"):
        write_model(tmp_path / "notes.txt", ABOUT, TENSORS)
    assert names(tmp_path) == ["notes.txt"]
    (tmp_path / "model.json").write_text('{"format": "of somebody else"}')
    with pytest.raises(ValueError, match="holds other files and no model"):
        write_model(tmp_path, ABOUT, TENSORS)


@pytest.mark.parametrize("left", ["tensors-0123456789ab.safetensors", ".model.json.abc12345"])
def test_what_a_killed_save_left_is_no_obstacle_and_goes(tmp_path, left):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / left).write_text("half")
    (tmp_path / ".model.abc12345.tmp").mkdir()
    write_model(tmp_path / "model", ABOUT, TENSORS)
    check(tmp_path / "model")
    assert left not in names(tmp_path / "model")
    write_model(tmp_path / "other", ABOUT, TENSORS)
    (tmp_path / ".other.abc12345.tmp").mkdir()
    (tmp_path / "other").rename(tmp_path / "moved")
    write_model(tmp_path / "other", ABOUT, TENSORS)
    assert ".other.abc12345.tmp" not in names(tmp_path)


@pytest.mark.parametrize("moment", ["before it looks", "after it looked"])
def test_a_reader_beside_a_writer_gets_one_of_both_models(saved, monkeypatch, moment):
    """The writer replaces the model between the reader's two files, twice."""
    read, replaced, look = module._tensors, [], Path.is_file

    def replace():
        if len(replaced) < 2:
            replaced.append({"a": torch.full((2,), float(len(replaced)))})
            write_model(saved, ABOUT, replaced[-1])

    def late(folder, about):
        if moment == "before it looks":
            replace()
        return read(folder, about)

    def looked(path):
        there = look(path)
        if moment == "after it looked" and path.suffix == ".safetensors":
            replace()
        return there

    monkeypatch.setattr(Path, "is_file", looked)

    monkeypatch.setattr(module, "_tensors", late)
    check(saved, tensors={"a": torch.ones(2)})


def test_two_writers_of_a_new_folder_leave_one_model(tmp_path, monkeypatch):
    rename, folder = os.rename, tmp_path / "model"

    def late(source, target):
        monkeypatch.setattr(module.os, "rename", rename)
        write_model(folder, ABOUT, MORE)
        rename(source, target)

    monkeypatch.setattr(module.os, "rename", late)
    write_model(folder, ABOUT, TENSORS)
    check(folder)
    assert names(tmp_path) == ["model"]
    assert len(names(folder)) == 2


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, torch.ones(1), "\ud800"])
def test_what_json_cannot_hold(tmp_path, value):
    with pytest.raises(ValueError, match="extra must hold what JSON can") as caught:
        write_model(tmp_path / "model", ABOUT | {"extra": value}, TENSORS)
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


def interrupt(patch, step, error):
    """Fail while a file is written, or while the folder is moved or cleaned up."""

    def stop(*_, **__):
        raise error

    if step in ("rename", "unlink"):
        patch.setattr(*((os, step, stop) if step == "rename" else (Path, step, stop)))
        return
    real = module.write_atomic
    patch.setattr(
        module, "write_atomic", lambda c, p: (stop if p.name.startswith(step) else real)(c, p)
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("no space left")])
@pytest.mark.parametrize("step", ["tensors", "model.json", "rename", "unlink"])
def test_an_interrupted_save_leaves_nothing_or_a_whole_model(tmp_path, monkeypatch, step, error):
    new, old = tmp_path / "new" / "model", tmp_path / "old"
    write_model(old, ABOUT, TENSORS)
    with monkeypatch.context() as patch:
        interrupt(patch, step, error)
        if step != "unlink":
            with pytest.raises((KeyboardInterrupt, OSError)):
                write_model(new, ABOUT, TENSORS)
            assert names(new.parent) == []
        if step != "rename":
            with pytest.raises((KeyboardInterrupt, OSError)):
                write_model(old, {"method": "lte4g"}, MORE)
    check(old, *(({"method": "lte4g"}, MORE) if step == "unlink" else ()))
    write_model(old, {"method": "lte4g"}, MORE)
    assert len(names(old)) == 2  # nothing is left of the attempt


def described(edit):
    """A harm to the description, with a seal that fits."""

    def change(saved):
        about = json.loads((saved / "model.json").read_text()) | edit
        del about["seal"]
        (saved / "model.json").write_text(json.dumps(about | {"seal": seal(about)}))

    return change


def rewritten(pattern, edit):
    """A harm to a file; None removes it."""

    def change(saved):
        (path,) = saved.glob(pattern)
        content = edit(path.read_bytes())
        path.unlink() if content is None else path.write_bytes(content)

    return change


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (rewritten("*.json", lambda c: b"{"), "model.json is damaged: it cannot be read as JSON"),
        (rewritten("*.json", lambda c: b"\xff\xfe\x00"), "it cannot be read as JSON"),
        (rewritten("*.json", lambda c: b'["not ours"]'), "model.json was not written by evengraph"),
        (rewritten("*.json", lambda c: None), "is not a model: it has no model.json"),
        (rewritten("tensors-*", lambda c: None), "is damaged: tensors-.* is missing"),
        (rewritten("tensors-*", lambda c: c[:-1]), "is damaged: it is not what was saved"),
        (
            rewritten("tensors-*", lambda c: c[:-3] + bytes([c[-3] ^ 1]) + c[-2:]),
            "is damaged: it is not what was saved",
        ),
        (described({"class_names": ["a", "\ud800"]}), "halves of surrogate pairs"),
        (described({"tensors": "x"}), "does not say where its tensors are"),
        (described({"tensors": {"file": "../../x", "sha256": ""}}), "is damaged: x is missing"),
        (
            described({"format": 2, "evengraph": "9.1"}),
            "saved by evengraph 9.1 in format 2, this is .* and reads format 1",
        ),
        (lambda saved: saved.rename(saved.parent / "moved"), "does not exist: give the folder"),
        (
            lambda saved: (saved.rename(saved.parent / "moved"), saved.write_text("")),
            "is not a model",
        ),
    ],
)
def test_what_cannot_be_read(saved, harm, message):
    harm(saved)
    with pytest.raises(ValueError, match=message) as caught:
        read_model(saved)
    assert "\n" not in str(caught.value)
    assert str(saved) in str(caught.value)


def test_a_model_card_is_written_and_replaced_unless_it_is_the_users(tmp_path):
    fitted, folder = GCN(max_epochs=1).fit(small_task(), seed=0), tmp_path / "model"
    fitted.save(folder)
    assert len(names(folder)) == 3
    card = folder / "README.md"
    text = card.read_text()
    assert text.startswith("<!-- evengraph model card")
    assert 'eg.load_model("model")' in text
    card.write_text(text + "old")
    fitted.save(folder)
    assert not card.read_text().endswith("old")
    card.write_text("mine")
    fitted.save(folder)
    assert card.read_text() == "mine"
    read_model(folder)
    (tmp_path / "other").mkdir()  # nothing but a readme: no place for a model
    (tmp_path / "other" / "README.md").write_text("mine")
    with pytest.raises(ValueError, match="holds other files"):
        fitted.save(tmp_path / "other")


def test_a_model_without_a_card_gets_one(saved):
    assert "README.md" not in names(saved)
    write_model(saved, ABOUT, TENSORS, card="card \ud800")
    assert (saved / "README.md").read_text() == "card ?"
    check(saved)


def test_a_member_of_a_former_version_loads():
    task = small_task()
    method = Auto(candidates="boosting", max_epochs=6).fit(task, seed=0)
    about, tensors = pack_method(method)
    fields = about["details"]["members"][0]["fields"]
    fields["neighbours"] = fields.pop("hops") == 1
    for name in ("columns", "context", "sample", "stop_early"):
        del fields[name]
    again = Auto(**about["fields"])
    restore_method(again, Description.of(about), tensors, torch.device("cpu"))
    assert torch.equal(again.predict_proba(task.graph), method.predict_proba(task.graph))
    about["details"]["members"][0]["method"] = "nothing"
    with pytest.raises(ValueError, match="there is no method 'nothing' in this version"):
        restore_method(again, Description.of(about), tensors, torch.device("cpu"))
