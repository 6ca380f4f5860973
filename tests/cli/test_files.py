import pytest

from evengraph.cli.opening import check_folder, written


def test_a_file_is_written_or_replaced(tmp_path):
    path = tmp_path / "a.csv"
    assert written(path) == f"wrote {path}"
    path.touch()
    assert written(path) == f"replaced {path}"


def test_a_folder_that_can_be_written_is_left_as_it_was(tmp_path):
    check_folder(tmp_path / "deep" / "new")
    assert list(tmp_path.iterdir()) == []
    check_folder(tmp_path)
    assert tmp_path.is_dir()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="Cannot write to"):
        check_folder(tmp_path / "file" / "below")
