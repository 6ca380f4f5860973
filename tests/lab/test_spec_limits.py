"""A few lines of a file must not stand for more than can be run, or be parsed."""

import pytest

from evengraph.lab import spec as spec_limits
from evengraph.lab.spec import check_keys, read_spec

PLAIN = 'seeds = [1]\n[[setup]]\ndataset = "toy"\n[[method]]\nname = "gcn"\n'


def read(tmp_path, text):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    return read_spec(str(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (".".join("a" * 5000) + " = 1\n" + PLAIN, "line 1: a key may have at most 100 parts"),
        (PLAIN + "fields = {" + "a . " * 200 + "b = 1}", "line 6: a key may have at most 100"),
        ('"%".' * 2000 + "a = 1\n" + PLAIN, "line 1: a key may have at most 10 parts in quotes"),
        ('"a".' * 12 + "a = 1\n" + PLAIN, "line 1: a key may have at most 10 parts in quotes"),
        ("'\u2028'.b." * 2000 + "a = 1\n" + PLAIN, "line 1: a key may have at most 100 parts"),
        (PLAIN + f"grid.hidden = [{'1,' * 10_001}]", "hidden must be at most 10000 values"),
        (PLAIN + "search = {hidden = [1, 2], trials = 10001}", "trials must be at most 10000"),
        (f"seeds = [{'1,' * 10_001}]\n" + PLAIN[11:], "seeds must be at most 10000 values"),
    ],
)
def test_a_few_lines_that_ask_for_too_much(text, words, tmp_path):
    with pytest.raises(ValueError, match=words) as caught:
        read(tmp_path, text)
    assert "odd.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_number_of_runs_is_limited(tmp_path, monkeypatch):
    grid = "grid = {hidden = [1, 2, 3], dropout = [0.1, 0.2]}\nmore_seeds = [2]\n"
    monkeypatch.setattr(spec_limits, "MOST_RUNS", 12)
    read(tmp_path, PLAIN + grid)
    monkeypatch.setattr(spec_limits, "MOST_RUNS", 11)
    with pytest.raises(ValueError, match="at most 11 runs, this has 12"):
        read(tmp_path, PLAIN + grid)


def test_numbers_and_sentences_are_no_keys():
    check_keys("grid.dropout = [" + "0.5, " * 500 + "]\ntitle = 'A. B. C.'")
    check_keys("  # " + "." * 500)
