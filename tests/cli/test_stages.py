"""Lines about the stages of work on disk."""

from evengraph.cli import console as stages
from evengraph.cli.console import StageLines


def test_a_line_when_a_stage_is_done_and_every_few_seconds(monkeypatch, capsys):
    clock = iter([0, 1, 6, 7, 20, 30, 33])
    monkeypatch.setattr(stages, "monotonic", lambda: next(clock))
    lines = StageLines()
    for stage, share in [
        ("a", 0.1),
        ("a", 0.2),
        ("a", 0.5),
        ("a", 0.6),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]:
        lines(stage, share)
    assert capsys.readouterr().err.splitlines() == [
        "a: 50%, 6 s",
        "a: done in 20 s",
        "b: done in 3 s",
    ]
