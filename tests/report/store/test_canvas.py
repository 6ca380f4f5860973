import pytest
from made_up import FEW, STEP, TAIL, make_board, spread

from evengraph.report.store.canvas import COLOURS, OURS, best_first, colour_of


def board_of(**centres):
    values = {
        (setup, label): spread(centre + shift, FEW, label, 0)
        for label, centre in centres.items()
        for setup, shift in ((STEP, 0), (TAIL, 9))
    }
    return make_board(values)


def test_methods_are_ordered_by_their_mean_rank():
    assert best_first(board_of(a=50, b=70, c=60)) == ["b", "c", "a"]


def test_a_method_counts_where_it_has_been_run():
    values = {
        (STEP, "a"): spread(50, FEW, "a", 0),
        (STEP, "b"): spread(60, FEW, "b", 0),
        (TAIL, "a"): spread(90, FEW, "a", 0),
    }
    assert best_first(make_board(values)) == ["b", "a"]  # always the first; the first once in two


@pytest.mark.parametrize("label", ["GCN", "IceBerg"])
def test_only_our_method_stands_out(label):
    board = board_of(**{"GCN": 50, "IceBerg": 60, "Uni-GNN": 70})
    assert colour_of(board, "Uni-GNN") == OURS
    assert colour_of(board, label) in COLOURS
