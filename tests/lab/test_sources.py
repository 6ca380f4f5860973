import pytest

from evengraph.lab.sources import BEYOND, EXPERIMENTS, expand, source


def test_all_is_every_experiment_of_the_paper_once():
    assert expand(["table2", "all", "mine.toml", "table2"]) == [
        "table2",
        "table1",
        "table3",
        "figure2",
        "mine.toml",
    ]


def test_every_name_has_a_file_and_other_names_are_refused(tmp_path):
    assert all(source(name).is_file() for name in (*EXPERIMENTS, *BEYOND))
    with pytest.raises(ValueError, match="There is no file"):
        source(str(tmp_path / "none.toml"))
    with pytest.raises(ValueError, match="table9"):
        source("table9")
