import pytest
from made_up import FEW, STEP, TAIL, make_results, spread

from evengraph.lab.results import COLOURS, HIGHLIGHT, colour_of


def results_of(**centres):
    values = {
        (setup, label): spread(centre + shift, FEW, label, 0)
        for label, centre in centres.items()
        for setup, shift in ((STEP, 0), (TAIL, 9))
    }
    return make_results(values)


@pytest.mark.parametrize("label", ["GCN", "IceBerg"])
def test_only_the_highlighted_method_stands_out(label):
    results = results_of(**{"GCN": 50, "IceBerg": 60, "Uni-GNN": 70})
    assert colour_of(results, "Uni-GNN") == HIGHLIGHT
    assert colour_of(results, label) in COLOURS
