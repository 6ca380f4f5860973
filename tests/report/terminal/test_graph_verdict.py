"""The verdict on the graph over several splits."""

from evengraph.report.terminal import graph_verdict

UNCLEAR = "Whether the graph helps is unclear: {} with it and {} without it, which 90 cannot tell."
AHEAD, BEHIND = ["Chose a.", UNCLEAR.format(66.2, 63.0)], ["Chose b.", UNCLEAR.format(59.9, 60.1)]
HELPS = ["Chose a.", "The graph helps: the best model without it, MLP, reaches 60.0."]
USELESS = ["The graph does not help, the best models reach 50.0 with it and 60.0 without it: chose"]


def test_splits_that_agree_say_more_than_each_alone():
    assert "the best model with the graph is ahead: most likely it helps" in graph_verdict(
        [AHEAD, AHEAD, HELPS]
    )
    assert "all 4 splits the best model without the graph is ahead" in graph_verdict(
        [BEHIND, USELESS, BEHIND, BEHIND]
    )


def test_nothing_is_said_where_splits_disagree_or_are_few_or_clear():
    tie = [UNCLEAR.format(60.0, 60.0)]
    for some in ([AHEAD, BEHIND, AHEAD], [AHEAD, AHEAD], [HELPS] * 3, [AHEAD, AHEAD, tie], []):
        assert graph_verdict(some) == ""
    assert graph_verdict([AHEAD, AHEAD, ["Chose a."]]) == ""
