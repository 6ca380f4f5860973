import math

import pytest
import torch

from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.decisions import Costs
from evengraph.metrics.evaluation import Predictions

LABELS = torch.tensor([0, 0, 1, 1, 0])
HIGH = torch.tensor([0.1, 0.6, 0.7, 0.4, 0.2])
BOTH = torch.stack([1 - HIGH, HIGH], 1)


def test_the_confusion_matrix_is_that_of_the_most_likely_class():
    assert Predictions(labels=LABELS, probabilities=BOTH).confusion.tolist() == [[2, 1], [1, 1]]


@pytest.mark.parametrize(("k", "top"), [(None, 2), (1, 1), (4, 4), (99, 5)])
def test_the_highest_scores_are_as_many_as_there_are_positive_nodes(k, top):
    assert Predictions(labels=LABELS, probabilities=BOTH, k=k).top == top
    assert Predictions(labels=LABELS * 0, probabilities=BOTH).top == 1


def test_the_threshold_comes_from_validation_alone():
    assert math.isnan(Predictions(labels=LABELS, probabilities=BOTH).threshold)
    validation = (torch.tensor([0, 1, 0, 1]), torch.tensor([[0.8, 0.2], [0.7, 0.3]] * 2))
    case = Predictions(labels=LABELS, probabilities=BOTH, validation=validation)
    assert case.threshold == pytest.approx(0.3)
    dear = Costs(miss=1.0, alarm=100.0)
    careful = Predictions(
        labels=LABELS, probabilities=BOTH, validation=validation, costs=dear, positive=0
    )
    assert careful.threshold > case.threshold


def test_without_calibrators_probabilities_stay():
    case = Predictions(labels=LABELS, probabilities=BOTH)
    assert torch.allclose(case.calibrated, BOTH)
    assert torch.allclose(case.shifted, BOTH)


def test_the_first_calibrator_scales_and_the_second_shifts():
    pair = Calibrator(temperature=2.0), Calibrator(temperature=1.0, shift=(0.0, 1.0))
    case = Predictions(labels=LABELS, probabilities=BOTH, calibrators=pair)
    assert torch.equal(case.calibrated, pair[0](BOTH))
    assert torch.equal(case.shifted, pair[1](BOTH))
    assert not torch.allclose(case.calibrated, case.shifted)
