"""Single-precision numbers: their first digits and their order."""

import numpy as np
import torch

from evengraph.ops.trees import first_digits, largest_up_to


def test_the_identity_gives_the_next_smaller_single_precision_number():
    limits = torch.tensor([0.1, -0.1, 0.5, 0.0, -3.0, 1e-30, 1e30, 1e300, 7.0]).double()
    found = largest_up_to(lambda x: x.double(), limits)
    assert (found.double() <= limits).all()
    above = torch.from_numpy(np.nextafter(found[:-2].numpy(), np.float32(np.inf))).double()
    assert (above > limits[:-2]).all()
    assert found[2] == 0.5
    assert found[-1] == 7
    assert found[-2] == torch.finfo(torch.float32).max


def test_a_step_ends_where_the_function_rises():
    found = largest_up_to(torch.floor, torch.tensor([0.5, 1.0, -2.5]))
    ends = np.nextafter(np.float32([1, 2, -2]), np.float32(-np.inf))
    np.testing.assert_array_equal(found.numpy(), ends)


def test_the_first_sixteen_bits_of_a_number_are_used():
    x = torch.tensor([0.0, 1.0, -3.0, 65535.0, 65537.0, 131073.0, 131075.0, 1 + 2**-16, 1 + 2**-14])
    expected = [0.0, 1.0, -3.0, 65535.0, 65536.0, 131072.0, 131076.0, 1.0, 1 + 2**-14]
    assert first_digits(x).tolist() == expected
    assert torch.equal(first_digits(x * 2**-40), first_digits(x) * 2**-40)
