"""Row models: which methods they are, and the inputs of tables with hops."""

import evengraph as eg
from evengraph.methods.bases.row_model import RowModel, averaged_methods, hop_inputs


def test_convolutions_are_no_row_models():
    assert issubclass(eg.Unison, RowModel)
    assert not issubclass(eg.GCN, RowModel)
    assert not issubclass(eg.Auto, RowModel)


def test_only_averages_have_members():
    method = eg.Logistic()
    assert averaged_methods(method) == [(method, 1.0)]
    average = eg.Auto()
    average.members_, average.weights_ = [method, eg.MLP()], [0.75, 0.25]
    assert [weight for _, weight in averaged_methods(average)] == [0.75, 0.25]


def test_inputs_are_features_and_a_mean_per_hop_and_relation():
    assert list(hop_inputs(5, 0, 2, degree=True)) == ["features"]
    inputs = hop_inputs(5, 2, 1, degree=True)
    widths = {"features": 5, "log_degree": 1, "mean_1": 6, "mean_2": 6, "relation_1": 6}
    assert {name: item.width for name, item in inputs.items()} == widths
    scaled = hop_inputs(5, 1, 0, degree=False, scaled=True)
    assert list(scaled) == ["features", "scaled_mean_1"]
    assert [item.fitted for item in scaled.values()] == [False, True]
