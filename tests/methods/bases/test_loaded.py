import pytest
import torch

from evengraph.methods.bases.method import check_classes, one_line_errors


def test_errors_of_a_loaded_model_are_one_line():
    weights = torch.ones(3, 2)
    with (
        pytest.raises(ValueError, match=r"cannot predict: the tensors of GCN do not fit") as found,
        one_line_errors("GCN", loaded=True),
    ):
        torch.ones(4, 5) @ weights
    assert "\n" not in str(found.value)


def test_errors_of_a_method_fitted_here_are_bugs():
    with pytest.raises(RuntimeError), one_line_errors("GCN", loaded=False):
        torch.ones(4, 5) @ torch.ones(3, 2)


def test_too_little_memory_is_no_damage():
    with pytest.raises(RuntimeError, match="allocate"), one_line_errors("GCN", loaded=True):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")


@pytest.mark.parametrize("shape", [(5, 0), (5, 2), (5,), (5, 3, 1)])
def test_there_is_a_column_for_each_class(shape):
    check_classes(torch.ones(5, 3), 3)
    with pytest.raises(ValueError, match="must predict 3 classes"):
        check_classes(torch.ones(shape), 3)
