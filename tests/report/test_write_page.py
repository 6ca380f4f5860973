import copy
from pathlib import Path

import pytest

from evengraph.report import render_page, write_page
from evengraph.report import run_page as page


def test_writing_replaces_the_old_page(result, tmp_path: Path):
    path = tmp_path / "deep" / "report.html"
    write_page(result, path)
    path.write_text("old", encoding="utf-8")
    write_page(result, path)
    assert path.read_text(encoding="utf-8") == render_page(result)
    assert list(path.parent.iterdir()) == [path]


def test_a_name_that_is_not_unicode_can_be_written(result, tmp_path: Path):
    result["dataset"]["class_names"][0] = "broken \ud800 name"
    write_page(result, tmp_path / "report.html")
    assert "broken " in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("where", ["render_page", "os.replace"])
def test_a_failure_leaves_the_old_page_alone(result, tmp_path: Path, monkeypatch, where):
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no luck")

    if where == "render_page":
        monkeypatch.setattr(page, "render_page", fail)
    else:
        monkeypatch.setattr("os.replace", fail)
    with pytest.raises(RuntimeError, match="no luck"):
        write_page(result, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_result_is_left_as_it_was(result):
    before = copy.deepcopy(result)
    render_page(result)
    assert result == before
