import pytest

from evengraph.metrics.significance import mean_recall_interval, share_interval


def test_wilson_against_known_values():
    assert share_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert share_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert share_interval(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert share_interval(0, 0) is None


def test_balanced_accuracy_lies_within_its_interval():
    low, high = mean_recall_interval([[8, 2], [5, 5]])
    assert low < 0.65 < high
    narrow = mean_recall_interval([[800, 200], [500, 500]])
    assert high - low > narrow[1] - narrow[0]


def test_all_right_is_not_certain():
    low, high = mean_recall_interval([[5, 0], [0, 5]])
    assert low < 0.95
    assert high == 1.0


def test_a_class_without_test_nodes_is_left_out():
    assert mean_recall_interval([[8, 2, 0], [5, 5, 0], [0, 0, 0]]) == mean_recall_interval(
        [[8, 2], [5, 5]]
    )
    assert mean_recall_interval([]) is None
