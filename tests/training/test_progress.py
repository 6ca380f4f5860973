"""The progress bar: where it is drawn, and what it shows."""

import re
import sys
from dataclasses import replace

import pytest
import rich.progress

from evengraph.training import History
from evengraph.training import loop as progress
from evengraph.training.loop import LINE_EVERY, count_bar, epoch_bar, epoch_lines


def history(*scores, patience=10, max_epochs=100):
    best = max(scores)
    latest = max(index for index, score in enumerate(scores) if score == best)
    return History(
        [0.5] * len(scores),
        list(scores),
        best_epoch=latest,
        first_best_epoch=scores.index(best),
        best_score=best,
        patience=patience,
        max_epochs=max_epochs,
    )


@pytest.fixture
def updates(monkeypatch):
    seen = []
    monkeypatch.setattr(
        rich.progress.Progress, "update", lambda self, bar, **fields: seen.append(fields)
    )
    return seen


def test_no_bar_away_from_a_terminal(capsys):
    with epoch_bar("GCN") as show:
        assert show is None
    assert capsys.readouterr() == ("", "")


def test_a_bar_on_a_terminal_unless_unwanted(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with epoch_bar("GCN") as show:
        assert show is not None
    with epoch_bar("GCN", visible=False) as show:
        assert show is None


def test_the_bar_goes_to_stderr(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with epoch_bar("GCN", visible=True) as show:
        show(history(0.25, 0.5))
    out, err = capsys.readouterr()
    assert out == ""
    assert "GCN" in err
    assert "50.0" in err


def test_the_bar_fills_as_patience_runs_out(updates):
    with epoch_bar("GCN", visible=True) as show:
        show(history(0.1, 0.5, patience=4))
        show(history(0.1, 0.5, 0.2, 0.3, patience=4))
        show(history(0.1, 0.5, 0.2, 0.3, 0.6, patience=4))
    assert [fields["completed"] for fields in updates] == [0, 2, 0]
    assert {fields["total"] for fields in updates} == {4}
    facts = updates[-1]["facts"]
    assert "epoch    4" in facts
    assert "best 60.0 at 4" in facts


def test_a_stage_with_a_name_is_named(updates):
    with epoch_bar("seed 5", visible=True) as show:
        for stage in ("", "Double balancing on GraphSAGE", "Logistic"):
            show(replace(history(0.5), stage=stage))
    titles = [fields["description"] for fields in updates]
    assert titles == ["seed 5", "seed 5, Double balancing", "seed 5, Logistic"]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("stage", ["", "Double balancing on GraphSAGE"])
def test_bar_and_time_are_whole_in_a_narrow_terminal(width, stage, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    with epoch_bar("seed 5", visible=True) as show:
        show(replace(history(*[0.5] * 1500, patience=2000, max_epochs=5000), stage=stage))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    line = next(line for line in re.split(r"[\r\n]+", plain) if "epoch" in line)
    assert line.count("━") + line.count("╸") + line.count("╺") >= 15
    assert "0:00:0" in line
    assert ("val" in line) == (width == 120)


def test_the_bar_never_runs_over(updates):
    with epoch_bar("GCN", visible=True) as show:
        show(history(0.5, 0.1, 0.1, 0.1, patience=1))
    assert updates[0]["completed"] == updates[0]["total"] == 1


def test_an_equal_score_does_not_start_the_bar_again(updates):
    """Patience counts from the first best epoch, and the bar shows patience."""
    with epoch_bar("GCN", visible=True) as show:
        show(history(0.5, 0.2, 0.5))
    assert updates[0]["completed"] == 2


def test_an_error_inside_is_passed_on():
    with pytest.raises(KeyError), epoch_bar("GCN", visible=True):
        raise KeyError


def test_things_done_are_counted(monkeypatch):
    steps = []
    monkeypatch.setattr(rich.progress.Progress, "advance", lambda self, bar: steps.append(bar))
    with count_bar("fitting", 3, visible=True) as count:
        count()
        count()
    assert len(steps) == 2


def test_nothing_is_counted_away_from_a_terminal(capsys):
    with count_bar("fitting", 3) as count:
        count()
    assert capsys.readouterr() == ("", "")


def test_lines_are_written_every_few_seconds_and_name_the_stage(monkeypatch):
    clock, lines = [0.0], []
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    show = epoch_lines("seed 5", lines.append)
    show(history(0.25))
    assert not lines
    clock[0] = LINE_EVERY
    show(history(0.25, 0.5))
    clock[0] += LINE_EVERY / 2
    show(history(0.25, 0.5, 0.4))
    clock[0] += LINE_EVERY / 2
    show(replace(history(0.25, 0.5, 0.4), stage="Logistic"))
    assert lines == [
        "seed 5: epoch 1, val 50.0, best 50.0 at 1, 5 s",
        "seed 5, Logistic: epoch 2, val 40.0, best 50.0 at 1, 10 s",
    ]
