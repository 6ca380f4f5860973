"""The exit status of a run, and what is said about methods that did not run."""

from types import SimpleNamespace

import pytest
import typer

from evengraph.cli.run import _exit_status
from evengraph.pipeline.run import RunResults


def plan(*names):
    return SimpleNamespace(methods={name: SimpleNamespace(full_title=name) for name in names})


@pytest.mark.parametrize(
    ("failed", "status", "text"),
    [({"gcn": SimpleNamespace(reason="Too large.")}, 2, "gcn did not run"), ({}, 130, "Not run")],
)
def test_failures_and_interruptions_have_their_status(failed, status, text, capsys):
    with pytest.raises(typer.Exit) as stop:
        _exit_status(plan("gcn"), RunResults(failed=failed))
    assert stop.value.exit_code == status
    assert text in capsys.readouterr().err


def test_a_complete_run_just_ends():
    _exit_status(plan(), RunResults())
