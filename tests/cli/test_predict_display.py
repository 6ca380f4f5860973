"""What predict prints: thresholds with their digits, and one message about what differs."""

import pandas
import pytest

from evengraph.cli.predict import show_drift, show_flags
from evengraph.pipeline.predictions import Predictions


@pytest.mark.parametrize(
    ("start", "digits", "warned"),
    [(0.00012, "0.00012", True), (0.9996, "0.99960", True), (0.25, "0.250", False)],
)
def test_a_threshold_has_the_digits_it_needs(start, digits, warned, capsys):
    frame = pandas.DataFrame({"class": ["rare", "common"], "flagged": [True, False]})
    show_flags(frame, "rare", start)
    shown = capsys.readouterr()
    assert f"p(rare) is {digits} or more" in shown.out
    assert ("extreme" in shown.err) is warned


def test_what_was_moved_back_what_differs_and_what_was_not_corrected(capsys):
    predictions = Predictions(None, ["Also different: b."], None, None, "Moved back: a.")
    show_drift(predictions._replace(doubt="Not corrected."))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "Moved back: a. --no-align keeps them.",
        "Warning: Also different: b.",
        "Warning: Not corrected.",
    ]
